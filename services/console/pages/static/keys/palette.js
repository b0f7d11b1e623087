// The search over everything, with Ctrl-K, `/` or its button: pages are known here, the rest is asked
// of the API. A combobox with a list box, whose options are links: a middle click opens a new tab.

import { ask } from "../ask.js";
import { pages } from "./help.js";
import { addKeys } from "./keys.js";

const SOON_MS = 120;
const PAGES_MAX = 8;
const DAY = /^\d{4}-\d\d-\d\d$/;
const KINDS = { cycle: "Cycles", operation: "Operations", account: "Accounts", ticker: "Tickers", strategy: "Strategies", job: "Jobs", setting: "Settings" };

let open = null;

class Palette {
  constructor() {
    this.dialog = document.querySelector("#palette").content.firstElementChild.cloneNode(true);
    this.input = this.dialog.querySelector("input");
    this.list = this.dialog.querySelector("[role=listbox]");
    this.note = this.dialog.querySelector("[role=status]");
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("keydown", (event) => this.pressed(event));
    this.list.addEventListener("pointermove", (event) => this.choose(event.target.closest("[role=option]")));
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.closed());
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.input.focus();
    this.asked = 0;
    this.show(this.pages(""), "");
  }

  get options() {
    return [...this.list.querySelectorAll("[role=option]")];
  }

  get chosen() {
    return this.list.querySelector("[aria-selected=true]");
  }

  closed() {
    clearTimeout(this.timer);
    this.asked += 1; // an answer that is still to come is nobody's
    this.dialog.remove();
    open = null;
  }

  pages(words) {
    const sought = words.toLowerCase().split(/\s+/).filter(Boolean);
    return pages()
      .filter(({ title, meaning }) => sought.every((each) => `${title} ${meaning}`.toLowerCase().includes(each)))
      .slice(0, sought.length ? PAGES_MAX : undefined)
      .map(({ href, title, key, opens }) => ({ kind: "page", title, page: href, detail: key ? `g ${key}` : "", opens }))
      .concat(DAY.test(words) ? [{ kind: "page", title: `Cycles of ${words}`, page: `/cycles?since=${words}&until=${words}` }] : []);
  }

  typed() {
    const words = this.input.value.trim();
    const known = this.pages(words);
    const turn = (this.asked += 1);
    clearTimeout(this.timer);
    if (!words) return this.show(known, "");
    this.show(known, "Searching …", false);
    this.timer = setTimeout(async () => {
      try {
        const { results } = await ask("GET", `/search?q=${encodeURIComponent(words)}`);
        if (turn !== this.asked) return;
        const all = [...known, ...results];
        this.show(all, all.length ? `${all.length} ${all.length === 1 ? "result" : "results"}` : `No results for “${words}”.`);
      } catch (error) {
        if (turn === this.asked) this.show(known, error.message);
      }
    }, SOON_MS);
  }

  show(results, note, isWhole = true) {
    const before = this.chosen?.getAttribute("href");
    // What was there is left while more is asked for: nothing jumps under the eye.
    if (isWhole || results.length) this.list.replaceChildren(...grouped(results));
    const same = this.options.find((each) => each.getAttribute("href") === before && this.moved);
    this.moved = Boolean(same);
    this.choose(same ?? this.options[0]);
    this.list.hidden = !this.options.length;
    this.input.setAttribute("aria-expanded", String(this.options.length > 0));
    this.note.textContent = note;
  }

  choose(option) {
    if (!option) return this.options.length || this.input.removeAttribute("aria-activedescendant");
    for (const each of this.options) each.setAttribute("aria-selected", String(each === option));
    this.input.setAttribute("aria-activedescendant", option.id);
  }

  move(by) {
    const all = this.options;
    if (!all.length) return;
    const next = all[(all.indexOf(this.chosen) + by + all.length) % all.length];
    this.moved = true;
    this.choose(next);
    next.scrollIntoView({ block: "nearest" });
  }

  pressed(event) {
    if (event.isComposing) return;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) this.move(steps[event.key]);
    else if (event.key === "Enter" && this.chosen) this.go(event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  }

  go(inTab) {
    const { href } = this.chosen;
    if (this.chosen.dataset.opens && !inTab) {
      const { opens } = this.chosen.dataset;
      this.dialog.close();
      return document.dispatchEvent(new CustomEvent(`deskbus:${opens}`));
    }
    if (inTab) window.open(href, "_blank", "noopener");
    else location.assign(href);
    this.dialog.close();
  }
}

function grouped(results) {
  const groups = new Map();
  for (const each of results) groups.set(each.kind, [...(groups.get(each.kind) ?? []), each]);
  let number = 0;
  return [...groups].map(([kind, all]) => {
    const group = document.createElement("div");
    group.setAttribute("role", "group");
    const head = document.createElement("div");
    head.className = "kind";
    head.id = `palette-kind-${kind}`;
    head.textContent = KINDS[kind] ?? "Pages";
    head.setAttribute("role", "presentation");
    group.setAttribute("aria-labelledby", head.id);
    group.append(head, ...all.map((each) => option(each, number++)));
    return group;
  });
}

function option({ title, detail, page, opens }, number) {
  const made = document.createElement("a");
  made.setAttribute("role", "option");
  made.setAttribute("aria-selected", "false");
  made.id = `palette-option-${number}`;
  made.tabIndex = -1;
  made.href = page;
  if (opens) made.dataset.opens = opens;
  const name = document.createElement("span");
  name.textContent = title;
  made.append(name);
  if (detail) {
    const more = document.createElement("span");
    more.className = "soft";
    more.textContent = detail;
    made.append(" ", more);
  }
  return made;
}

function search() {
  if (open) return open.input.select();
  if (document.querySelector("dialog[open]")) return;
  open = new Palette();
}

addKeys("Everywhere", [{ keys: "/", words: "Search", run: search }, { keys: "Ctrl-K", words: "Search" }]);
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || event.altKey || event.shiftKey || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault(); // the browser's own search bar
  search();
});
document.getElementById("search")?.addEventListener("click", search);
