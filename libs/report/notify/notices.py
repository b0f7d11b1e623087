"""One event as a message to people. Pure.

Every sentence is composed here, of numbers, dates, names of the desk's own grammar and tickers: a
reason, a headline, a model's or a person's words are never in it. What does not look as its grammar
says is left out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import ValidationError

from contracts.account import OrderType, Side
from contracts.approval import Approval
from contracts.audit import Event, EventType
from contracts.capital import CashEvent, HoldingsEvent
from contracts.cycle import CycleStatus
from contracts.event_data import (
    EVENT_DATA,
    ApprovalRequested,
    Ended,
    FillEvent,
    LetterKept,
    MessageRefused,
    OrderEvent,
    OutageEnded,
    Refused,
    StepFailedEvent,
    UnpricedEvent,
)
from contracts.exit_signal import ExitReport
from contracts.halt import HaltEvent
from contracts.notice import (
    LINE_CHARS_MAX,
    LINES_MAX,
    TITLE_CHARS_MAX,
    Notice,
    NoticeKind,
    NoticesGivenUp,
    Severity,
)
from contracts.report import DailyReport
from contracts.risk import DecisionAction, DecisionValidation, PortfolioDecision
from contracts.schedule import SCHEDULE
from contracts.types import NAME_PATTERN
from libs.facts import amounts
from libs.report import orders
from libs.report.approval import VERDICTS
from libs.report.ending import STEP
from libs.report.notify import budgets
from libs.report.story import MADE_UP

BUDGET_EXHAUSTED = "budget_exhausted"
UNREADABLE = (ValidationError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""What goes wrong with the data of an event that another version wrote."""
UNNAMED = "unknown"
"""What stands where a name is not one."""

_NAME = re.compile(NAME_PATTERN)
_CODE = re.compile(r"^[a-z][a-z0-9_.]{0,59}$")
_SUBJECT = re.compile(r"^[A-Za-z0-9_.$-]{1,120}$")


@dataclass(frozen=True)
class Telling:
    """The words on an event: a title, lines below it, the console's page about it."""

    kind: NoticeKind
    severity: Severity
    title: str
    lines: Sequence[str] = field(default=())
    page: str = ""
    expires_at: datetime | None = None


def of(event: Event) -> Notice:
    """The event as a notice. One that this version cannot read is told by its type alone."""
    account = account_of(event)
    try:
        data = EVENT_DATA[event.type].model_validate(event.data)
        telling = TELLINGS[event.type](event, data, account or UNNAMED)
    except UNREADABLE:
        title = f"An event of type {event.type.value}, which this version cannot read"
        telling = Telling(NoticeKind.FAILURE, Severity.WARNING, title)
    lines = [amounts.cut(line, LINE_CHARS_MAX) for line in telling.lines]
    if len(lines) > LINES_MAX:
        lines = [*lines[: LINES_MAX - 1], f"and {len(lines) - LINES_MAX + 1} more"]
    return Notice(
        event_id=event.event_id,
        kind=telling.kind,
        severity=telling.severity,
        event=event.type.value,
        at=event.at,
        account=account,
        cycle_id=event.cycle_id if event.session_id else None,
        title=amounts.cut(telling.title, TITLE_CHARS_MAX),
        lines=tuple(lines),
        page=telling.page,
        expires_at=telling.expires_at,
    )


def test(channel: str, event_id: object, at: datetime) -> Notice:
    """The message that tests a channel."""
    return Notice.model_validate(
        {
            "event_id": event_id,
            "kind": NoticeKind.TEST,
            "severity": Severity.INFO,
            "event": "test",
            "at": at,
            "title": f"A test of channel {channel}",
            "lines": ["Deskbus can reach you here."],
        }
    )


def account_of(event: Event) -> str | None:
    """The account that an event is about; None where it is about the whole desk."""
    account = event.data.get("account")
    name = account if isinstance(account, str) else (event.session_id or "").partition("/")[0]
    return name if _NAME.match(name) else None


def _session(event: Event) -> str:
    """`Fri 2012-06-29`, of an event of a cycle."""
    day = (event.session_id or "").partition("/")[2]
    try:
        return amounts.session(datetime.fromisoformat(day).date())
    except ValueError:
        return UNNAMED


def _page(event: Event) -> str:
    return f"/cycles/{event.cycle_id}"


def _name(text: str | None) -> str:
    return text if text and _NAME.match(text) else UNNAMED


def _code(text: str | None) -> str:
    return text if text and _CODE.match(text) else UNNAMED


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _step(event: Event, step: str) -> str:
    place = f"{event.state or UNNAMED}/{step}"
    return place if STEP.fullmatch(place) else UNNAMED


# --- decisions and orders -------------------------------------------------------------------------


def _decided(decisions: Sequence[PortfolioDecision], vetoed: Sequence[str] = ()) -> str:
    wanted = [
        f"{decision.action.value} {amounts.quantity(decision.quantity)} {decision.asset}"
        for decision in decisions
        if decision.action is not DecisionAction.HOLD
    ]
    return orders.proposal(wanted, vetoed) or "nothing to order"


def _decision(event: Event, data: DecisionValidation, account: str) -> Telling:
    # An event ahead is named by whoever announced it.
    unnamed = [
        decision.model_copy(update={"plan": decision.plan.model_copy(update={"review_event": ""})})
        if decision.plan
        else decision
        for decision in data.decisions
    ]
    risks = orders.at_risk(data.model_copy(update={"decisions": tuple(unnamed)}))
    title = f"Decision of {account} for {amounts.session(data.as_of)}"
    lines = [_decided(data.decisions, data.vetoed_tickers), *risks]
    if data.synthetic:
        lines.append(MADE_UP)
    return Telling(NoticeKind.DECISION, Severity.INFO, title, lines, _page(event))


def _exits(event: Event, data: ExitReport, account: str) -> Telling:
    sold = [check for check in data.checks if check.quantity is not None]
    failed = [check for check in data.checks if check.failure is not None]
    held = amounts.count(len(data.checks), "position")
    title = f"Exits of {account} for {amounts.session(data.as_of)}: {len(sold)} of {held} to sell"
    lines = [f"sell {amounts.quantity(check.quantity)} {check.ticker}" for check in sold]  # type: ignore[arg-type]
    lines += [f"{check.ticker} could not be checked" for check in failed]
    severity = Severity.WARNING if failed else Severity.INFO
    return Telling(NoticeKind.EXIT, severity, title, lines, _page(event))


def _what(data: OrderEvent) -> str:
    """`sell 15 AAPL, stop at 215.02 USD`."""
    stop = data.stop_price
    at = f", stop at {amounts.price(stop)}" if _is_stop(data) and stop else ""
    return f"{data.side.value} {amounts.quantity(data.quantity)} {data.asset}{at}"


def _is_stop(data: OrderEvent) -> bool:
    return data.type is OrderType.STOP


def _kind(data: OrderEvent, of_market: NoticeKind = NoticeKind.ORDER) -> NoticeKind:
    return NoticeKind.STOP if _is_stop(data) else of_market


def _placed(event: Event, data: OrderEvent, account: str) -> Telling:
    title = f"Order of {account}: {_what(data)}"
    return Telling(_kind(data), Severity.INFO, title, (), _page(event))


def _filled(event: Event, data: FillEvent, account: str) -> Telling:
    verb = "bought" if data.side is Side.BUY else "sold"
    stop = " by its stop" if _is_stop(data) else ""
    traded = f"{verb} {amounts.quantity(data.quantity)} {data.asset} at {amounts.price(data.price)}"
    fee = amounts.money(data.fee.amount, data.fee.currency)
    lines = [f"on {amounts.session(data.session)}, fee {fee}"]
    if data.foreign:
        lines.append(amounts.foreign(data.foreign))
    severity = Severity.WARNING if _is_stop(data) else Severity.INFO
    title = f"{account}: {traded}{stop}"
    return Telling(_kind(data, NoticeKind.FILL), severity, title, lines, _page(event))


def _not_filled(event: Event, data: OrderEvent, account: str) -> Telling:
    title = f"Order of {account} {data.status.value}: {_what(data)}"
    severity = Severity.WARNING if event.type is EventType.ORDER_REJECTED else Severity.INFO
    return Telling(_kind(data), severity, title, (), _page(event))


def _unpriced(_: Event, data: UnpricedEvent, account: str) -> Telling:
    price = amounts.price(data.price)
    title = f"{data.ticker} of {account} has no price"
    line = (
        f"it counts at {price}, of {amounts.session(data.priced_on)}, and cannot be sold until it "
        "has a new one"
    )
    return Telling(NoticeKind.PRICE, Severity.WARNING, title, (line,), "/portfolio")


# --- approvals ------------------------------------------------------------------------------------


def _asked(event: Event, data: ApprovalRequested, account: str) -> Telling:
    until = event.at + timedelta(seconds=data.time_limit_s)
    title = f"{account} waits for your approval"
    lines = (_decided(data.decisions),)
    return Telling(NoticeKind.APPROVAL, Severity.WARNING, title, lines, "/approvals", until)


def _answered(event: Event, data: Approval, account: str) -> Telling:
    title = f"Proposal of {account} {VERDICTS[data.verdict]} by {_name(data.approver)}"
    lines = [_decided(data.decisions)] if data.decisions else []
    return Telling(NoticeKind.APPROVAL, Severity.INFO, title, lines, _page(event))


def _expired(event: Event, _: StepFailedEvent, account: str) -> Telling:
    title = f"Nobody answered the proposal of {account} in time: nothing is ordered"
    return Telling(NoticeKind.APPROVAL, Severity.WARNING, title, (), _page(event))


# --- ends and failures ----------------------------------------------------------------------------


def _ended(event: Event, data: Ended, account: str) -> Telling:
    title = f"Cycle of {account} for {_session(event)} {data.status.value}"
    if data.status is CycleStatus.FAILED:
        step, _, why = data.reason.partition(" failed: ")
        place = f" in {step}" if why and STEP.fullmatch(step) else ""
        return Telling(NoticeKind.FAILURE, Severity.ALARM, title + place, (), _page(event))
    return Telling(NoticeKind.CYCLE, Severity.INFO, title, (), _page(event))


def _step_failed(event: Event, data: StepFailedEvent, account: str) -> Telling:
    place = f"{_step(event, data.step)} of {account}"
    if data.code == BUDGET_EXHAUSTED:
        title = f"Budget used up: {budgets.words(data.field) or UNNAMED}; {place} stops"
        return Telling(NoticeKind.BUDGET, Severity.ALARM, title, (), "/costs")
    title = f"{place} failed ({_code(data.code)})"
    return Telling(NoticeKind.STEP, Severity.WARNING, title, (), _page(event))


def _request_refused(_: Event, data: Refused, __: str) -> Telling:
    title = f"A request by {_name(data.requester)} was refused ({_code(data.code)})"
    if data.code == BUDGET_EXHAUSTED:
        title = f"Budget used up: a request by {_name(data.requester)} was refused"
        return Telling(NoticeKind.BUDGET, Severity.ALARM, title, (), "/costs")
    if data.requester == SCHEDULE:
        return Telling(NoticeKind.FAILURE, Severity.ALARM, title, (), "/schedule")
    return Telling(NoticeKind.REFUSAL, Severity.WARNING, title)


def _message_refused(event: Event, data: MessageRefused, account: str) -> Telling:
    title = (
        f"{_name(data.service)} sent a {data.what} for {_step(event, data.step)} of {account}, "
        f"which is {_name(data.owner)}'s: it was refused"
    )
    return Telling(NoticeKind.FAILURE, Severity.ALARM, title, (), _page(event))


# --- what people did ------------------------------------------------------------------------------


def _halted(event: Event, data: HaltEvent, _: str) -> Telling:
    whose = data.account or "every account"
    what = "halted" if event.type is EventType.TRADING_HALTED else "free again"
    severity = Severity.ALARM if event.type is EventType.TRADING_HALTED else Severity.WARNING
    title = f"Buys of {whose} are {what}, by {_name(data.by)}"
    return Telling(NoticeKind.HALT, severity, title, (), "/portfolio")


def _imported(_: Event, data: HoldingsEvent, account: str) -> Telling:
    held = amounts.count(len(data.positions), "position")
    equity = amounts.money(data.equity.amount, data.equity.currency)
    title = f"Account {account} was opened with {held}, {equity} in all, by {_name(data.by)}"
    return Telling(NoticeKind.CAPITAL, Severity.WARNING, title, (), "/portfolio")


def _cash(event: Event, data: CashEvent, account: str) -> Telling:
    amount = amounts.money(data.amount.amount, data.amount.currency)
    way = "paid into" if event.type is EventType.CASH_DEPOSITED else "taken out of"
    title = f"{amount} were {way} {account} by {_name(data.by)}"
    lines = (f"from {amounts.session(data.session)} on",)
    return Telling(NoticeKind.CAPITAL, Severity.WARNING, title, lines, "/portfolio")


# --- the desk itself ------------------------------------------------------------------------------


def _outage(_: Event, data: OutageEnded, __: str) -> Telling:
    if data.beats_lost is not None:
        title = "Postgres has lost commits: compare orders and bills with what you know"
        line = f"from {_utc(data.since)} to {_utc(data.until)}, by a failover to a standby behind"
        return Telling(NoticeKind.OUTAGE, Severity.ALARM, title, (line,), "/bus")
    if data.clock_jump_s is not None:
        way = "ahead" if data.clock_jump_s > 0 else "back"
        by = amounts.roughly(timedelta(seconds=abs(data.clock_jump_s)))
        title = f"The clock of Postgres jumped {way} by {by}"
        line = f"from {_utc(data.since)} to {_utc(data.until)}; limits and leases moved with it"
        return Telling(NoticeKind.OUTAGE, Severity.ALARM, title, (line,), "/bus")
    title = f"The desk stood still for {amounts.between(data.since, data.until)} and goes on"
    line = f"nothing could be committed from {_utc(data.since)} to {_utc(data.until)}"
    return Telling(NoticeKind.OUTAGE, Severity.ALARM, title, (line,), "/bus")


def _letter(_: Event, data: LetterKept, __: str) -> Telling:
    subject = data.subject if _SUBJECT.match(data.subject) else UNNAMED
    title = f"Dead letter {data.sequence}: {subject} ({_code(data.code)})"
    return Telling(NoticeKind.DEAD_LETTER, Severity.WARNING, title, (), f"/letters/{data.sequence}")


def _report(event: Event, data: DailyReport, account: str) -> Telling:
    report = data.report
    title = f"Report of {account} for {amounts.session(report.session)}"
    lines: list[str] = []
    if report.worth is None:
        lines.append("its worth is not known")
    else:
        equity = amounts.money(report.worth.equity, report.currency)
        earned = amounts.change(report.worth.earned.whole)
        ever = amounts.change(report.worth.ever.whole)
        lines.append(f"worth {equity}, {earned} since the session before, {ever} in all")
    fills = amounts.count(len(report.fills), "fill")
    lines.append(f"{fills}, {amounts.count(len(report.held), 'position')} held")
    needs = [need.what.replace("_", " ") for need in report.attention]
    if needs:
        lines.append(f"needs you: {', '.join(dict.fromkeys(needs))}")
    severity = Severity.WARNING if needs else Severity.INFO
    return Telling(NoticeKind.REPORT, severity, title, lines, _page(event))


def _given_up(_: Event, data: NoticesGivenUp, __: str) -> Telling:
    count = amounts.count(data.count, "message")
    title = f"{count} to channel {data.channel} could not be delivered ({_code(data.code)})"
    line = f"the oldest is of {_utc(data.oldest_at)}; they were given up"
    return Telling(NoticeKind.UNDELIVERED, Severity.ALARM, title, (line,), "/notifications")


TELLINGS: Mapping[EventType, Callable[..., Telling]] = {
    EventType.REQUEST_REJECTED: _request_refused,
    EventType.CYCLE_ENDED: _ended,
    EventType.OPERATION_FAILED: _step_failed,
    EventType.MESSAGE_REFUSED: _message_refused,
    EventType.EXITS_CHECKED: _exits,
    EventType.DECISION: _decision,
    EventType.APPROVAL_REQUESTED: _asked,
    EventType.APPROVAL_DECIDED: _answered,
    EventType.APPROVAL_EXPIRED: _expired,
    EventType.ORDER_PLACED: _placed,
    EventType.ORDER_FILLED: _filled,
    EventType.ORDER_REJECTED: _not_filled,
    EventType.ORDER_CANCELLED: _not_filled,
    EventType.POSITION_UNPRICED: _unpriced,
    EventType.TRADING_HALTED: _halted,
    EventType.TRADING_RESUMED: _halted,
    EventType.HOLDINGS_IMPORTED: _imported,
    EventType.CASH_DEPOSITED: _cash,
    EventType.CASH_WITHDRAWN: _cash,
    EventType.OUTAGE_ENDED: _outage,
    EventType.LETTER_KEPT: _letter,
    EventType.REPORT_WRITTEN: _report,
    EventType.NOTICES_GIVEN_UP: _given_up,
}
"""What is said of each event that people may be told of."""
