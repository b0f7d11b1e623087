"""A session's report for an account, from the record, with all that needs a person now."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import Any
from uuid import UUID

import orjson

from contracts.account_query import HeldAtClose, NotCounted
from contracts.cycle import CycleStatus
from contracts.message import PAGE_MAX
from contracts.report import (
    LINES_MAX,
    Attention,
    CycleLine,
    DayReport,
    DecisionLine,
    FillLine,
    Gains,
    OrderLine,
    ReportQuery,
    ReportView,
    StopLine,
    Worth,
)
from contracts.types import Usage
from libs.facts import amounts
from libs.market.calendar import ExchangeCalendar
from libs.postgres.pool import Record
from libs.report import why_not
from libs.report.account import halted, remedy
from libs.report.day_report import markdown
from libs.report.reports import Reports
from libs.runtime.nearest import UnknownAccount
from services.console import logic
from services.console.store import Store, sql
from services.console.views.accounts import bound_to
from services.console.views.desk import DeskViews
from services.console.views.standings import held_at, kept_closes, not_counted, standing_of

REASON_CHARS_MAX = 300
NOTHING = Decimal(0)
LISTED = {
    "cycle": "deskbus cycle list --account {account} --limit 200",
    "fill": "deskbus trades {account} --limit 200",
    "order": "deskbus trades {account} --limit 200",
    "position": "deskbus portfolio {account}",
    "stop": "deskbus portfolio {account}",
}
"""The command that lists what a report has no room for."""


async def report(query: ReportQuery, desk: DeskViews) -> ReportView:
    """The session's report, as data and as Markdown."""
    store = desk.store
    row = await store.account(query.account)
    if row is None:
        error = UnknownAccount(query.account, await store.accounts())
        return ReportView(found=False, message=error.message)
    session = query.session or row["clock"]
    if not desk.calendar.is_session(session):
        return ReportView(found=False, message=_no_session(session, desk.calendar))
    day_report = await _build(row, session, desk)
    return ReportView(report=day_report, markdown=markdown(day_report))


def _no_session(day: date, calendar: ExchangeCalendar) -> str:
    """Raises OutsideCalendar."""
    before = calendar.session_on_or_before(day)
    return f"{day:%a %Y-%m-%d} is a {calendar.kind(day)}, no session; the one before is {before}"


async def _build(row: Record, session: date, desk: DeskViews) -> DayReport:
    name, store = row["account"], desk.store
    cycles = await _cycles(session, name, store)
    closes = [dict(snapshot) for snapshot in await store.day_snapshots(name, session)]
    is_closed = bool(closes) and closes[0]["session"] == session
    # Splits and fills up to a session are in the books once the account's clock is there.
    kept = kept_closes(closes[0]["closes"], row["currency"]) if is_closed else {}
    held = await held_at(name, session, kept, LINES_MAX + 1, store) if is_closed else ()
    stands = await standing_of(name, store)
    is_newest = stands is not None and stands.close.session == session
    fills = await store.rows(sql.day_fills, name, session, LINES_MAX + 1)
    orders = await store.rows(
        sql.day_orders, name, [cycle.cycle_id for cycle in cycles], LINES_MAX + 1
    )
    stops = _stops(closes[0]) if is_closed else ()
    lists = {"cycle": cycles, "fill": fills, "order": orders, "position": held, "stop": stops}
    return DayReport(
        account=name,
        session=session,
        currency=row["currency"],
        made_at=desk.now(),
        worth=_worth(closes, session),
        not_counted=not_counted(stands) if stands and is_newest else NotCounted(),
        attention=(
            # What stands still now belongs to the newest report, and to no day before it.
            *(await _waiting(name, desk) if session >= row["clock"] else ()),
            *_unclosed(closes, session, row),
            *_unpriced(held, session),
            *_ended_badly(cycles),
            *await _unchecked(cycles, name, store),
            *await _slots(session, name, store),
            *_left_out(lists, name),
        ),
        cycles=cycles[:LINES_MAX],
        fills=tuple(FillLine(**dict(fill)) for fill in fills[:LINES_MAX]),
        orders=tuple(OrderLine(**dict(order)) for order in orders[:LINES_MAX]),
        held=held[:LINES_MAX],
        stops=stops[:LINES_MAX],
        usage=reduce(Usage.__add__, (cycle.usage for cycle in cycles), Usage()),
        venue=bound_to(row),
    )


# --- what it is worth -------------------------------------------------------------------------


def _worth(closes: Sequence[Mapping[str, Any]], session: date) -> Worth | None:
    """At the session's close, and since the newest one before it that could be valued."""
    if not closes or closes[0]["session"] != session or closes[0]["equity"] is None:
        return None
    now = closes[0]
    before = closes[1] if len(closes) > 1 else None
    earned = {
        name: now[name] - (before[name] if before else NOTHING) for name in Gains.model_fields
    }
    return Worth.model_validate(
        {
            **now,
            "previous": before["session"] if before else None,
            "paid_in": now["paid_in"] - before["paid_in"] if before else NOTHING,
            "earned": earned,
            "ever": now,
        }
    )


def _stops(close: Mapping[str, Any]) -> tuple[StopLine, ...]:
    stops = orjson.loads(close["stops"])
    return tuple(StopLine.model_validate(stop) for stop in stops)


# --- what was decided -------------------------------------------------------------------------


async def _cycles(session: date, account: str, store: Store) -> tuple[CycleLine, ...]:
    rows = await store.rows(sql.day_cycles, session, account, LINES_MAX + 1)
    ids = [row["cycle_id"] for row in rows]
    decided = {
        (row["cycle_id"], row["pipeline"]): row
        for row in await store.rows(sql.day_decisions, list(ids), account)
    }
    used = {
        (row["cycle_id"], row["pipeline"]): row
        for row in await store.rows(sql.runs_of_cycles, list(ids))
    }
    op_ids = [
        op_id for row in rows for ops in logic.outputs(row).values() for op_id in ops.values()
    ]
    contracts = await store.contracts(list(dict.fromkeys(op_ids))) if op_ids else {}
    return tuple(_lines(rows, contracts, account, decided, used))


def _lines(
    rows: Sequence[Record],
    contracts: Mapping[UUID, bytes],
    account: str,
    decided: Mapping[tuple[UUID, str], Record],
    used: Mapping[tuple[UUID, str], Record],
) -> Iterator[CycleLine]:
    for row in rows:
        view = logic.cycle_view(row, contracts)
        for pipeline in view.pipelines:
            if pipeline.account != account:
                continue
            key = (row["cycle_id"], pipeline.name)
            validation = decided.get(key)
            # A cycle that ends as a whole, such as by its time limit, says why itself.
            reason = pipeline.reason or view.reason
            yield CycleLine(
                cycle_id=row["cycle_id"],
                kind=view.kind,
                pipeline=pipeline.name,
                requester=view.requester,
                status=pipeline.status,
                reason=amounts.cut(reason, REASON_CHARS_MAX),
                decisions=_decisions(validation["decisions"]) if validation else (),
                vetoed=tuple(orjson.loads(validation["vetoed"] or "[]")) if validation else (),
                substitutes=pipeline.substitutes,
                not_bought=why_not.of(Reports.of(pipeline), pipeline.status, reason),
                usage=logic.usage_of(used[key]) if key in used else Usage(),
            )


def _decisions(listed: str | None) -> tuple[DecisionLine, ...]:
    return tuple(map(DecisionLine.model_validate, orjson.loads(listed or "[]")))


# --- what needs a person ----------------------------------------------------------------------


async def _waiting(account: str, desk: DeskViews) -> Sequence[Attention]:
    """Everything that stands still until somebody does something."""
    lines = []
    for row in await desk.store.rows(sql.waiting_approvals, None, PAGE_MAX):
        if row["account"] == account:
            until = f"{row['deadline_at']:%Y-%m-%d %H:%M} UTC"
            short = amounts.short(row["cycle_id"])
            text = f"a proposal of {row['pipeline']} as of {row['as_of']} waits until {until}"
            lines.append(
                Attention(what="approval", text=text, todo=f"deskbus approvals approve {short}")
            )
    lines += [
        Attention(what="halt", text=halted(halt), todo=remedy(halt))
        for halt in map(logic.halt_of, await desk.store.rows(sql.halts))
        if halt.account in {None, account}
    ]
    letters = await desk.letters.newest(PAGE_MAX)
    if letters:
        number = f"{len(letters)}{'+' if len(letters) == PAGE_MAX else ''}"
        many = "dead letter" if len(letters) == 1 else "dead letters; the newest"
        text = f"{number} {many}: {amounts.cut(letters[0].failure.message, REASON_CHARS_MAX)}"
        lines.append(Attention(what="dead_letters", text=text, todo="deskbus dlq list"))
    return lines


def _left_out(lists: Mapping[str, Sequence[object]], account: str) -> Iterator[Attention]:
    for what, lines in lists.items():
        if len(lines) > LINES_MAX:
            text = f"this report has the first {LINES_MAX} {what}s of the session, not the others"
            yield Attention(what="left_out", text=text, todo=LISTED[what].format(account=account))


def _unclosed(
    closes: Sequence[Mapping[str, Any]], session: date, row: Record
) -> Iterator[Attention]:
    account = row["account"]
    if not closes or closes[0]["session"] != session:
        text = f"no close of {session} is on record: the account's newest session is {row['clock']}"
        todo = f"deskbus cycle request --kind snapshot --as-of {session} --provider rules@{account}"
        yield Attention(what="no_close", text=text, todo=todo)
    elif closes[0]["unpriced"]:
        names = closes[0]["unpriced"]
        text = (
            f"{', '.join(names)} could not be brought into the account's currency at the close, "
            "so the account could not be valued"
        )
        yield Attention(what="no_price", text=text, todo=f"deskbus market show {names[0]}")


def _unpriced(held: Sequence[HeldAtClose], session: date) -> Iterator[Attention]:
    for row in held:
        if row.priced_on is not None:
            text = (
                f"{row.ticker} had no price at the close: it is valued at the price of "
                f"{row.priced_on}, and cannot be sold until it has a price again"
            )
            todo = f"deskbus market show {row.ticker} --as-of {session}"
            yield Attention(what="no_price", text=text, todo=todo)


def _ended_badly(cycles: Sequence[CycleLine]) -> Iterator[Attention]:
    for cycle in cycles:
        what = f"the {cycle.kind} of {cycle.pipeline}"
        todo = f"deskbus cycle show {amounts.short(cycle.cycle_id)}"
        if cycle.status is CycleStatus.FAILED:
            text = f"{what} failed: {cycle.reason or 'no reason given'}"
            yield Attention(what="failed", text=text, todo=todo)
        elif cycle.status is CycleStatus.EXPIRED:
            yield Attention(what="expired", text=f"{what} expired without an answer", todo=todo)


async def _unchecked(
    cycles: Sequence[CycleLine], account: str, store: Store
) -> Sequence[Attention]:
    """Each position once, though it was looked at several times."""
    rows = await store.rows(sql.day_unchecked, [cycle.cycle_id for cycle in cycles], account)
    newest = {row["ticker"]: row for row in rows}
    why = {ticker: amounts.cut(row["message"], REASON_CHARS_MAX) for ticker, row in newest.items()}
    return [
        Attention(
            what="not_checked",
            text=f"the sell check of {ticker} failed: {why[ticker]}",
            todo=f"deskbus exit-signals check {ticker} --account {account}",
        )
        for ticker in newest
    ]


async def _slots(session: date, account: str, store: Store) -> Sequence[Attention]:
    lines = []
    for row in await store.rows(sql.day_slots, session, account, LINES_MAX):
        why = f": {amounts.cut(row['reason'], REASON_CHARS_MAX)}" if row["reason"] else ""
        text = f"job {row['job']} at {row['slot']:%H:%M} UTC was {row['outcome']}{why}"
        lines.append(Attention(what="slot", text=text, todo=f"deskbus schedule run {row['job']}"))
    return lines
