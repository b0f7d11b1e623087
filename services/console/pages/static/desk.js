// What every page has: the theme's switch, the menu, logging out, countdowns, keys, the search, live
// regions, tables that fit.

import { ask, tell } from "./ask.js";
import "./halt.js";
import "./keys/help.js";
import "./keys/palette.js";
import "./lists/filters.js";
import "./live.js";
import "./tables.js";
import { switchTheme } from "./themed.js";

document.getElementById("theme").addEventListener("click", switchTheme);

const menu = document.getElementById("menu");
function setMenu(open) {
  menu.setAttribute("aria-expanded", String(open));
  document.body.classList.toggle("menu-open", open);
}
menu.addEventListener("click", () => setMenu(menu.getAttribute("aria-expanded") !== "true"));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !document.body.classList.contains("menu-open")) return;
  setMenu(false);
  menu.focus();
});

document.getElementById("log-out")?.addEventListener("click", async () => {
  try {
    await ask("DELETE", "/session");
    location.assign("/login");
  } catch (error) {
    tell(error.message, "bad");
  }
});

// A filter stands in the address: what is not chosen is left out of it.
for (const form of document.querySelectorAll("form.filter:not([data-list])")) {
  form.addEventListener("change", () => form.requestSubmit());
  form.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
  });
}

/** `4 min 05 s left`, `2 h 10 min left`, `6 days 23 h left`. */
function left(seconds) {
  if (seconds <= 0) return "expired";
  const s = Math.floor(seconds % 60);
  const m = Math.floor(seconds / 60) % 60;
  const h = Math.floor(seconds / 3600);
  const days = Math.floor(h / 24);
  if (days > 1) return `${days} days ${h % 24} h left`;
  if (h) return `${h} h ${String(m).padStart(2, "0")} min left`;
  return m ? `${m} min ${String(s).padStart(2, "0")} s left` : `${s} s left`;
}

function countDown() {
  for (const each of document.querySelectorAll("[data-until]")) {
    const text = left((new Date(each.dataset.until) - Date.now()) / 1000);
    if (each.textContent !== text) each.textContent = text;
  }
}
/** `in 2 h 10 min`; a moment that has come is `now`. */
function countTo() {
  for (const each of document.querySelectorAll("[data-in]")) {
    const text = left((new Date(each.dataset.in) - Date.now()) / 1000);
    each.textContent = text === "expired" ? "now" : `in ${text.replace(/ left$/, "")}`;
  }
}
document.addEventListener("deskbus:refreshed", countTo);
countTo();
setInterval(countTo, 1000);
countDown();
setInterval(countDown, 1000);
document.addEventListener("deskbus:refreshed", countDown);
