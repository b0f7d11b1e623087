// Filters of a list (`form[data-list]`): what is chosen filters at once, what is typed soon after. The
// address has them all; the list's region is read again in place, and the field keeps its focus.

import { refresh } from "../live.js";

const TYPED_MS = 300;
const DAY_MS = 700; // a day is typed digit by digit, and each gives one
let timer = 0;

function address(form) {
  const words = [...new FormData(form)].filter(([, value]) => value.trim() !== "");
  const query = new URLSearchParams(words).toString();
  return location.pathname + (query ? `?${query}` : "");
}

async function apply(form, replaces = false) {
  clearTimeout(timer);
  const wanted = address(form);
  if (wanted === location.pathname + location.search) return;
  history[replaces ? "replaceState" : "pushState"](null, "", wanted);
  // Whoever filters has done with what was selected: those rows may be gone.
  for (const box of document.querySelectorAll("#list input:checked")) box.checked = box.defaultChecked;
  await refresh();
}

for (const form of document.querySelectorAll("form[data-list]")) {
  const soon = (ms, replaces) => {
    clearTimeout(timer);
    timer = setTimeout(() => apply(form, replaces), ms);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply(form);
  });
  form.addEventListener("input", ({ target }) => target.type === "search" && soon(TYPED_MS, true));
  form.addEventListener("change", ({ target }) => {
    if (target.type === "date") soon(DAY_MS, false);
    else if (target.type !== "search") apply(form);
  });
}
if (document.querySelector("form[data-list]")) addEventListener("popstate", () => location.reload());
