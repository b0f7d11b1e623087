"""One event as a message to people: its words are those of `libs.report.events`, without a reason,
a headline, or a model's or a person's words. Pure.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from contracts.audit import Event, EventType
from contracts.cycle import CycleStatus
from contracts.event_data import OutageEnded
from contracts.notice import (
    LINE_CHARS_MAX,
    LINES_MAX,
    TITLE_CHARS_MAX,
    Notice,
    NoticeKind,
    Severity,
)
from contracts.schedule import SCHEDULE
from libs.facts import amounts
from libs.report import events, risk_use
from libs.report.events import BUDGET_EXHAUSTED, account_of

OUTAGE_ALARMS_FROM = timedelta(minutes=1)
"""A shorter one wakes nobody: a desk that is started anew has one."""


@dataclass(frozen=True)
class NoticeSort:
    """The subject of a notice, how serious it is, the console's page about it, and until when it
    can be acted on."""

    kind: NoticeKind
    severity: Severity = Severity.INFO
    page: str = ""
    expires_at: datetime | None = None


def of(event: Event) -> Notice:
    """The event as a notice. One that this version cannot read is named by its type alone."""
    words = events.described(event)
    if words.data is None:
        sort = NoticeSort(NoticeKind.FAILURE, Severity.WARNING)
    else:
        sort = sort_of(event, words.data)
    lines = [amounts.cut(line, LINE_CHARS_MAX) for line in words.lines]
    if len(lines) > LINES_MAX:
        lines = [*lines[: LINES_MAX - 1], f"and {len(lines) - LINES_MAX + 1} more"]
    return Notice(
        event_id=event.event_id,
        kind=sort.kind,
        severity=sort.severity,
        event=event.type.value,
        at=event.at,
        account=account_of(event),
        cycle_id=event.cycle_id if event.session_id else None,
        title=amounts.cut(words.title, TITLE_CHARS_MAX),
        lines=tuple(lines),
        page=sort.page,
        expires_at=sort.expires_at,
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


def sort_of(event: Event, data: Any) -> NoticeSort:  # noqa: PLR0911, PLR0912 - one case a type
    """The sort of notice that a notable event makes. `data` is the event's, as its type has it.
    Raises LookupError for an event that makes none."""
    page = f"/cycles/{event.cycle_id}"
    match event.type:
        case EventType.DECISION:
            sells = any(decision.exit is not None for decision in data.decisions)
            return NoticeSort(NoticeKind.EXIT if sells else NoticeKind.DECISION, page=page)
        case EventType.EXITS_CHECKED:
            failed = any(check.failure for check in data.checks)
            return NoticeSort(NoticeKind.EXIT, _warning_if(failed or bool(data.warnings)), page)
        case EventType.ORDER_PLACED | EventType.ORDER_CANCELLED:
            return NoticeSort(_of_order(data), page=page)
        case EventType.ORDER_REJECTED:
            return NoticeSort(_of_order(data), Severity.WARNING, page)
        case EventType.ORDER_FILLED:
            return NoticeSort(
                _of_order(data, NoticeKind.FILL), _warning_if(events.is_stop(data)), page
            )
        case EventType.POSITION_UNPRICED:
            return NoticeSort(NoticeKind.PRICE, Severity.WARNING, "/portfolio")
        case EventType.APPROVAL_REQUESTED:
            until = event.at + timedelta(seconds=data.time_limit_s)
            return NoticeSort(NoticeKind.APPROVAL, Severity.WARNING, "/approvals", until)
        case EventType.APPROVAL_DECIDED:
            return NoticeSort(NoticeKind.APPROVAL, page=page)
        case EventType.APPROVAL_EXPIRED:
            return NoticeSort(NoticeKind.APPROVAL, Severity.WARNING, page)
        case EventType.CYCLE_ENDED if data.status is CycleStatus.FAILED:
            return NoticeSort(NoticeKind.FAILURE, Severity.ALARM, page)
        case EventType.CYCLE_ENDED:
            return NoticeSort(NoticeKind.CYCLE, page=page)
        case EventType.OPERATION_FAILED | EventType.REQUEST_REJECTED if (
            data.code == BUDGET_EXHAUSTED
        ):
            return NoticeSort(NoticeKind.BUDGET, Severity.ALARM, "/costs")
        case EventType.OPERATION_FAILED:
            return NoticeSort(NoticeKind.STEP, Severity.WARNING, page)
        case EventType.REQUEST_REJECTED if data.requester == SCHEDULE:
            return NoticeSort(NoticeKind.FAILURE, Severity.ALARM, "/schedule")
        case EventType.REQUEST_REJECTED:
            return NoticeSort(NoticeKind.REFUSAL, Severity.WARNING)
        case EventType.MESSAGE_REFUSED:
            return NoticeSort(NoticeKind.FAILURE, Severity.ALARM, page)
        case EventType.TRADING_HALTED:
            return NoticeSort(NoticeKind.HALT, Severity.ALARM, "/portfolio")
        case EventType.TRADING_RESUMED:
            return NoticeSort(NoticeKind.HALT, Severity.WARNING, "/portfolio")
        case EventType.HOLDINGS_IMPORTED | EventType.CASH_DEPOSITED | EventType.CASH_WITHDRAWN:
            return NoticeSort(NoticeKind.CAPITAL, Severity.WARNING, "/portfolio")
        case EventType.LIMIT_SET:
            looser = risk_use.loosens(data.limit, data.before, data.value)
            return NoticeSort(NoticeKind.LIMIT, _warning_if(looser), "/settings")
        case EventType.OUTAGE_ENDED:
            return NoticeSort(NoticeKind.OUTAGE, _of_outage(data), "/bus")
        case EventType.LETTER_KEPT:
            return NoticeSort(NoticeKind.DEAD_LETTER, Severity.WARNING, f"/letters/{data.sequence}")
        case EventType.REPORT_WRITTEN:
            return NoticeSort(NoticeKind.REPORT, _warning_if(bool(events.needs_of(data))), page)
        case EventType.BOOKS_DIFFER | EventType.ORDER_UNRESOLVED | EventType.LATE_FILL:
            return NoticeSort(NoticeKind.BROKER, Severity.ALARM, "/portfolio")
        case EventType.BOOKS_AGREE:
            return NoticeSort(NoticeKind.BROKER, page="/portfolio")
        case EventType.NOTICES_GIVEN_UP:
            return NoticeSort(NoticeKind.UNDELIVERED, Severity.ALARM, "/notifications")
    raise LookupError(f"no notice is made of {event.type}")


def _of_outage(data: OutageEnded) -> Severity:
    is_plain = data.beats_lost is None and data.clock_jump_s is None
    is_short = is_plain and data.until - data.since < OUTAGE_ALARMS_FROM
    return Severity.WARNING if is_short else Severity.ALARM


def _warning_if(wrong: bool) -> Severity:
    return Severity.WARNING if wrong else Severity.INFO


def _of_order(data: Any, of_market: NoticeKind = NoticeKind.ORDER) -> NoticeKind:
    return NoticeKind.STOP if events.is_stop(data) else of_market
