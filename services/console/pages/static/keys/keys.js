// The one home of keys: whatever a key does on a page is added here, so that no two things are on one
// key, `?` lists them all, and the rules below hold for each.
//
//   import { addKeys } from "./keys/keys.js";
//   addKeys("This page", [{ keys: "j", words: "Next step", run: next }, { keys: "k", words: "...", run }]);
//
// - `keys` is one key as KeyboardEvent.key names it ("j", "Enter", "?"), or two with a space between
//   ("g c"): the second counts within `SEQUENCE_MS`. A key is lower case; no Ctrl, Alt or Meta.
// - No key does anything while somebody types or chooses (input, textarea, select, contenteditable),
//   while a dialog is open, or where another listener called preventDefault before.
// - Enter and Space stay with a link, button or summary that has the focus.
// - `run(event)` is called at most once a press; what it handled is default-prevented. Where it returns
//   false it did nothing, and the key keeps its own meaning.
// - A key that is taken is refused with an error: choose another, or take the old one out.
// - People can switch single keys off under `?` (WCAG 2.1.4); Ctrl-K stays.

const SEQUENCE_MS = 1_500;
const OFF = "deskbus-keys";
const FIELDS = "input, textarea, select, [contenteditable]";
const PRESSABLE = "a[href], button, summary";

const groups = new Map();
const byKeys = new Map();
let first = "";
let timer = 0;

/** Put keys on this page; `title` heads them in the list of `?`. Throws where one is taken. */
export function addKeys(title, list) {
  for (const each of list) {
    if (byKeys.has(each.keys)) throw new Error(`the keys ${each.keys} are taken: ${byKeys.get(each.keys).words}`);
    byKeys.set(each.keys, each);
  }
  groups.set(title, [...(groups.get(title) ?? []), ...list]);
}

/** All keys of this page: [title, [{keys, words}]], in the order of their adding. */
export function allKeys() {
  return [...groups];
}

/** Whether single keys do anything. */
export function keysAreOn() {
  return localStorage.getItem(OFF) !== "off";
}

/** Switch single keys on or off, here and on later pages. */
export function setKeys(on) {
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "off");
}

const begins = (key) => [...byKeys.keys()].some((each) => each.startsWith(`${key} `));

function wants(first) {
  clearTimeout(timer);
  timer = setTimeout(() => forget(), SEQUENCE_MS);
  return first;
}

function forget() {
  clearTimeout(timer);
  first = "";
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const { key, target } = event;
  if (!keysAreOn() || ["Shift", "CapsLock"].includes(key)) return;
  if (target.closest?.(FIELDS) || document.querySelector("dialog[open]")) return forget();
  if ((key === "Enter" || key === " ") && target.closest?.(PRESSABLE)) return;
  const bound = byKeys.get(first ? `${first} ${key}` : key);
  if (!bound && !first && begins(key)) {
    first = wants(key);
    return;
  }
  forget();
  if (bound && bound.run(event) !== false) event.preventDefault();
});
