"""The daily report on a screen: what the session brought, and what needs a person. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from contracts.account import OrderType
from contracts.account_query import HeldAtClose
from contracts.report import Attention, CycleLine, DayReport, FillLine, OrderLine, Worth
from contracts.venue import DESK_STOPS
from libs.facts import amounts
from libs.quant import ticks
from libs.report import cutoff, ending, links, orders, view, why_not
from libs.report import markdown as md
from libs.report.view import Cell, Column, NoRows, Part, Table, Text

EARNED = ("P&L", "This session", "Since the opening")
NOT_KNOWN = NoRows("Not known: see above.", view.Absence.NO_ANSWER)


@dataclass(frozen=True)
class ReportSection:
    """Parts below a title."""

    title: str
    parts: tuple[Part, ...]


def title(report: DayReport) -> str:
    """`main, Fri 2012-06-29`."""
    return f"{report.account}, {amounts.session(report.session)}"


def headline(report: DayReport) -> tuple[Text, ...]:
    """The worth at the close and its change, and what is not counted in it yet."""
    later = cutoff.not_counted(report.not_counted, report.currency)
    return (
        Text(_worth(report), None),
        *view.notes(f"{later[:1].upper()}{later[1:]}." if later else ""),
    )


def sections(report: DayReport) -> Sequence[ReportSection]:
    """The rest of the report, in its order."""
    unit = report.currency
    return (
        ReportSection("Needs a person", (_attention(report.attention),)),
        ReportSection("Decided", (_decided(report), *_not_bought(report.cycles))),
        ReportSection("Done", _done(report)),
        ReportSection("Earned", (_earned(report.worth, unit),)),
        ReportSection("Held at the close", _held_and_stops(report)),
        ReportSection("Spent", (Text(_spent(report), None), Text(_made(report)))),
    )


def markdown(report: DayReport) -> str:
    """The whole report."""
    parts = [f"# {title(report)}", *map(md.text_of, headline(report))]
    for section in sections(report):
        parts += [f"## {section.title}", *map(md.text_of, section.parts)]
    return "\n\n".join(parts) + "\n"


def _worth(report: DayReport) -> str:
    worth = report.worth
    if worth is None:
        return "What the account was worth at the close is not known."
    change = worth.earned.whole
    # What was paid in counts from the session's beginning on, as in every return.
    before = worth.equity - change
    flow = ""
    if worth.paid_in:
        way = "paid in" if worth.paid_in > 0 else "taken out"
        flow = f" {_sum(abs(worth.paid_in), report)} {way}."
    share = f" ({amounts.gain_percent(change / before * 100)})" if before else ""
    since = f"since {amounts.session(worth.previous)}" if worth.previous else "since the opening"
    return (
        f"{_sum(worth.equity, report)}, {_signed(change, report)}{share} {since}: "
        f"cash {_sum(worth.cash, report)}, positions {_sum(worth.positions, report)}.{flow}"
    )


def _attention(lines: Sequence[Attention]) -> Table:
    return view.table(
        (Column("What", wraps=True), Column("What to do", wraps=True)),
        ((line.text, line.todo) for line in lines),
        title="Needs a person",
    )


def _decided(report: DayReport) -> Table:
    rows = (
        (
            view.say(amounts.short(cycle.cycle_id), link=links.cycle(cycle.cycle_id)),
            cycle.kind,
            cycle.pipeline,
            cycle.status.value,
            ending.marked(_proposed(cycle) or cycle.reason or "nothing", cycle.substitutes),
        )
        for cycle in report.cycles
    )
    none = NoRows("Nothing was asked of the desk.")
    return view.table(("Cycle", "Kind", "Pipeline", "Status", "Decided"), rows, empty=none)


def _not_bought(cycles: Sequence[CycleLine]) -> Sequence[Table]:
    """For each decision the candidates that it did not buy, and why."""
    return [
        replace(why_not.table(cycle.not_bought), notes=()) for cycle in cycles if cycle.not_bought
    ]


def _proposed(cycle: CycleLine) -> str:
    decided = [
        f"{d.action.value} {amounts.quantity(d.quantity)} {d.asset}" for d in cycle.decisions
    ]
    return orders.proposal(decided, cycle.vetoed)


def _done(report: DayReport) -> tuple[Part, ...]:
    tables = (_fills(report), _orders(report))
    return tuple(it for it in tables if it.rows) or (
        Text("Nothing was ordered and nothing filled.", None),
    )


def _fills(report: DayReport) -> Table:
    return view.table(
        ("Filled", "Shares", "Asset", "Price", "Fee"),
        (
            (
                _side(fill),
                view.shares(fill.quantity),
                _ticker(fill.asset, report),
                view.price(ticks.priced(fill.price, report.currency)),
                view.money(fill.fee, report.currency),
            )
            for fill in report.fills
        ),
        title="Fills",
        currency=report.currency,
    )


def _orders(report: DayReport) -> Table:
    return view.table(
        ("Ordered", "Shares", "Asset", "Type", "Status"),
        (
            (
                order.side.value,
                view.shares(order.quantity),
                _ticker(order.asset, report),
                _type(order, report.currency),
                order.status.value + (f": {order.reason}" if order.reason else ""),
            )
            for order in report.orders
        ),
        title="Orders",
    )


def _ticker(name: str, report: DayReport) -> Cell:
    return view.ticker(name, report.account)


def _side(fill: FillLine) -> str:
    """Of a stop order that its price has reached, `sell at its stop`."""
    at = " at its stop" if fill.type is OrderType.STOP else ""
    return f"{fill.side.value}{at}"


def _type(order: OrderLine, currency: str) -> str:
    """`stop at 95.00 USD`; of a sale that leaves one behind, `market, then a stop at 95.00 USD`."""
    if order.stop_price is None:
        return order.type.value
    then = "" if order.type is OrderType.STOP else "market, then a "
    stop = ticks.priced(order.stop_price, order.currency or currency)
    return f"{then}stop at {amounts.price(stop)}"


def _earned(worth: Worth | None, currency: str) -> Table:
    if worth is None:
        return view.table(EARNED, (), empty=NOT_KNOWN)
    now, ever = worth.earned, worth.ever
    parts = (
        ("Realised", now.realised, ever.realised),
        ("Unrealised", now.unrealised, ever.unrealised),
        ("Dividends", now.dividends, ever.dividends),
        ("Fees", -now.fees, -ever.fees),
    )
    rows = [view.row(name, *(view.gain(it, currency) for it in gains)) for name, *gains in parts]
    total = (view.say("Total"), view.gain(now.whole, currency), view.gain(ever.whole, currency))
    sums = view.row(total[0].strong, *total[1:])
    return view.table(EARNED, (*rows, sums), title="Gains", currency=currency)


def _held_and_stops(report: DayReport) -> tuple[Part, ...]:
    held, stops = _held(report), _stops(report)
    return (held, stops) if stops.rows else (held,)


def _held(report: DayReport) -> Table:
    currency = report.currency
    return view.table(
        ("Asset", "Shares", "Cost", "Price", "Value", "Gain"),
        (
            (
                _ticker(position.ticker, report),
                view.shares(position.quantity),
                view.price(ticks.priced(position.cost / position.quantity, currency))
                if position.quantity
                else view.BLANK,
                _price(position, currency),
                view.money(position.value, currency),
                view.gain(position.gain, currency),
            )
            for position in report.held
        ),
        title="Held at the close",
        currency=currency,
        empty=NoRows("Nothing.") if report.worth else NOT_KNOWN,
    )


def _price(held: HeldAtClose, currency: str) -> Cell:
    if held.price is None:
        return view.say("no price")
    cell = view.price(ticks.priced(held.price, currency))
    of = f" of {amounts.session(held.priced_on)}" if held.priced_on else ""
    return replace(cell, text=cell.text + of)


def _stops(report: DayReport) -> Table:
    return view.table(
        ("Stop on", "Shares", "At", "Decided"),
        (
            (
                _ticker(stop.ticker, report),
                view.shares(stop.quantity),
                view.price(ticks.priced(stop.stop_price, stop.currency)),
                view.day(stop.as_of),
            )
            for stop in report.stops
        ),
        title="Stops",
        notes=view.notes(DESK_STOPS if report.venue else ""),
    )


def _spent(report: DayReport) -> str:
    if not report.usage.tokens and report.usage.cost_usd == 0:
        return "Nothing on models."
    cost_usd = report.usage.cost_usd
    dollars = "cost unknown" if cost_usd is None else f"{cost_usd:,.4f} USD"
    return f"{report.usage.tokens:,} tokens, {dollars} on models."


def _made(report: DayReport) -> str:
    return f"Made {report.made_at:%Y-%m-%d %H:%M:%S} UTC; amounts are in {report.currency}."


def _sum(amount: Decimal, report: DayReport) -> str:
    return amounts.money(ticks.priced(amount, report.currency))


def _signed(amount: Decimal, report: DayReport) -> str:
    gained = amounts.change(ticks.priced(amount, report.currency))
    return gained if amount else _sum(amount, report)
