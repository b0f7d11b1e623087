// A person's word on a proposal: approve it, whole or smaller, or reject it.

import { ask, tell } from "./ask.js";
import { refresh } from "./live.js";

/** The orders that are to become smaller; nothing can become larger. */
function edits(form) {
  return [...form.querySelectorAll(".shares")]
    .filter((each) => Number(each.value) !== Number(each.defaultValue))
    .map((each) => ({ asset: each.dataset.asset, quantity: each.value === "" ? "0" : each.value }));
}

const MONEY = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** What all orders come to, and came to as proposed; nothing where they are in several currencies. */
function total(form) {
  const fields = [...form.querySelectorAll(".shares")];
  const currencies = new Set(fields.map((each) => each.dataset.currency));
  if (!edits(form).length || currencies.size !== 1) return "";
  const sum = (of) => MONEY.format(fields.reduce((all, each) => all + Number(of(each)) * Number(each.dataset.price), 0));
  return `Orders of ${sum((each) => each.value)} ${[...currencies][0]}, of ${sum((each) => each.defaultValue)} proposed.`;
}

const SHARE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** The value and the share of an order follow its quantity; as proposed they stand as they came. */
function follow(field) {
  const [value, share] = field.closest("tr").querySelectorAll("[data-value], [data-share]");
  for (const each of [value, share]) each.dataset.proposed ??= each.textContent;
  const isEdited = Number(field.value) !== Number(field.defaultValue);
  const { price, currency } = field.dataset;
  const part = Number(field.value) / Number(field.defaultValue);
  value.textContent = isEdited ? `${MONEY.format(Number(field.value) * Number(price))} ${currency}` : value.dataset.proposed;
  share.textContent = isEdited ? `${SHARE.format(part * Number(share.dataset.share))}%` : share.dataset.proposed;
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("form.proposal");
  if (!form) return;
  if (event.target.matches(".shares")) follow(event.target);
  form.querySelector(".total").textContent = total(form);
  form.querySelector("[data-verdict=approve]").textContent = edits(form).length ? "Approve reduced" : "Approve";
  delete form.dataset.confirms;
});

/** What was changed is approved by a second press, with the new total before one's eyes. */
function confirm(form) {
  form.dataset.confirms = "yes";
  form.querySelector("[data-verdict=approve]").textContent = "Confirm the reduced orders";
  form.querySelector(".total").textContent = `${total(form)} Press again to approve.`.trim();
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form.proposal");
  if (!form) return;
  event.preventDefault();
  const verdict = event.submitter?.dataset.verdict ?? "approve";
  // What is more than was proposed is refused by the desk, and needs no confirming.
  const isLarger = [...form.querySelectorAll(".shares")].some((each) => Number(each.value) > Number(each.defaultValue));
  if (verdict === "approve" && edits(form).length && !isLarger && !form.dataset.confirms) return confirm(form);
  const wrong = form.querySelector(".wrong");
  const buttons = form.querySelectorAll("button");
  const said = {
    proposal_hash: form.dataset.hash,
    pipeline: form.dataset.pipeline,
    reason: form.elements.reason.value,
  };
  if (verdict === "approve") said.edits = edits(form);
  wrong.textContent = "";
  for (const each of buttons) each.disabled = true;
  try {
    await ask("POST", `/approvals/${form.dataset.cycle}/${verdict}`, said);
    const page = `/decisions/${form.dataset.cycle}/${form.dataset.pipeline}`;
    tell(verdict === "reject" ? "Rejected. Nothing is ordered." : "Approved. The orders are being placed.", "good", page);
    form.reset();
    form.contains(document.activeElement) && document.activeElement.blur();
    await refresh();
  } catch (error) {
    wrong.textContent = error.message;
    for (const each of buttons) each.disabled = false;
  }
});
