// The form becomes the body of POST /cycles; then to the cycle's page.

import { ask } from "./ask.js";

const form = document.getElementById("request");
const wrong = document.getElementById("wrong");
// One key a form: pressed twice, or sent again after a lost answer, it is still one cycle.
const bytes = crypto.getRandomValues(new Uint8Array(12));
const key = `page-${[...bytes].map((each) => each.toString(16).padStart(2, "0")).join("")}`;
let asked = null;

const listed = (text) => text.split(/[\s,]+/).filter(Boolean);

/** `rules@paper` as a pipeline; the first trades main where nothing is said, the others their own. */
function pipeline(text, index) {
  const [, name, provider, account] = /^(?:([^=@]+)=)?([^=@]+)(?:@([^=@]+))?$/.exec(text) || [];
  if (!provider) throw new Error(`${text} is not valid: write PROVIDER or PROVIDER@ACCOUNT`);
  const own = name || provider;
  return { name: own, provider, account: account || (index ? own : "main") };
}

function body() {
  const given = form.elements;
  const made = { kind: given.kind.value, pipelines: listed(given.pipelines.value).map(pipeline) };
  if (given.as_of.value) made.as_of = given.as_of.value;
  const universe = listed(given.universe.value.toUpperCase());
  if (universe.length) made.universe = universe;
  if (given.timeout_s.value) made.timeout_s = Number(given.timeout_s.value);
  if (given.approval.checked) made.approval_required = true;
  const budgets = {};
  if (given.money.value) budgets.money = { amount: given.money.value.replaceAll(",", "") };
  if (given.tokens.value) budgets.tokens = Number(given.tokens.value);
  if (given.cost_usd.value) budgets.cost_usd = given.cost_usd.value;
  if (Object.keys(budgets).length) made.budgets = budgets;
  return made;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  wrong.textContent = "";
  const button = form.querySelector("button[type=submit]");
  button.disabled = true;
  try {
    const said = body();
    // What was refused, and is another now, is another request.
    if (asked !== null && JSON.stringify(said) !== asked.body) asked.turn += 1;
    asked = { turn: asked?.turn ?? 0, body: JSON.stringify(said) };
    const made = await ask("POST", "/cycles", said, { "Idempotency-Key": `${key}-${asked.turn}` });
    location.assign(`/cycles/${made.cycle_id}`);
  } catch (error) {
    wrong.textContent = error.message;
    button.disabled = false;
  }
});
