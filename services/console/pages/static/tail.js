// The live tail's page: the filter in the URL, pause by button and by scrolling up, one event's detail.

import { Counts } from "./tail/counts.js";
import { List } from "./tail/list.js";
import { ROWS_MAX, Rows } from "./tail/rows.js";
import { sieve } from "./tail/sieve.js";
import { Stream } from "./tail/stream.js";
import "./trace/part.js";

const BACK = 500;
const BACK_FILTERED = 10_000; // events that are looked through for those that are wanted
const HIDDEN_MS = 5_000; // a hidden page lets its stream go; it resumes without loss
const FILTERS = ["type", "service", "cycle_id"];
const SOUGHT = ["text", "from", "until"]; // looked for here, in what the desk sends
const APPROVALS = ["approval_requested", "approval_decided", "approval_expired"];
const DECIDES = new Set(["exits_checked", "decision", ...APPROVALS, "order_placed"]); // a decision's page tells of them

const by = (id) => document.getElementById(id);
const box = by("tail");
const form = by("filter");
const rows = new Rows();
const list = new List(box, rows, tell);
const counts = new Counts(by("counts"), by("counted"), (type) => {
  form.elements.type.value = type;
  form.requestSubmit();
});
let wanted = null;
let isRefused = false;
let stream = null;
let state = "off";
let seen = 0; // the end of the rows when it was followed last
let hiding = 0;
let opened = -1; // the number of the row whose detail is shown

// --- the stream -----------------------------------------------------------------------------------

/** The filter that is set, as it stands in the URL. */
function filter() {
  const found = new URLSearchParams();
  for (const name of [...FILTERS, ...SOUGHT]) {
    const value = form.elements[name].value.trim();
    if (value) found.set(name, value);
  }
  if (form.elements.errors.checked) found.set("errors", "true");
  return found;
}

/** Begin anew with the filter that is set. */
function begin() {
  stream?.close();
  rows.clear();
  counts.clear();
  hideDetail();
  seen = 0;
  isRefused = false;
  by("wrong").textContent = "";
  const asked = filter();
  asked.set("back", String(asked.size ? BACK_FILTERED : BACK));
  wanted = sieve(Object.fromEntries(SOUGHT.map((name) => [name, asked.get(name) || ""])));
  for (const name of SOUGHT) asked.delete(name);
  stream = new Stream(asked, {
    events: take,
    gap: (told) => take([{ gap: told }]),
    state: (now) => {
      state = now;
      tell();
    },
    refused: (why) => {
      isRefused = true;
      // Of a slip the name that was meant says enough; else all there are.
      by("wrong").textContent = why.replace(/; known: .*(?=; did you mean)/, "");
      tell();
    },
  });
  stream.open();
  list.following = true;
}

function take(sent) {
  const found = wanted ? sent.filter(wanted) : sent;
  if (!found.length) return;
  counts.add(found);
  rows.add(found);
  if (!hasRoom()) stream.close(); // the rest is fetched when a person goes on
  list.draw();
}

/** Whether more may come without taking from under the eyes what a person has stopped to read. */
function hasRoom() {
  return list.following || rows.end - seen < ROWS_MAX / 2;
}

function follow() {
  list.following = true;
  stream.open();
}

function pauseOrFollow() {
  if (list.following) list.following = false;
  else follow();
}

// --- what is said of it -----------------------------------------------------------------------------

function tell() {
  if (list.following) seen = rows.end;
  const fresh = rows.end - seen;
  by("new").hidden = fresh === 0;
  by("new-count").textContent = `${fresh.toLocaleString("en")}${hasRoom() ? "" : " or more"} new`;
  by("pause").setAttribute("aria-pressed", String(!list.following));
  by("pause-words").textContent = list.following ? "Pause" : "Resume";
  const [words, tone] = list.following
    ? isRefused
      ? ["refused", "bad"]
      : { live: ["live", "good"], lost: ["connecting again", "bad"], off: ["resting", "warn"] }[state]
    : ["paused", "warn"];
  if (by("state").textContent !== words) by("state").textContent = words;
  by("state").className = `status ${tone}`;
  by("none").hidden = rows.end > 0 || isRefused;
  by("none-back").hidden = !wanted;
  by("dropped").hidden = rows.first === 0;
  by("dropped-count").textContent = rows.first.toLocaleString("en");
}

// --- one event ----------------------------------------------------------------------------------------

function showDetail(number) {
  const row = rows.at(number);
  if (!row) return;
  list.following = false;
  list.select(number);
  opened = number;
  by("detail").hidden = false;
  by("detail-title").textContent = row.gap ? "gap" : row.type;
  by("json").textContent = JSON.stringify(row.gap || row, null, 2);
  by("links").replaceChildren(...(row.gap ? [] : linksOf(row)));
}

/** Where an event leads, the most particular first. */
function linksOf(event) {
  const cycle = encodeURIComponent(event.cycle_id);
  const found = [];
  if (event.pipeline && DECIDES.has(event.type))
    found.push(link(`/decisions/${cycle}/${encodeURIComponent(event.pipeline)}`, "Decision"));
  const operation = event.data.op_id || (event.data.step && event.op_id);
  if (operation) found.push(link(`/operations/${encodeURIComponent(operation)}`, "Operation"));
  found.push(link(`/cycles/${cycle}`, "Cycle"), link(`/tail?cycle_id=${cycle}`, "Only this cycle"));
  return found;
}

function link(href, words) {
  const made = document.createElement("a");
  made.href = href;
  made.textContent = words;
  made.className = "button";
  return made;
}

/** Open the chosen event; where it is open, go where it leads first. */
function openOrGo() {
  if (list.selected >= 0 && list.selected === opened) by("links").firstElementChild?.click();
  else showDetail(list.selected);
}

function hideDetail() {
  by("detail").hidden = true;
  opened = -1;
  list.selected = -1;
  list.draw();
}

// --- what a person does ---------------------------------------------------------------------------------

box.addEventListener("click", (event) => showDetail(list.numberOf(event.target)));
box.addEventListener("scroll", () => list.following && !document.hidden && stream.open(), { passive: true });
by("pause").addEventListener("click", pauseOrFollow);
for (const [id, act] of [["close", hideDetail], ["new", follow]]) {
  by(id).addEventListener("click", () => {
    act();
    box.focus();
  });
}

let begun = "";
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const query = filter().toString();
  if (query === begun) return;
  begun = query;
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
  begin();
});
form.addEventListener("change", () => form.requestSubmit());

const chosen = () => (list.selected < 0 ? rows.end : list.selected);
const MOVES = {
  ArrowDown: () => chosen() + 1,
  ArrowUp: () => chosen() - 1,
  PageDown: () => chosen() + list.page,
  PageUp: () => chosen() - list.page,
  Home: () => rows.first,
};
const ACTS = {
  End: follow,
  Enter: openOrGo,
  Escape: hideDetail,
  " ": pauseOrFollow,
};
box.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const move = MOVES[event.key];
  if (move) {
    list.following = false;
    list.select(move());
  } else if (ACTS[event.key]) ACTS[event.key]();
  else return;
  event.preventDefault();
});

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => stream.close(), HIDDEN_MS);
  else if (hasRoom()) stream.open();
});

begun = filter().toString();
begin();
