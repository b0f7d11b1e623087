// The panel beside a cycle's tree. It shows the part of the page that a link leads to: without a
// script the link leads there itself. What is open stands in the address, behind the #.

import { toLogin } from "../ask.js";
import { addKeys } from "../keys/keys.js";
import { dress } from "./part.js";

const PAGE = /^\/operations\/[0-9a-f-]{36}(\/calls\/\d{1,5})?(\?(call=E\d{1,5}|first=\d{1,5}))?$/;
const PATIENCE_MS = 10_000;
const SHEET = matchMedia("(max-width: 860px)");

const panel = document.getElementById("panel");
const body = panel.querySelector(".panel-body");
const tree = document.getElementById("tree");
let shown = "";
let selected = "";
let asked = 0;

/** The page that a link leads to, if the panel can show it: without what stands behind the #. */
function pageOf(link) {
  const url = new URL(link.href, location.href);
  const page = url.pathname + url.search;
  return url.origin === location.origin && PAGE.test(page) ? page : "";
}

const links = () => [...tree.querySelectorAll("a.opens")].filter((each) => each.offsetParent !== null);
const linkAt = (page) => tree.querySelector(`a.opens[href="${CSS.escape(page)}"]`);
/** The link of a page; where a call has none in the tree, that of its operation. */
const linkTo = (page) => linkAt(page) ?? linkAt(page.replace(/(\/calls\/.*|\?.*)$/, ""));

function mark() {
  for (const row of tree.querySelectorAll("[aria-current]")) row.removeAttribute("aria-current");
  linkTo(selected)?.closest(".row").setAttribute("aria-current", "true");
}

async function partOf(page) {
  const answer = await fetch(page, {
    headers: { Accept: "text/html" },
    redirect: "manual",
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (answer.type === "opaqueredirect") return toLogin();
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  return fresh.getElementById("part") ?? fresh.querySelector(".problem");
}

/** Put a page's part into the panel. What was folded by hand stays so where it is the same page. */
async function fill(page) {
  const number = ++asked;
  body.setAttribute("aria-busy", "true");
  let part;
  try {
    part = await partOf(page);
  } catch {
    part = document.createElement("p");
    part.textContent = "The desk does not answer.";
  }
  if (number !== asked || !part) return;
  if (page === shown) keepFolds(part);
  body.replaceChildren(...part.childNodes);
  body.toggleAttribute("data-running", part.hasAttribute("data-running"));
  body.removeAttribute("aria-busy");
  if (page !== shown) body.scrollTop = 0;
  shown = page;
  document.getElementById("panel-page").href = page;
  dress();
  const sought = new URL(page, location.href).searchParams.get("call");
  if (sought) body.querySelector(`#${sought}`)?.scrollIntoView();
}

function keepFolds(part) {
  for (const each of body.querySelectorAll("details[id]")) {
    const same = part.querySelector(`#${CSS.escape(each.id)}`);
    if (same) same.open = each.open;
  }
}

/** As a sheet it covers everything: nothing behind it can be reached then. */
function cover(open) {
  const sheet = open && SHEET.matches;
  const behind = [...panel.parentElement.children, document.querySelector(".top"), document.querySelector(".side")];
  for (const each of behind) if (each !== panel) each.inert = sheet;
  sheet ? panel.setAttribute("aria-modal", "true") : panel.removeAttribute("aria-modal");
  panel.setAttribute("role", sheet ? "dialog" : "complementary");
}

const isOpen = () => !panel.hidden;

function lay(open) {
  panel.hidden = !open;
  document.body.classList.toggle("panel-open", open);
  cover(open);
}

/** Show what the address says. */
async function follow() {
  const page = decodeURIComponent(location.hash.slice(1));
  if (!PAGE.test(page)) return isOpen() && lay(false);
  selected = linkTo(page)?.getAttribute("href") ?? selected;
  mark();
  lay(true);
  linkTo(selected)?.closest(".row").scrollIntoView({ block: "nearest" });
  await fill(page);
}

async function open(page, { move = false } = {}) {
  const address = `#${page}`;
  isOpen() && move ? history.replaceState(null, "", address) : history.pushState(null, "", address);
  await follow();
  if (!move) panel.focus();
}

function close() {
  if (!isOpen()) return false;
  history.pushState(null, "", location.pathname + location.search);
  lay(false);
  linkTo(selected)?.focus();
  return true;
}

/** Go to the next step or the one before; an open panel goes along. */
function step(by) {
  const all = links();
  if (!all.length) return;
  const at = all.findIndex((each) => each.getAttribute("href") === selected);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  selected = next.getAttribute("href");
  mark();
  next.focus({ preventScroll: true });
  next.closest(".row").scrollIntoView({ block: "nearest" });
  if (isOpen()) open(selected, { move: true });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("#tree a.opens, .panel-body a[href]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const page = pageOf(link);
  if (!page) return;
  event.preventDefault();
  open(page);
});
document.getElementById("panel-close").addEventListener("click", close);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (close()) event.preventDefault();
});
addEventListener("popstate", follow);
SHEET.addEventListener("change", () => cover(isOpen()));
document.addEventListener("deskbus:refreshed", () => {
  mark();
  if (isOpen() && body.hasAttribute("data-running") && !isRead()) fill(shown);
});

/** Whether somebody has the panel's text marked, or the focus in it: it is left alone then. */
function isRead() {
  const selection = getSelection();
  if (!selection.isCollapsed && body.contains(selection.anchorNode)) return true;
  return body.contains(document.activeElement) && document.activeElement !== body;
}

addKeys("This cycle", [
  { keys: "j", words: "Next step", run: () => step(1) },
  { keys: "k", words: "Step before", run: () => step(-1) },
  { keys: "Enter", words: "Open the step beside the tree", run: () => (selected ? open(selected) : false) },
  { keys: "Escape", words: "Close what is open", run: () => false },
]);
follow();
