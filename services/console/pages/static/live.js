// Keeps the regions marked `data-live` (each with an id) as they are at the desk: the page itself is
// read again, and what differs takes the old one's place. Rests while the page is hidden, and leaves
// a region alone in which somebody has typed, selects, or has the focus.

import { toLogin } from "./ask.js";

const shown = new Map();
const words = document.getElementById("connection");
const PATIENCE_MS = 10_000;
const LOOK_MS = 10_000;
let timer = 0;
let lost = false;
let answeredAt = new Date(); // of what is shown

const everyMs = () => Number(document.getElementById("main")?.dataset.liveS || 0) * 1000;

/** Read the page again now. Resolves once what has changed is shown. */
export async function refresh() {
  clearTimeout(timer);
  const asked = location.pathname + location.search;
  try {
    const answer = await fetch(location.href, {
      headers: { Accept: "text/html" },
      redirect: "manual",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (answer.type === "opaqueredirect") return toLogin();
    // A filter that cannot be is answered with a page too, which says why.
    const isPage = answer.ok || answer.status === 422;
    const fresh = isPage && new DOMParser().parseFromString(await answer.text(), "text/html");
    // Meanwhile another filter was chosen: its own page is on the way.
    if (fresh && asked === location.pathname + location.search) put(fresh);
    if (isPage) answeredAt = new Date();
    says(isPage);
  } catch {
    says(false);
  }
  plan();
}

function put(fresh) {
  if (document.querySelector("[data-problem]")) return location.reload();
  let changed = false;
  const every = fresh.getElementById("main")?.dataset.liveS;
  if (every !== undefined) document.getElementById("main").dataset.liveS = every;
  for (const region of document.querySelectorAll("[data-live]")) {
    const coming = fresh.getElementById(region.id);
    if (!coming || isInUse(region) || shown.get(region.id) === coming.innerHTML) continue;
    keepOpen(region, coming);
    shown.set(region.id, coming.innerHTML);
    region.replaceChildren(...coming.childNodes);
    changed = true;
  }
  if (changed) document.dispatchEvent(new Event("deskbus:refreshed"));
}

const isChanged = (field) =>
  field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;

function isInUse(region) {
  if ([...region.querySelectorAll("input, textarea")].some(isChanged)) return true;
  const active = document.activeElement;
  if (active && active !== document.body && region.contains(active)) return true;
  const selection = getSelection();
  return !selection.isCollapsed && region.contains(selection.anchorNode);
}

function keepOpen(region, coming) {
  for (const details of region.querySelectorAll("details[id]")) {
    const same = coming.querySelector(`#${CSS.escape(details.id)}`);
    if (same) same.open = details.open;
  }
}

/** Figures of a desk that is away stay to be read, greyed, with the time they are of. */
function says(isThere) {
  if (lost === !isThere) return;
  lost = !isThere;
  const at = answeredAt.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
  words.textContent = lost ? `The desk does not answer: as of ${at} UTC` : "";
  words.classList.toggle("lost", lost);
  document.body.classList.toggle("stale", lost);
}

/** A page that is not read again still shows whether there is a desk behind it, and a database behind
 * that: the budget is a few rows of it. */
async function look() {
  try {
    const answer = await fetch("/api/v1/budget", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    says(answer.status < 500);
  } catch {
    says(false);
  }
  plan();
}

function plan() {
  clearTimeout(timer);
  const every = everyMs();
  if (!document.hidden) timer = setTimeout(every ? refresh : look, every || LOOK_MS);
}

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : everyMs() ? refresh() : look()));
plan();
