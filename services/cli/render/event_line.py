"""One event as one line. Made without rich's renderer: a busy desk has thousands a second."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from contracts.audit import Event, EventType, tells_failure
from libs.facts import amounts
from libs.report import orders
from libs.runtime import recorded_call

TEXT_CHARS = 160
TEXT_WIDTH_MIN = 30
"""Columns for the words; where fewer are left they stand below, indented."""
INDENT = 10
Paint = Callable[[str, str], str]

STYLES = {
    EventType.REQUEST_REJECTED: "bold red",
    EventType.OPERATION_FAILED: "bold red",
    EventType.MESSAGE_REFUSED: "bold red",
    EventType.OPERATION_CANCELLED: "yellow",
    EventType.CYCLE_ACCEPTED: "bold cyan",
    EventType.CYCLE_ENDED: "bold cyan",
    EventType.PIPELINE_ENDED: "cyan",
    EventType.STATE_ENTERED: "blue",
    EventType.EXITS_CHECKED: "magenta",
    EventType.DECISION: "bold magenta",
    EventType.APPROVAL_REQUESTED: "bold yellow",
    EventType.APPROVAL_DECIDED: "bold magenta",
    EventType.APPROVAL_EXPIRED: "bold red",
    EventType.ORDER_PLACED: "green",
    EventType.ORDER_FILLED: "bold green",
    EventType.POSITION_UNPRICED: "bold yellow",
    EventType.TRADING_HALTED: "bold yellow",
    EventType.TRADING_RESUMED: "bold green",
    EventType.HOLDINGS_IMPORTED: "bold green",
    EventType.CASH_DEPOSITED: "green",
    EventType.CASH_WITHDRAWN: "yellow",
    EventType.OUTAGE_ENDED: "bold yellow",
    EventType.LETTER_KEPT: "yellow",
    EventType.REPORT_WRITTEN: "magenta",
    EventType.NOTICES_GIVEN_UP: "bold yellow",
    EventType.LLM_REQUESTED: "dim",
    EventType.LLM_CALLED: "dim",
    EventType.ANSWER_CHECKED: "dim",
    EventType.TOOL_CALLED: "dim",
    EventType.DATA_READ: "dim",
}


def is_failure(event: Event) -> bool:
    """Whether something went wrong: what --errors shows."""
    return tells_failure(event.type, event.data.get("status"))


def line(event: Event, paint: Paint, width: int | None = None) -> str:
    """The event for people: time, cycle, number, pipeline, what, and what there is to say.

    It is one line, but where it is wider than `width` columns: there the words go on below
    themselves, or on lines of their own.
    """
    at = event.at.astimezone()
    style = "bold red" if is_failure(event) else STYLES.get(event.type, "")
    what = f"{event.type.value:<19}"
    clock = f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"
    source = f"{amounts.short(event.cycle_id)} {event.sequence:>4}"
    pipeline = f"{event.pipeline or '':<10}"
    head = "  ".join(
        (
            paint(clock, "dim"),
            paint(source, "dim"),
            pipeline,
            paint(what, style) if style else what,
        )
    )
    text = amounts.cut(detail(event), TEXT_CHARS)
    used = len("  ".join((clock, source, pipeline, what, "")))
    if width is None or used + len(text) <= width:
        return f"{head}  {text}".rstrip()
    below = width - used < TEXT_WIDTH_MIN
    indent = INDENT if below else used
    lines = wrap(text, max(width - indent, TEXT_WIDTH_MIN), break_on_hyphens=False)
    gap = f"\n{'':{indent}}"
    return f"{head}{gap if below else '  '}{gap.join(lines)}"


def detail(event: Event) -> str:
    """The words of an event, by type."""
    describe = DETAILS.get(event.type)
    return describe(event) if describe else ""


def _step(event: Event) -> str:
    data = event.data
    text = f"{event.state}/{data.get('step', '')}"
    return f"{text}: {data['message']} ({data.get('code')})" if "message" in data else text


def _call(event: Event) -> str:
    data: Mapping[str, Any] = event.data
    # What other reads were asked for is no line's matter.
    arguments = data.get("arguments") if event.type is EventType.TOOL_CALLED else None
    name = recorded_call.label(str(data.get("name")), recorded_call.about(arguments))
    text = f"{event.state}/{data.get('step')}  {name}"
    if "duration_ms" in data:
        text += f"  {amounts.duration(float(data['duration_ms']) / 1000)}"
    usage = data.get("usage") or {}
    used = sum(int(count) for sort, count in usage.items() if sort.endswith("_tokens"))
    estimated = " (estimated)" if data.get("usage_estimated") else ""
    text += f"  {used:,} tokens{estimated}" if used else ""
    if data.get("fault"):
        return f"{text}  no reply ({data['fault']})"
    return f"{text}  {data['error']}" if data.get("error") else text


def _end(event: Event) -> str:
    reason = event.data.get("reason")
    return f"{event.data.get('status')}: {reason}" if reason else str(event.data.get("status", ""))


def _order(event: Event) -> str:
    data: Mapping[str, Any] = event.data
    text = f"{data.get('side')} {data.get('quantity')} {data.get('asset')} {data.get('status')}"
    if data.get("stop_price"):
        text += f", stop at {amounts.recorded(data['stop_price'])}"
    if "price" in data:
        text += f" at {amounts.recorded(data['price'])} on {data.get('session')}"
    return f"{text}: {data['reason']}" if data.get("reason") else text


def _decision(event: Event) -> str:
    data: Mapping[str, Any] = event.data
    wanted = [f"{d['action']} {d['quantity']} {d['asset']}" for d in data.get("decisions", ())]
    return orders.proposal(wanted, data.get("vetoed_tickers") or ()) or "nothing to order"


def _exits(event: Event) -> str:
    checks: Sequence[Mapping[str, Any]] = event.data.get("checks", ())  # type: ignore[assignment]
    assessments = [f"{c.get('ticker')} {c.get('assessment') or 'not checked'}" for c in checks]
    return ", ".join(assessments) or "nothing is held"


def _unpriced(event: Event) -> str:
    data: Mapping[str, Any] = event.data
    paid = f"{amounts.recorded(data.get('price'))} of {data.get('priced_on')}"
    return f"{data.get('ticker')} of {data.get('account')} has no price, and counts at {paid}"


def _letter(event: Event) -> str:
    data = event.data
    text = f"{data.get('sequence')} {data.get('subject')} ({data.get('code')}) by {data.get('by')}"
    return f"{text}: {data['reason']}" if data.get("reason") else text


def _kept(event: Event) -> str:
    data = event.data
    return f"{data.get('sequence')} {data.get('subject')} ({data.get('code')})"


def _outage(event: Event) -> str:
    since, until = (_second(event.data.get(name)) for name in ("since", "until"))
    if event.data.get("beats_lost") is not None:
        return f"Postgres lost what was committed from {since} to {until}"
    if event.data.get("clock_jump_s") is not None:
        return f"the clock of Postgres jumped from {since} to {until}"
    return f"nothing could be committed from {since} to {until}"


def _second(at: object) -> str:
    """`2012-06-29 20:30:11 UTC`."""
    return f"{str(at)[:19].replace('T', ' ')} UTC"


def _report(event: Event) -> str:
    report = event.data.get("report")
    fields = report if isinstance(report, dict) else {}
    return f"of {fields.get('account')} for {fields.get('session')}"


def _given_up(event: Event) -> str:
    data: Mapping[str, Any] = event.data
    count = amounts.count(int(data.get("count") or 0), "message")
    return f"{count} to {data.get('channel')} ({data.get('code')})"


def _asked(event: Event) -> str:
    return f"{_step(event)}  {event.data.get('name')}  asked"


def _checked(event: Event) -> str:
    verdict = "valid" if event.data.get("passed") else "not valid"
    return f"{_step(event)}  {event.data.get('name')}  {verdict}"


def _approval(event: Event) -> str:
    data: Mapping[str, Any] = event.data
    left = f": {_decision(event)}" if data.get("decisions") else ""
    why = f" ({data['reason']})" if data.get("reason") else ""
    return f"{data.get('verdict')} by {data.get('approver')}{left}{why}"


def _imported(event: Event) -> str:
    positions = event.data.get("positions")
    held = len(positions) if isinstance(positions, list) else 0
    return (
        f"account {event.data.get('account')} with {amounts.count(held, 'position')}"
        f", by {event.data.get('by')}"
    )


def _cash(event: Event) -> str:
    data = event.data
    amount, since = amounts.recorded(data.get("amount")), data.get("session")
    return f"{amount} of {data.get('account')}, from {since} on, by {data.get('by')}"


def _halt(event: Event) -> str:
    data = event.data
    text = f"{data.get('account') or 'every account'}, by {data.get('by')}"
    return f"{text}: {data['reason']}" if data.get("reason") else text


def _refused(event: Event) -> str:
    data = event.data
    if "message" in data:
        return f"{data['message']} ({data.get('code')})"
    return f"{data.get('what')} from {data.get('service')}, but it is {data.get('owner')}'s"


DETAILS: Mapping[EventType, Callable[[Event], str]] = {
    EventType.STATE_ENTERED: lambda event: event.state or "",
    EventType.OPERATION_STARTED: _step,
    EventType.OPERATION_COMPLETED: _step,
    EventType.OPERATION_FAILED: _step,
    EventType.OPERATION_CANCELLED: _step,
    EventType.LLM_REQUESTED: _asked,
    EventType.LLM_CALLED: _call,
    EventType.TOOL_CALLED: _call,
    EventType.DATA_READ: _call,
    EventType.ANSWER_CHECKED: _checked,
    EventType.CYCLE_ENDED: _end,
    EventType.PIPELINE_ENDED: _end,
    EventType.ORDER_PLACED: _order,
    EventType.ORDER_FILLED: _order,
    EventType.POSITION_UNPRICED: _unpriced,
    EventType.EXITS_CHECKED: _exits,
    EventType.DECISION: _decision,
    EventType.APPROVAL_REQUESTED: _decision,
    EventType.APPROVAL_DECIDED: _approval,
    EventType.APPROVAL_EXPIRED: lambda event: str(event.data.get("message", "")),
    EventType.TRADING_HALTED: _halt,
    EventType.TRADING_RESUMED: _halt,
    EventType.HOLDINGS_IMPORTED: _imported,
    EventType.CASH_DEPOSITED: _cash,
    EventType.CASH_WITHDRAWN: _cash,
    EventType.REQUEST_REJECTED: _refused,
    EventType.MESSAGE_REFUSED: _refused,
    EventType.LETTER_RETRIED: _letter,
    EventType.LETTER_DISCARDED: _letter,
    EventType.LETTER_KEPT: _kept,
    EventType.OUTAGE_ENDED: _outage,
    EventType.REPORT_WRITTEN: _report,
    EventType.NOTICES_GIVEN_UP: _given_up,
}
