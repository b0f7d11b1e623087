// How many events of each type came: a bar each, the most frequent first. A click asks for its type.

/** Draws into `box`, and into `words` how many there are in all. */
export class Counts {
  #box;
  #words;
  #choose;
  #counted = new Map();
  #planned = 0;

  /**
   * @param {HTMLElement} box
   * @param {HTMLElement} words
   * @param {(type: string) => void} choose
   */
  constructor(box, words, choose) {
    this.#box = box;
    this.#words = words;
    this.#choose = choose;
    box.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.#choose(button.dataset.type);
    });
    box.closest("details").addEventListener("toggle", () => this.#plan());
  }

  add(events) {
    for (const { type } of events) if (type) this.#counted.set(type, (this.#counted.get(type) || 0) + 1);
    this.#plan();
  }

  clear() {
    this.#counted.clear();
    this.#plan();
  }

  #plan() {
    if (!this.#planned) this.#planned = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#planned = 0;
    const sorted = [...this.#counted].sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]));
    const total = sorted.reduce((sum, [, count]) => sum + count, 0);
    const number = (count) => count.toLocaleString("en");
    this.#words.textContent = `${number(total)} ${total === 1 ? "event" : "events"} of ${sorted.length} ${sorted.length === 1 ? "type" : "types"}`;
    if (!this.#box.closest("details").open) return;
    const most = sorted.length ? sorted[0][1] : 1;
    const focused = document.activeElement?.dataset?.type;
    this.#box.replaceChildren(...sorted.map(([type, count]) => row(type, number(count), count / most)));
    if (focused) this.#box.querySelector(`[data-type="${CSS.escape(focused)}"]`)?.focus();
  }
}

function row(type, count, part) {
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.type = type;
  button.title = `Only ${type}`;
  for (const [name, text] of [["type", type], ["bar", ""], ["count", count]]) {
    const cell = button.appendChild(document.createElement("span"));
    cell.className = name;
    cell.textContent = text;
  }
  button.querySelector(".bar").style.setProperty("--part", String(part));
  const item = document.createElement("li");
  item.append(button);
  return item;
}
