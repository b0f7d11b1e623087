// The list of cycles: rows are selected, to be compared or, those that run, cancelled.

import { ask, tell } from "../ask.js";
import { refresh } from "../live.js";
import "./rows.js";

const COMPARED_MIN = 2;
const form = () => document.querySelector("form.picks");
const picked = () => [...(form()?.querySelectorAll("input[name=id]:checked") ?? [])];

function show() {
  const compare = form()?.querySelector("[data-compare]");
  if (!compare) return;
  const chosen = picked();
  const running = chosen.filter((box) => "runs" in box.dataset);
  const note = form().querySelector("[data-picked]");
  note.dataset.words ??= note.textContent;
  const max = Number(note.dataset.words.match(/\d+/)[0]);
  compare.disabled = chosen.length < COMPARED_MIN || chosen.length > max;
  form().querySelector("[data-cancel]").disabled = !running.length;
  const runs = running.length ? `, ${running.length} of them running` : "";
  note.textContent = chosen.length ? `${chosen.length} selected${runs}.` : note.dataset.words;
}

async function cancel(button) {
  const running = picked().filter((box) => "runs" in box.dataset);
  const what = running.length === 1 ? "this cycle" : `these ${running.length} cycles`;
  if (!confirm(`Cancel ${what}? Results stay on record; no order is placed.`)) return;
  button.disabled = true;
  const ends = await Promise.allSettled(
    running.map((box) => ask("DELETE", `/cycles/${box.value}?reason=cancelled%20in%20the%20console`)),
  );
  const done = ends.filter((end) => end.status === "fulfilled").length;
  if (done) tell(`${done} ${done === 1 ? "cycle is" : "cycles are"} cancelled.`);
  for (const end of ends) if (end.status === "rejected") tell(end.reason.message, "bad");
  for (const box of picked()) box.checked = false;
  button.blur();
  await refresh();
  show();
}

document.addEventListener("change", (event) => event.target.matches("form.picks input[name=id]") && show());
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-cancel]");
  if (button) cancel(button);
});
document.addEventListener("deskbus:refreshed", show);
show();
