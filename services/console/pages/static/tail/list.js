// The list: only the rows that can be seen are in the document, and they are drawn once a frame.


const SPARE = 6; // rows drawn beyond each edge, so that scrolling shows no blank

/** Draws `rows` into a scrolling box, and follows their end until somebody scrolls up. */
export class List {
  #box;
  #rows;
  #space;
  #drawn = new Map(); // a row's number to its element
  #free = [];
  #planned = 0;
  #height = 28;
  #first = 0; // of the rows, when it was drawn last
  #top = -1; // where it has scrolled to by itself
  #following = true;
  #changed;
  selected = -1;

  /**
   * @param {HTMLElement} box
   * @param {import("./rows.js").Rows} rows
   * @param {() => void} changed called when it was drawn
   */
  constructor(box, rows, changed) {
    this.#box = box;
    this.#rows = rows;
    this.#changed = changed;
    this.#space = box.appendChild(document.createElement("div"));
    this.#space.className = "tail-space";
    this.#space.setAttribute("role", "presentation");
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#measured()).observe(box);
  }

  /** Whether the newest row is kept in view. */
  get following() {
    return this.#following;
  }

  set following(on) {
    this.#following = on;
    this.draw();
  }

  /** How many rows one sees at once. */
  get page() {
    return Math.max(Math.floor(this.#box.clientHeight / this.#height) - 1, 1);
  }

  /** Draw before the next frame. */
  draw() {
    if (!this.#planned) this.#planned = requestAnimationFrame(() => this.#drawNow());
  }

  /** Bring a row into view, and mark it. */
  select(number) {
    this.selected = Math.min(Math.max(number, this.#rows.first), this.#rows.end - 1);
    const above = (this.selected - this.#rows.first) * this.#height;
    if (above < this.#box.scrollTop) this.#scrollTo(above);
    const below = above + this.#height - this.#box.clientHeight;
    if (below > this.#box.scrollTop) this.#scrollTo(below);
    this.draw();
  }

  /** The number of the row that this element shows; -1 where it is none. */
  numberOf(element) {
    const row = element.closest("[data-number]");
    return row && this.#box.contains(row) ? Number(row.dataset.number) : -1;
  }

  #scrolled() {
    const top = this.#box.scrollTop;
    if (Math.abs(top - this.#top) > 1) {
      // A person has scrolled: up means "wait", down to the end means "go on".
      const atEnd = top + this.#box.clientHeight >= this.#box.scrollHeight - this.#height / 2;
      if (top < this.#top || atEnd) this.#following = atEnd;
    }
    this.#top = top;
    this.draw();
  }

  #scrollTo(top) {
    this.#box.scrollTop = top;
    this.#top = this.#box.scrollTop;
  }

  #measured() {
    this.#top = this.#box.scrollTop; // where another size has put it, not a person
    const probe = this.#element();
    this.#space.append(probe);
    this.#height = probe.offsetHeight || this.#height;
    probe.remove();
    this.#free.push(probe);
    for (const number of [...this.#drawn.keys()]) this.#let(number);
    if (this.selected >= 0) this.select(this.selected);
    else this.draw();
  }

  #drawNow() {
    this.#planned = 0;
    const { first, end } = this.#rows;
    this.#space.style.height = `${(end - first) * this.#height}px`;
    // What was dropped stood above: what is read stays where it is.
    if (first !== this.#first) {
      if (!this.#following) this.#scrollTo(Math.max(this.#box.scrollTop - (first - this.#first) * this.#height, 0));
      for (const number of [...this.#drawn.keys()]) this.#let(number);
      this.#first = first;
    }
    if (this.#following) this.#scrollTo(this.#box.scrollHeight);
    const top = Math.floor(this.#top / this.#height);
    const from = Math.max(first + top - SPARE, first);
    const upto = Math.min(first + top + Math.ceil(this.#box.clientHeight / this.#height) + SPARE, end);
    for (const number of [...this.#drawn.keys()]) if (number < from || number >= upto) this.#let(number);
    for (let number = from; number < upto; number++) this.#show(number);
    const chosen = this.#drawn.get(this.selected);
    if (chosen) this.#box.setAttribute("aria-activedescendant", chosen.id);
    else this.#box.removeAttribute("aria-activedescendant");
    this.#changed();
  }

  #let(number) {
    const element = this.#drawn.get(number);
    this.#drawn.delete(number);
    element.remove();
    this.#free.push(element);
  }

  #show(number) {
    let element = this.#drawn.get(number);
    if (!element) {
      element = this.#free.pop() || this.#element();
      element.id = `row-${number}`;
      element.dataset.number = String(number);
      element.style.transform = `translateY(${(number - this.#rows.first) * this.#height}px)`;
      fill(element, this.#rows.at(number));
      this.#drawn.set(number, element);
      this.#space.append(element);
    }
    element.setAttribute("aria-selected", String(number === this.selected));
  }

  #element() {
    const element = document.createElement("div");
    element.setAttribute("role", "option");
    for (const name of ["at", "cycle", "pipeline", "type", "said"]) {
      const cell = document.createElement("span");
      cell.className = name;
      element.append(cell);
    }
    element.className = "tail-row";
    return element;
  }
}

function fill(element, row) {
  const [at, cycle, pipeline, type, said] = element.children;
  if (row.gap) {
    element.className = "tail-row gap";
    at.textContent = cycle.textContent = pipeline.textContent = "";
    type.textContent = "gap";
    said.textContent = row.gap.message;
    return;
  }
  element.className = `tail-row ${row.tone}`;
  at.textContent = clock(row.at);
  cycle.textContent = `${row.cycle_id.slice(0, 8)} ${row.sequence}`;
  pipeline.textContent = row.pipeline || "";
  type.textContent = row.type;
  said.textContent = row.text;
}

/** Hours to milliseconds, in UTC as all times of the console. */
function clock(at) {
  return `${at.slice(11, 19)}.${at[19] === "." ? at.slice(20, 23).padEnd(3, "0") : "000"}`;
}
