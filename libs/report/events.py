"""The words of an event: one wording for the terminal, the pages, notices and reports. Pure.

Titles and lines are composed here, of numbers, dates, names of the desk's own grammar and tickers.
A reason, a headline, a model's or a person's words stand apart, in `reason`: a notice that leaves
the desk carries none of them. What does not look as its grammar says is left out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from contracts.account import OrderType, Side
from contracts.approval import Approval
from contracts.audit import Event, EventType, tells_failure
from contracts.capital import CashEvent, HoldingsEvent
from contracts.cycle import CycleStatus
from contracts.event_data import (
    EVENT_DATA,
    ApprovalRequested,
    CallEvent,
    CheckEvent,
    Ended,
    FillEvent,
    LetterEvent,
    LetterKept,
    MessageRefused,
    ModelCallEvent,
    ModelRequestEvent,
    OrderEvent,
    OutageEnded,
    Refused,
    StepEvent,
    StepFailedEvent,
    StepStoppedEvent,
    UnpricedEvent,
)
from contracts.exit_signal import ExitReport
from contracts.halt import HaltEvent
from contracts.notice import NoticesGivenUp
from contracts.report import DailyReport
from contracts.risk import DecisionAction, DecisionValidation, PortfolioDecision
from contracts.risk_use import LimitEvent
from contracts.types import NAME_PATTERN
from contracts.venue import LookEvent, OrderAlarm
from libs.facts import amounts
from libs.quant.ticks import priced
from libs.report import budgets, ending, orders, risk_use
from libs.report.approval import VERDICTS
from libs.report.ending import STEP
from libs.report.story import MADE_UP
from libs.report.tones import Tone
from libs.runtime import recorded_call

BUDGET_EXHAUSTED = "budget_exhausted"
TEXT_CHARS = 300
"""Of an event in one line."""
UNREADABLE = (ValidationError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""Raised by the data of an event that another version wrote."""
DIFFERENCES_SHOWN_MAX = 5
UNNAMED = "unknown"
"""Stands where a name is not one."""

_NAME = re.compile(NAME_PATTERN)
_CODE = re.compile(r"^[a-z][a-z0-9_.]{0,59}$")
_SUBJECT = re.compile(r"^[A-Za-z0-9_.$-]{1,120}$")


@dataclass(frozen=True)
class Described:
    """An event in words: a title, lines below it, and the reason in the words of whoever gave it
    (empty where the event has none). `data` is the event's data as read; None where this version
    cannot read it."""

    title: str
    lines: Sequence[str] = field(default=())
    reason: str = ""
    tone: Tone = Tone.QUIET
    data: Any = None

    @property
    def text(self) -> str:
        """All of it in one line: `title: reason; line; line`."""
        head = f"{self.title}: {self.reason}" if self.reason else self.title
        return amounts.cut("; ".join((head, *self.lines)), TEXT_CHARS)


TONES: Mapping[EventType, Tone] = {
    EventType.CYCLE_ACCEPTED: Tone.BUSY,
    EventType.CYCLE_ENDED: Tone.BUSY,
    EventType.PIPELINE_ENDED: Tone.BUSY,
    EventType.STATE_ENTERED: Tone.BUSY,
    EventType.OPERATION_CANCELLED: Tone.WARN,
    EventType.EXITS_CHECKED: Tone.BUSY,
    EventType.DECISION: Tone.BUSY,
    EventType.APPROVAL_REQUESTED: Tone.WARN,
    EventType.APPROVAL_DECIDED: Tone.BUSY,
    EventType.ORDER_PLACED: Tone.GOOD,
    EventType.ORDER_FILLED: Tone.GOOD,
    EventType.ORDER_CANCELLED: Tone.WARN,
    EventType.POSITION_UNPRICED: Tone.WARN,
    EventType.TRADING_HALTED: Tone.WARN,
    EventType.TRADING_RESUMED: Tone.GOOD,
    EventType.HOLDINGS_IMPORTED: Tone.GOOD,
    EventType.CASH_DEPOSITED: Tone.GOOD,
    EventType.CASH_WITHDRAWN: Tone.WARN,
    EventType.LIMIT_SET: Tone.WARN,
    EventType.OUTAGE_ENDED: Tone.WARN,
    EventType.LETTER_KEPT: Tone.WARN,
    EventType.REPORT_WRITTEN: Tone.BUSY,
    EventType.NOTICES_GIVEN_UP: Tone.WARN,
    EventType.BOOKS_DIFFER: Tone.BAD,
    EventType.BOOKS_AGREE: Tone.GOOD,
    EventType.ORDER_UNRESOLVED: Tone.BAD,
    EventType.LATE_FILL: Tone.BAD,
}
"""Of events that went well; one that reports a failure is bad."""


def described(event: Event) -> Described:
    """The event in words. Of data that this version cannot read, its type alone is named."""
    tone = tone_of(event)
    try:
        data = EVENT_DATA[event.type].model_validate(event.data)
        title, lines, reason = WORDINGS[event.type](event, data)
    except UNREADABLE:
        return Described(unreadable(event.type), tone=tone)
    return Described(title, tuple(lines), amounts.plain(reason), tone, data)


def unreadable(kind: str) -> str:
    """The sentence for an event of this type whose data this version cannot read."""
    return f"An event of type {kind}, which this version cannot read"


def is_failure(event: Event) -> bool:
    """Whether the event reports that something went wrong."""
    return tells_failure(event.type, event.data.get("status"))


def tone_of(event: Event) -> Tone:
    """Good or bad, as its type and status say."""
    return Tone.BAD if is_failure(event) else TONES.get(event.type, Tone.QUIET)


def account_of(event: Event) -> str | None:
    """The account that an event is about; None where it is about the whole desk."""
    account = event.data.get("account")
    name = account if isinstance(account, str) else (event.session_id or "").partition("/")[0]
    return name if _NAME.match(name) else None


def name_of(text: str | None) -> str:
    """A name of the desk's grammar; `unknown` for anything else."""
    return text if text and _NAME.match(text) else UNNAMED


Words = tuple[str, Sequence[str], str]
"""Title, lines, reason."""


def _words(title: str, *lines: str, reason: str = "") -> Words:
    return title, lines, reason


def _account(event: Event) -> str:
    return account_of(event) or UNNAMED


def _session(event: Event) -> str:
    """`Fri 2012-06-29`, of an event of a cycle."""
    day = (event.session_id or "").partition("/")[2]
    try:
        return amounts.session(datetime.fromisoformat(day).date())
    except ValueError:
        return UNNAMED


def _code(text: str | None) -> str:
    return text if text and _CODE.match(text) else UNNAMED


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _place(event: Event, step: str) -> str:
    """`analyzing/quant`."""
    place = f"{event.state or UNNAMED}/{step}"
    return place if STEP.fullmatch(place) else UNNAMED


# --- cycles and their steps -----------------------------------------------------------------------


def _accepted(event: Event, _: object) -> Words:
    return _words(f"Cycle of {_account(event)} for {_session(event)} accepted")


def _entered(event: Event, _: object) -> Words:
    return _words(f"{event.state or UNNAMED} begins")


def _ended(event: Event, data: Ended) -> Words:
    whose = {
        EventType.CYCLE_ENDED: f"Cycle of {_account(event)} for {_session(event)}",
        EventType.PIPELINE_ENDED: f"Pipeline {name_of(event.pipeline)}",
        EventType.ATTEMPT_ENDED: f"Attempt of {name_of(event.pipeline)}",
    }[event.type]
    step, _, why = data.reason.partition(" failed: ")
    failed_in = data.status is CycleStatus.FAILED and why and STEP.fullmatch(step)
    place = f" in {step}" if failed_in else ""
    return _words(f"{whose} {data.status.value}{place}", reason=why if place else data.reason)


def _step(event: Event, data: StepEvent) -> Words:
    verb = event.type.value.removeprefix("operation_")
    return _words(f"{_place(event, data.step)} {verb}")


def _step_stopped(event: Event, data: StepStoppedEvent) -> Words:
    return _words(f"{_place(event, data.step)} cancelled", reason=data.message)


def _step_failed(event: Event, data: StepFailedEvent) -> Words:
    place = f"{_place(event, data.step)} of {_account(event)}"
    if data.code == BUDGET_EXHAUSTED:
        title = f"Budget used up: {budgets.words(data.field) or UNNAMED}; {place} stops"
        return _words(title, reason=data.message)
    return _words(f"{place} failed ({_code(data.code)})", reason=data.message)


def _request_refused(_: Event, data: Refused) -> Words:
    if data.code == BUDGET_EXHAUSTED:
        title = f"Budget used up: a request by {name_of(data.requester)} was refused"
    else:
        title = f"A request by {name_of(data.requester)} was refused ({_code(data.code)})"
    return _words(title, reason=data.message)


def _message_refused(event: Event, data: MessageRefused) -> Words:
    return _words(
        f"{name_of(data.service)} sent a {data.what} for {_place(event, data.step)} of "
        f"{_account(event)}, which is {name_of(data.owner)}'s: it was refused"
    )


def _model_requested(event: Event, data: ModelRequestEvent) -> Words:
    name = recorded_call.label(data.name, "")
    return _words(f"{_place(event, data.step)} asks {name}")


def _call(event: Event, data: CallEvent) -> Words:
    # What other reads were asked for is no line's matter.
    asked = data.arguments if event.type is EventType.TOOL_CALLED else None
    name = recorded_call.label(data.name, recorded_call.about(asked))
    parts = [f"{_place(event, data.step)} {name}", amounts.duration(data.duration_ms / 1000)]
    fault = ""
    if isinstance(data, ModelCallEvent):
        estimated = " (estimated)" if data.usage_estimated else ""
        used = data.usage.tokens
        parts += [f"{used:,} tokens{estimated}"] if used else []
        fault = f"no reply ({data.fault})" if data.fault else ""
    if isinstance(data, CheckEvent):
        parts.append("valid" if data.passed else "not valid")
        return _words(", ".join(parts), reason=data.error or ("" if data.passed else data.result))
    return _words(", ".join(parts), reason=fault or data.error)


# --- decisions and orders -------------------------------------------------------------------------


def _orders(decisions: Sequence[PortfolioDecision], vetoed: Sequence[str] = ()) -> str:
    wanted = [
        f"{decision.action.value} {amounts.quantity(decision.quantity)} {decision.asset}"
        for decision in decisions
        if decision.action is not DecisionAction.HOLD
    ]
    return orders.proposal(wanted, vetoed) or "nothing to order"


def _decision(event: Event, data: DecisionValidation) -> Words:
    # An event ahead is named by whoever announced it.
    unnamed = [
        decision.model_copy(update={"plan": decision.plan.model_copy(update={"review_event": ""})})
        if decision.plan
        else decision
        for decision in data.decisions
    ]
    risks = orders.at_risk(data.model_copy(update={"decisions": tuple(unnamed)}))
    synthetic = [MADE_UP] if data.synthetic else []
    return _words(
        f"Decision of {_account(event)} for {amounts.session(data.as_of)}",
        ending.marked(_orders(data.decisions, data.vetoed_tickers), data.substitutes),
        *risks,
        *synthetic,
    )


def _exits(event: Event, data: ExitReport) -> Words:
    sold = [
        f"sell {amounts.quantity(check.quantity)} {check.ticker}"
        for check in data.checks
        if check.quantity is not None
    ]
    failures = {check.ticker: check.failure for check in data.checks if check.failure}
    failed = [f"{ticker} could not be checked" for ticker in failures]
    why = "; ".join(f"{ticker}: {failure.message}" for ticker, failure in failures.items())
    held = amounts.count(len(data.checks), "position")
    title = (
        f"Exits of {_account(event)} for {amounts.session(data.as_of)}: "
        f"{len(sold)} of {held} to sell"
    )
    return _words(title, *sold, *failed, *data.warnings, reason=why)


def is_stop(data: OrderEvent) -> bool:
    """Whether the order is a stop."""
    return data.type is OrderType.STOP


def _what(data: OrderEvent) -> str:
    """`sell 15 AAPL, stop at 215.02 USD`."""
    stop = data.stop_price
    at = f", stop at {amounts.price(stop)}" if is_stop(data) and stop else ""
    return f"{data.side.value} {amounts.quantity(data.quantity)} {data.asset}{at}"


def _order(event: Event, data: OrderEvent) -> Words:
    placed = event.type is EventType.ORDER_PLACED
    status = "" if placed else f" {data.status.value}"
    return _words(f"Order of {_account(event)}{status}: {_what(data)}", reason=data.reason)


def _filled(event: Event, data: FillEvent) -> Words:
    verb = "bought" if data.side is Side.BUY else "sold"
    stop = " by its stop" if is_stop(data) else ""
    traded = f"{verb} {amounts.quantity(data.quantity)} {data.asset} at {amounts.price(data.price)}"
    fee = amounts.money(data.fee)
    lines = [f"on {amounts.session(data.session)}, fee {fee}"]
    if data.foreign:
        lines.append(amounts.foreign(data.foreign))
    return _words(f"{_account(event)}: {traded}{stop}", *lines, reason=data.reason)


def _unpriced(event: Event, data: UnpricedEvent) -> Words:
    return _words(
        f"{data.ticker} of {_account(event)} has no price",
        f"it counts at {amounts.price(data.price)}, of {amounts.session(data.priced_on)}, and "
        "cannot be sold until it has a new one",
    )


# --- approvals ------------------------------------------------------------------------------------


def _approval_requested(event: Event, data: ApprovalRequested) -> Words:
    wanted = ending.marked(_orders(data.decisions), data.substitutes)
    return _words(f"{_account(event)} waits for your approval", wanted)


def _approval_answered(event: Event, data: Approval) -> Words:
    title = f"Proposal of {_account(event)} {VERDICTS[data.verdict]} by {name_of(data.approver)}"
    lines = [_orders(data.decisions)] if data.decisions else []
    return _words(title, *lines, reason=data.reason)


def _approval_expired(event: Event, data: StepFailedEvent) -> Words:
    title = f"Nobody answered the proposal of {_account(event)} in time: nothing is ordered"
    return _words(title, reason=data.message)


# --- what people did ------------------------------------------------------------------------------


def _halt(event: Event, data: HaltEvent) -> Words:
    whose = data.account or "every account"
    what = "halted" if event.type is EventType.TRADING_HALTED else "free again"
    return _words(f"Buys of {whose} are {what}, by {name_of(data.by)}", reason=data.reason)


def _books_differ(event: Event, data: LookEvent) -> Words:
    account = _account(event)
    shown = data.differences[:DIFFERENCES_SHOWN_MAX]
    lines = [f"{it.about or it.kind.value}: desk {it.desk}, broker {it.broker}" for it in shown]
    if more := len(data.differences) - len(shown):
        lines.append(f"and {more} more")
    title = f"The books of account {account} differ from the broker's: nothing is bought"
    return _words(title, *lines, f"deskbus account reconcile {account}", reason=data.reason)


def _books_agree(event: Event, data: LookEvent) -> Words:
    title = f"The books of account {_account(event)} agree with the broker's"
    return _words(title, reason=data.reason)


def _order_alarm(event: Event, data: OrderAlarm) -> Words:
    late = event.type is EventType.LATE_FILL
    what = "was filled after its end" if late else "is unresolved"
    title = f"The order of {data.asset} in account {_account(event)} {what} at the broker"
    return _words(title, f"deskbus orders show {data.order_id}", reason=data.what)


def _imported(event: Event, data: HoldingsEvent) -> Words:
    held = amounts.count(len(data.positions), "position")
    equity = amounts.money(data.equity)
    return _words(
        f"Account {_account(event)} was opened with {held}, {equity} in all, by {name_of(data.by)}"
    )


def _cash(event: Event, data: CashEvent) -> Words:
    amount = amounts.money(data.amount)
    way = "paid into" if event.type is EventType.CASH_DEPOSITED else "taken out of"
    return _words(
        f"{amount} were {way} {_account(event)} by {name_of(data.by)}",
        f"from {amounts.session(data.session)} on",
    )


def _limit_set(_: Event, data: LimitEvent) -> Words:
    before, value = (risk_use.amount_of(data.limit, it) for it in (data.before, data.value))
    setting = risk_use.setting(data.limit, data.account)
    return _words(
        f"{setting} was set to {value} by {name_of(data.by)}; before, it was {before}",
        "in force when execution starts the next time",
    )


def _letter(event: Event, data: LetterEvent) -> Words:
    verb = event.type.value.removeprefix("letter_")
    title = f"{_dead_letter(data.sequence, data.subject, data.code)} {verb} by {name_of(data.by)}"
    return _words(title, reason=data.reason)


# --- the desk itself ------------------------------------------------------------------------------


def _letter_kept(_: Event, data: LetterKept) -> Words:
    return _words(_dead_letter(data.sequence, data.subject, data.code))


def _dead_letter(sequence: int, subject: str, code: str) -> str:
    safe = subject if _SUBJECT.match(subject) else UNNAMED
    return f"Dead letter {sequence}: {safe} ({_code(code)})"


def _outage(_: Event, data: OutageEnded) -> Words:
    span = f"from {_utc(data.since)} to {_utc(data.until)}"
    if data.beats_lost is not None:
        title = "Postgres has lost commits: compare orders and bills with what you know"
        return _words(title, f"{span}, by a failover to a standby behind")
    if data.clock_jump_s is not None:
        way = "ahead" if data.clock_jump_s > 0 else "back"
        by = amounts.roughly(timedelta(seconds=abs(data.clock_jump_s)))
        title = f"The clock of Postgres jumped {way} by {by}"
        return _words(title, f"{span}; limits and leases moved with it")
    title = f"The desk stood still for {amounts.between(data.since, data.until)} and goes on"
    return _words(title, f"nothing could be committed {span}")


def _report(event: Event, data: DailyReport) -> Words:
    report = data.report
    if report.worth is None:
        worth = "its worth is not known"
    else:
        currency = report.currency
        equity = amounts.money(priced(report.worth.equity, currency))
        earned = amounts.change(priced(report.worth.earned.whole, currency))
        ever = amounts.change(priced(report.worth.ever.whole, currency))
        worth = f"worth {equity}, {earned} since the session before, {ever} in all"
    fills = amounts.count(len(report.fills), "fill")
    needs = needs_of(data)
    return _words(
        f"Report of {_account(event)} for {amounts.session(report.session)}",
        worth,
        f"{fills}, {amounts.count(len(report.held), 'position')} held",
        *([f"needs you: {', '.join(needs)}"] if needs else []),
    )


def needs_of(data: DailyReport) -> Sequence[str]:
    """The things a report asks its reader to look at, each once: `no price`."""
    return tuple(dict.fromkeys(need.what.replace("_", " ") for need in data.report.attention))


def _given_up(_: Event, data: NoticesGivenUp) -> Words:
    count = amounts.count(data.count, "message")
    return _words(
        f"{count} to channel {data.channel} could not be delivered ({_code(data.code)})",
        f"the oldest is of {_utc(data.oldest_at)}; they were given up",
    )


WORDINGS: Mapping[EventType, Callable[..., Words]] = {
    EventType.REQUEST_REJECTED: _request_refused,
    EventType.CYCLE_ACCEPTED: _accepted,
    EventType.CYCLE_ENDED: _ended,
    EventType.PIPELINE_ENDED: _ended,
    EventType.ATTEMPT_ENDED: _ended,
    EventType.STATE_ENTERED: _entered,
    EventType.OPERATION_STARTED: _step,
    EventType.OPERATION_COMPLETED: _step,
    EventType.OPERATION_FAILED: _step_failed,
    EventType.OPERATION_CANCELLED: _step_stopped,
    EventType.LLM_REQUESTED: _model_requested,
    EventType.LLM_CALLED: _call,
    EventType.TOOL_CALLED: _call,
    EventType.DATA_READ: _call,
    EventType.ANSWER_CHECKED: _call,
    EventType.MESSAGE_REFUSED: _message_refused,
    EventType.ORDER_PLACED: _order,
    EventType.ORDER_FILLED: _filled,
    EventType.ORDER_REJECTED: _order,
    EventType.ORDER_CANCELLED: _order,
    EventType.POSITION_UNPRICED: _unpriced,
    EventType.EXITS_CHECKED: _exits,
    EventType.DECISION: _decision,
    EventType.LETTER_RETRIED: _letter,
    EventType.LETTER_DISCARDED: _letter,
    EventType.APPROVAL_REQUESTED: _approval_requested,
    EventType.APPROVAL_DECIDED: _approval_answered,
    EventType.APPROVAL_EXPIRED: _approval_expired,
    EventType.TRADING_HALTED: _halt,
    EventType.TRADING_RESUMED: _halt,
    EventType.HOLDINGS_IMPORTED: _imported,
    EventType.CASH_DEPOSITED: _cash,
    EventType.CASH_WITHDRAWN: _cash,
    EventType.LIMIT_SET: _limit_set,
    EventType.OUTAGE_ENDED: _outage,
    EventType.LETTER_KEPT: _letter_kept,
    EventType.REPORT_WRITTEN: _report,
    EventType.NOTICES_GIVEN_UP: _given_up,
    EventType.BOOKS_DIFFER: _books_differ,
    EventType.BOOKS_AGREE: _books_agree,
    EventType.ORDER_UNRESOLVED: _order_alarm,
    EventType.LATE_FILL: _order_alarm,
}
