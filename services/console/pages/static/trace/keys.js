// The keys of a cycle's page, and the list of them under `?`.

const keys = [];

/** Put keys on this page: [{keys, words, run}]. Where `run` returns false the key keeps its meaning. */
export function addKeys(title, list) {
  keys.push(...list);
}

function element(tag, text = "", props = {}) {
  return Object.assign(document.createElement(tag), { textContent: text, ...props });
}

function help() {
  const dialog = element("dialog", "", { className: "key-help" });
  dialog.setAttribute("aria-labelledby", "key-help-title");
  const close = element("button", "Close", { className: "button small-button", type: "button" });
  close.addEventListener("click", () => dialog.close());
  const head = element("div", "", { className: "card-head" });
  head.append(element("h2", "Keys", { id: "key-help-title" }), close);
  const list = element("dl", "", { className: "facts" });
  for (const each of [...keys, HELP]) {
    const name = element("dt");
    name.append(element("kbd", each.keys));
    list.append(name, element("dd", each.words));
  }
  dialog.append(head, list);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const HELP = { keys: "?", words: "This list", run: help };
const FIELDS = "input, textarea, select, [contenteditable]";
const PRESSABLE = "a[href], button, summary";

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.(FIELDS) || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && event.target.closest?.(PRESSABLE)) return;
  const bound = [...keys, HELP].find((each) => each.keys === event.key);
  if (bound && bound.run(event) !== false) event.preventDefault();
});
