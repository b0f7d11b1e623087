// One event in a few words, as `deskbus tail` has it.

import { price } from "../price.js";

const FAILURES = new Set(["request_rejected", "operation_failed", "message_refused", "approval_expired"]);
const BAD_ENDS = new Set(["failed", "rejected", "expired"]);
const TONES = {
  operation_cancelled: "warn",
  position_unpriced: "warn",
  trading_halted: "warn",
  approval_requested: "warn",
  approval_decided: "busy",
  cycle_accepted: "busy",
  cycle_ended: "busy",
  decision: "busy",
  exits_checked: "busy",
  order_placed: "good",
  order_filled: "good",
  trading_resumed: "good",
  holdings_imported: "good",
  cash_deposited: "good",
  cash_withdrawn: "warn",
  outage_ended: "warn",
  letter_kept: "warn",
  report_written: "busy",
  notices_given_up: "warn",
};
const SAID_CHARS_MAX = 300;

/** Whether something went wrong. */
export function isFailure(event) {
  return FAILURES.has(event.type) || BAD_ENDS.has(event.data.status);
}

/** The tone of the style sheet for it. */
export function toneOf(event) {
  return isFailure(event) ? "bad" : TONES[event.type] || "";
}

/** What there is to say. */
export function describe(event) {
  const tell = TOLD[event.type];
  return (tell ? tell(event, event.data) : "").slice(0, SAID_CHARS_MAX);
}

const step = (event, data) => {
  const where = `${event.state || ""}/${data.step || ""}`;
  return data.message ? `${where}: ${data.message} (${data.code})` : where;
};

const call = (event, data) => {
  const parts = [step(event, {step: data.step}), data.name];
  if (data.duration_ms !== undefined) parts.push(`${Math.round(data.duration_ms)} ms`);
  let used = 0;
  for (const [sort, count] of Object.entries(data.usage || {})) if (sort.endsWith("_tokens")) used += count;
  if (used) parts.push(`${used.toLocaleString("en")} tokens`);
  if (data.fault) parts.push(`no reply (${data.fault})`);
  if (data.passed !== undefined) parts.push(data.passed ? "valid" : "not valid");
  return parts.join("  ");
};

const end = (_event, data) => (data.reason ? `${data.status}: ${data.reason}` : data.status || "");

const order = (_event, data) => {
  let text = `${data.side} ${data.quantity} ${data.asset} ${data.status}`;
  if (data.stop_price) text += `, stop at ${price(data.stop_price)}`;
  if (data.price) text += ` at ${price(data.price)} on ${data.session}`;
  return data.reason ? `${text}: ${data.reason}` : text;
};

const decision = (_event, data) => {
  const wanted = (data.decisions || []).map((each) => `${each.action} ${each.quantity} ${each.asset}`);
  const vetoed = data.vetoed_tickers || [];
  return (wanted.join(", ") || "nothing to execute") + (vetoed.length ? `; vetoed ${vetoed.join(", ")}` : "");
};

const halt = (_event, data) =>
  `${data.account || "every account"}, by ${data.by}${data.reason ? `: ${data.reason}` : ""}`;

const cash = (_event, data) =>
  `${price(data.amount)} of ${data.account}, from ${data.session} on, by ${data.by}`;

const imported = (_event, data) =>
  `account ${data.account} with ${(data.positions || []).length} positions, by ${data.by}`;

const letter = (_event, data) =>
  `${data.sequence} ${data.subject} (${data.code}) by ${data.by}${data.reason ? `: ${data.reason}` : ""}`;

const kept = (_event, data) => `${data.sequence} ${data.subject} (${data.code})`;

const second = (at) => `${String(at).slice(0, 19).replace("T", " ")} UTC`;

const outage = (_event, data) => `nothing could be committed from ${second(data.since)} to ${second(data.until)}`;

const report = (_event, data) => `of ${data.report?.account} for ${data.report?.session}`;

const givenUp = (_event, data) =>
  `${data.count} ${data.count === 1 ? "message" : "messages"} to ${data.channel} (${data.code})`;

const refused = (_event, data) =>
  data.message ? `${data.message} (${data.code})` : `${data.what} from ${data.service}, but it is ${data.owner}'s`;

const exits = (_event, data) =>
  (data.checks || []).map((each) => `${each.ticker} ${each.assessment || "not checked"}`).join(", ") ||
  "nothing is held";

const unpriced = (_event, data) =>
  `${data.ticker} of ${data.account} has no price, and counts at ${price(data.price)} of ${data.priced_on}`;

const TOLD = {
  state_entered: (event) => event.state || "",
  operation_started: step,
  operation_completed: step,
  operation_failed: step,
  operation_cancelled: step,
  llm_requested: call,
  llm_called: call,
  tool_called: call,
  data_read: call,
  answer_checked: call,
  cycle_ended: end,
  pipeline_ended: end,
  attempt_ended: end,
  order_placed: order,
  order_filled: order,
  order_rejected: order,
  order_cancelled: order,
  position_unpriced: unpriced,
  exits_checked: exits,
  decision,
  approval_requested: decision,
  approval_decided: (_event, data) => `${data.verdict} by ${data.approver}${data.reason ? ` (${data.reason})` : ""}`,
  approval_expired: (_event, data) => data.message || "",
  trading_halted: halt,
  trading_resumed: halt,
  holdings_imported: imported,
  cash_deposited: cash,
  cash_withdrawn: cash,
  request_rejected: refused,
  message_refused: refused,
  letter_retried: letter,
  letter_discarded: letter,
  letter_kept: kept,
  outage_ended: outage,
  report_written: report,
  notices_given_up: givenUp,
};
