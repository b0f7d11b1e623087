// The keys that go to pages, and the list of all keys under `?`.

import { addKeys, allKeys, keysAreOn, setKeys } from "./keys.js";

const GO = "Go to";

/** The pages that the menu lists, and those that only the search finds: [{href, title, key, meaning, opens}]. */
export function pages() {
  const forms = document.getElementById("forms")?.content.querySelectorAll("a") ?? [];
  return [...document.querySelectorAll("#nav a"), ...forms].map((each) => ({
    href: each.getAttribute("href"),
    title: each.textContent.trim(),
    key: each.dataset.key,
    meaning: each.dataset.meaning ?? "",
    opens: each.dataset.opens,
  }));
}

function element(tag, text = "", props = {}) {
  return Object.assign(document.createElement(tag), { textContent: text, ...props });
}

function pressed(keys) {
  const box = element("dt");
  for (const [index, key] of keys.split(" ").entries()) {
    if (index) box.append(element("span", " then ", { className: "soft" }));
    box.append(element("kbd", key));
  }
  return box;
}

function listed([title, keys]) {
  const section = element("section");
  const list = element("dl");
  for (const each of keys) list.append(pressed(each.keys), element("dd", each.words));
  section.append(element("h3", title), list);
  return section;
}

function dialog() {
  const made = element("dialog", "", { id: "help", className: "help" });
  made.setAttribute("aria-labelledby", "help-title");
  const close = element("button", "Close", { className: "button", type: "button" });
  close.addEventListener("click", () => made.close());
  const head = element("div", "", { className: "card-head" });
  head.append(element("h2", "Keys", { id: "help-title" }), close);
  const lists = element("div", "", { className: "key-lists" });
  lists.append(...allKeys().map(listed));
  const label = element("label", "Single-key shortcuts");
  const box = element("input", "", { type: "checkbox", checked: keysAreOn(), id: "keys-on" });
  box.addEventListener("change", () => setKeys(box.checked));
  label.htmlFor = "keys-on";
  const choice = element("div", "", { className: "field check" });
  choice.append(box, label);
  made.append(head, lists, choice);
  made.addEventListener("click", (event) => event.target === made && made.close());
  made.addEventListener("close", () => made.remove());
  return made;
}

function help() {
  const made = dialog();
  document.body.append(made);
  made.showModal();
}

addKeys(GO, pages().filter((each) => each.key).map(({ href, title, key }) => ({
  keys: `g ${key}`,
  words: title,
  run: () => location.assign(href),
})));
addKeys("Help", [{ keys: "?", words: "This list", run: help }]);
document.getElementById("keys")?.addEventListener("click", help);
