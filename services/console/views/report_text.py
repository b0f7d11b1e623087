"""The daily report as Markdown that reads well as it is, also in a terminal. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from contracts.account import OrderType
from contracts.account_query import HeldAtClose
from contracts.report import (
    CycleLine,
    DayReport,
    FillLine,
    OrderLine,
    StopLine,
    Worth,
)
from libs.facts import amounts
from libs.quant import ticks
from libs.report import cutoff, ending, orders, view, why_not
from libs.report.view import Cell, Column, Table

CELL_CHARS_MAX = 120
EARNED = ("P&L", "This session", "Since the opening")
HARMLESS = {"|": "/", "`": "'", "<": "&lt;", "](": "] ("}
"""Signs that could end a cell or begin a link, a tag or code, and what stands for them."""


def markdown(report: DayReport) -> str:
    """The whole report."""
    parts = [
        f"# {report.account}, {amounts.session(report.session)}",
        _headline(report),
        *filter(None, [_not_counted(report)]),
        "## Needs a person",
        _attention(report),
        "## Decided",
        _table(_decided(report.cycles)) or "Nothing was asked of the desk.",
        *_not_bought(report.cycles),
        "## Done",
        _done(report),
        "## Earned",
        _table(_earned(report.worth, report.currency)) if report.worth else "Not known: see above.",
        "## Held at the close",
        _table(_held(report.held, report.currency))
        or ("Nothing." if report.worth else "Not known: see above."),
        *filter(None, [_table(_stops(report.stops))]),
        "## Spent",
        _spent(report),
        f"Made {report.made_at:%Y-%m-%d %H:%M:%S} UTC; amounts are in {report.currency}.",
    ]
    return "\n\n".join(parts) + "\n"


def _headline(report: DayReport) -> str:
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
        f"**{_sum(worth.equity, report)}**, {_signed(change, report)}{share} {since}: "
        f"cash {_sum(worth.cash, report)}, positions {_sum(worth.positions, report)}.{flow}"
    )


def _not_counted(report: DayReport) -> str:
    text = cutoff.not_counted(report.not_counted, report.currency)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _attention(report: DayReport) -> str:
    if not report.attention:
        return "Nothing."
    return "\n".join(f"- {_cell(line.text, None)}: `{line.todo}`" for line in report.attention)


def _decided(cycles: Sequence[CycleLine]) -> Table:
    rows = tuple(
        view.row(
            view.say(amounts.short(cycle.cycle_id)),
            view.say(cycle.kind),
            view.say(cycle.pipeline),
            view.say(cycle.status.value),
            view.say(
                ending.marked(_proposed(cycle) or cycle.reason or "nothing", cycle.substitutes)
            ),
        )
        for cycle in cycles
    )
    return Table(_columns("Cycle", "Kind", "Pipeline", "Status", "Decided"), rows)


def _not_bought(cycles: Sequence[CycleLine]) -> Sequence[str]:
    """For each decision the candidates that it did not buy, and why."""
    return [
        _table(replace(why_not.table(cycle.not_bought), notes=()).in_use)
        for cycle in cycles
        if cycle.not_bought
    ]


def _proposed(cycle: CycleLine) -> str:
    decided = [
        f"{d.action.value} {amounts.quantity(d.quantity)} {d.asset}" for d in cycle.decisions
    ]
    return orders.proposal(decided, cycle.vetoed)


def _done(report: DayReport) -> str:
    fills = Table(
        _columns("Filled", "Shares", "Asset", "Price", "Fee", right=("Shares", "Price", "Fee")),
        tuple(
            view.row(
                view.say(_side(fill)),
                view.shares(fill.quantity),
                view.say(fill.asset),
                view.price(ticks.priced(fill.price, report.currency)),
                view.money(fill.fee, report.currency),
            )
            for fill in report.fills
        ),
        currency=report.currency,
    )
    ordered = Table(
        _columns("Ordered", "Shares", "Asset", "Type", "Status", right=("Shares",)),
        tuple(
            view.row(
                view.say(order.side.value),
                view.shares(order.quantity),
                view.say(order.asset),
                view.say(_type(order, report.currency)),
                view.say(order.status.value + (f": {order.reason}" if order.reason else "")),
            )
            for order in report.orders
        ),
    )
    tables = filter(None, (_table(fills), _table(ordered)))
    return "\n\n".join(tables) or "Nothing was ordered and nothing filled."


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


def _earned(worth: Worth, currency: str) -> Table:
    parts = (
        ("Realised", worth.earned.realised, worth.ever.realised),
        ("Unrealised", worth.earned.unrealised, worth.ever.unrealised),
        ("Dividends", worth.earned.dividends, worth.ever.dividends),
        ("Fees", -worth.earned.fees, -worth.ever.fees),
        ("**Total**", worth.earned.whole, worth.ever.whole),
    )
    return Table(
        _columns(*EARNED, right=EARNED[1:]),
        tuple(
            view.row(view.say(name), view.gain(now, currency), view.gain(ever, currency))
            for name, now, ever in parts
        ),
        currency=currency,
    )


def _held(held: Sequence[HeldAtClose], currency: str) -> Table:
    heads = ("Asset", "Shares", "Cost", "Price", "Value", "Gain")
    return Table(
        _columns(*heads, right=heads[1:]),
        tuple(
            view.row(
                view.say(position.ticker),
                view.shares(position.quantity),
                view.price(ticks.priced(position.cost / position.quantity, currency))
                if position.quantity
                else view.BLANK,
                _price(position, currency),
                view.money(position.value, currency),
                view.gain(position.gain, currency),
            )
            for position in held
        ),
        currency=currency,
    )


def _price(held: HeldAtClose, currency: str) -> Cell:
    if held.price is None:
        return view.say("no price")
    cell = view.price(ticks.priced(held.price, currency))
    of = f" of {amounts.session(held.priced_on)}" if held.priced_on else ""
    return replace(cell, text=cell.text + of)


def _stops(stops: Sequence[StopLine]) -> Table:
    return Table(
        _columns("Stop on", "Shares", "At", "Decided", right=("Shares", "At")),
        tuple(
            view.row(
                view.say(stop.ticker),
                view.shares(stop.quantity),
                view.price(ticks.priced(stop.stop_price, stop.currency)),
                view.day(stop.as_of),
            )
            for stop in stops
        ),
    )


def _spent(report: DayReport) -> str:
    if not report.usage.tokens and report.usage.cost_usd == 0:
        return "Nothing on models."
    cost_usd = report.usage.cost_usd
    dollars = "cost unknown" if cost_usd is None else f"{cost_usd:,.4f} USD"
    return f"{report.usage.tokens:,} tokens, {dollars} on models."


def _columns(*titles: str, right: Sequence[str] = ()) -> tuple[Column, ...]:
    return tuple(Column(title, right=title in right) for title in titles)


def _table(of: Table) -> str:
    """A description as Markdown with its columns in line; empty without rows."""
    if not of.rows:
        return ""
    heads = [column.title for column in of.columns]
    cells = [[_cell(cell.shown(of.currency)) for cell in row.cells] for row in of.rows]
    widths = [max(map(len, texts), default=0) for texts in zip(heads, *cells, strict=True)]
    sides = [column.right for column in of.columns]

    def line(texts: Sequence[str]) -> str:
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, sides, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (w - 1) + (":" if right else "-") for w, right in zip(widths, sides, strict=True)]
    return "\n".join([line(heads), line(rule), *map(line, cells)])


def _cell(text: str, chars_max: int | None = CELL_CHARS_MAX) -> str:
    """Text on one line that ends no cell and begins no markup."""
    known = "".join(c if c.isprintable() else " " for c in text)
    plain = " ".join(known.split())
    for sign, harmless in HARMLESS.items():
        plain = plain.replace(sign, harmless)
    if chars_max is not None and len(plain) > chars_max:
        return plain[: chars_max - 1] + "…"
    return plain


def _sum(amount: Decimal, report: DayReport) -> str:
    return amounts.money(ticks.priced(amount, report.currency))


def _signed(amount: Decimal, report: DayReport) -> str:
    gained = amounts.change(ticks.priced(amount, report.currency))
    return gained if amount else _sum(amount, report)
