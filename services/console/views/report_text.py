"""The daily report as Markdown that reads well as it is, also in a terminal. Pure."""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

from contracts.account import OrderType
from contracts.report import (
    CycleLine,
    DayReport,
    FillLine,
    Gains,
    HeldLine,
    OrderLine,
    StopLine,
    Worth,
)
from libs.facts import amounts
from libs.report import orders

CELL_CHARS_MAX = 120
HARMLESS = {"|": "/", "`": "'", "<": "&lt;", "](": "] ("}
"""Signs that could end a cell or begin a link, a tag or code, and what stands for them."""


def markdown(report: DayReport) -> str:
    """The whole report."""
    parts = [
        f"# {report.account}, {_day(report.session)}",
        _headline(report),
        "## Needs a person",
        _attention(report),
        "## Decided",
        _table(("Cycle", "Kind", "Pipeline", "Status", "Decided"), _decided(report.cycles))
        or "Nothing was asked of the desk.",
        "## Done",
        _done(report),
        "## Earned",
        _earned(report.worth) if report.worth else "Not known: see above.",
        "## Held at the close",
        _held(report.held) or ("Nothing." if report.worth else "Not known: see above."),
        *filter(None, [_stops(report.stops)]),
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
        flow = f" {amounts.money(abs(worth.paid_in))} {way}."
    share = f" ({amounts.gain_percent(change / before * 100)})" if before else ""
    since = f"since {_day(worth.previous)}" if worth.previous else "since the opening"
    return (
        f"**{amounts.money(worth.equity)} {report.currency}**, {_signed(change)}{share} {since}: "
        f"cash {amounts.money(worth.cash)}, positions {amounts.money(worth.positions)}.{flow}"
    )


def _attention(report: DayReport) -> str:
    if not report.attention:
        return "Nothing."
    return "\n".join(f"- {_cell(line.text, None)}: `{line.todo}`" for line in report.attention)


def _decided(cycles: Sequence[CycleLine]) -> Iterator[tuple[str, ...]]:
    for cycle in cycles:
        decided = [f"{d.action.value} {_shares(d.quantity)} {d.asset}" for d in cycle.decisions]
        proposed = orders.proposal(decided, cycle.vetoed)
        yield (
            f"{str(cycle.cycle_id)[:8]}",
            cycle.kind,
            cycle.pipeline,
            cycle.status.value,
            proposed or cycle.reason or "nothing",
        )


def _done(report: DayReport) -> str:
    fills = _table(
        ("Filled", "Shares", "Asset", "Price", "Fee"),
        (
            (_side(f), _shares(f.quantity), f.asset, amounts.money(f.price), amounts.money(f.fee))
            for f in report.fills
        ),
        right=(1, 3, 4),
    )
    orders = _table(
        ("Ordered", "Shares", "Asset", "Type", "Status"),
        (
            (
                o.side.value,
                _shares(o.quantity),
                o.asset,
                _type(o),
                o.status.value + (f": {o.reason}" if o.reason else ""),
            )
            for o in report.orders
        ),
        right=(1,),
    )
    return "\n\n".join(filter(None, (fills, orders))) or "Nothing was ordered and nothing filled."


def _side(fill: FillLine) -> str:
    """Of a stop order that its price has reached, `sell at its stop`."""
    at = " at its stop" if fill.type is OrderType.STOP else ""
    return f"{fill.side.value}{at}"


def _type(order: OrderLine) -> str:
    """`stop at 95.00`; of a sale that leaves one behind, `market, then a stop at 95.00`."""
    if order.stop_price is None:
        return order.type.value
    then = "" if order.type is OrderType.STOP else "market, then a "
    return f"{then}stop at {amounts.money(order.stop_price)}"


def _earned(worth: Worth) -> str:
    rows = [
        (name, _signed(of(worth.earned)), _signed(of(worth.ever)))
        for name, of in (
            ("Realised", lambda gains: gains.realised),
            ("Unrealised", lambda gains: gains.unrealised),
            ("Dividends", lambda gains: gains.dividends),
            ("Fees", lambda gains: -gains.fees),
            ("**Total**", _whole),
        )
    ]
    return _table(("P&L", "This session", "Since the opening"), rows, right=(1, 2))


def _whole(gains: Gains) -> Decimal:
    return gains.whole


def _held(held: Sequence[HeldLine]) -> str:
    rows = (
        (
            position.ticker,
            _shares(position.quantity),
            amounts.money(position.cost / position.quantity) if position.quantity else "",
            _price(position),
            amounts.money(position.value) if position.value is not None else "",
            _signed(position.gain) if position.gain is not None else "",
        )
        for position in held
    )
    return _table(
        ("Asset", "Shares", "Cost", "Price", "Value", "Gain"), rows, right=(1, 2, 3, 4, 5)
    )


def _price(held: HeldLine) -> str:
    if held.price is None:
        return "no price"
    of = f" of {_day(held.priced_on)}" if held.priced_on else ""
    return f"{amounts.money(held.price)}{of}"


def _stops(stops: Sequence[StopLine]) -> str:
    rows = (
        (
            stop.ticker,
            _shares(stop.quantity),
            f"{amounts.money(stop.stop_price)} {stop.currency}",
            _day(stop.as_of),
        )
        for stop in stops
    )
    return _table(("Stop on", "Shares", "At", "Decided"), rows, right=(1, 2))


def _spent(report: DayReport) -> str:
    if not report.usage.tokens and not report.usage.cost_usd:
        return "Nothing on models."
    return f"{report.usage.tokens:,} tokens, {report.usage.cost_usd:,.4f} USD on models."


def _table(
    heads: Sequence[str],
    rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]],
    right: Sequence[int] = (),
) -> str:
    """A table with its columns in line; empty without rows."""
    cells = [[_cell(text) for text in row] for row in rows]
    if not cells:
        return ""
    widths = [max(map(len, column), default=0) for column in zip(heads, *cells, strict=True)]
    rule = [("-" * (w - 1) + ":" if n in right else "-" * w) for n, w in enumerate(widths)]

    def line(row: Sequence[str]) -> str:
        padded = (
            text.rjust(width) if number in right else text.ljust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

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


def _day(day: date | None) -> str:
    return f"{day:%a %Y-%m-%d}" if day else ""


def _signed(amount: Decimal) -> str:
    return amounts.change(amount) if amount else amounts.money(amount)


def _shares(amount: Decimal) -> str:
    return f"{amount.normalize():,f}"
