// What the page holds: the newest events and gaps, in order, and never more than ROWS_MAX.

export const ROWS_MAX = 20_000;
const DROP_AT_ONCE = 2_000;

/** A bounded list; a row's number never changes, whatever is dropped before it. */
export class Rows {
  #rows = [];
  #dropped = 0;

  /** Append; the oldest are dropped where there are too many. */
  add(rows) {
    for (const row of rows) this.#rows.push(row);
    const over = this.#rows.length - ROWS_MAX;
    if (over > 0) {
      const gone = Math.min(Math.max(over, DROP_AT_ONCE), this.#rows.length);
      this.#rows = this.#rows.slice(gone);
      this.#dropped += gone;
    }
  }

  clear() {
    this.#rows = [];
    this.#dropped = 0;
  }

  /** The number of the oldest row that is still here: how many were dropped. */
  get first() {
    return this.#dropped;
  }

  /** One more than the newest row's number. */
  get end() {
    return this.#dropped + this.#rows.length;
  }

  /** The row of this number; undefined where it was dropped or has not come. */
  at(number) {
    return this.#rows[number - this.#dropped];
  }
}
