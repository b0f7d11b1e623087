"""An account on a screen: its worth, its gains, its positions, fills and waiting orders. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from uuid import UUID

from contracts.account import HeldPlan, OpenOrder, Portfolio, Position, Side
from contracts.account_query import AccountView, HeldAtClose
from contracts.halt import Halt
from contracts.types import Money
from contracts.venue import DESK_STOPS
from libs.facts import amounts
from libs.quant import ticks
from libs.report import cutoff, orders
from libs.report import view as cells
from libs.report.tones import Tone
from libs.report.view import BLANK, Cell, Column, Facts, NoRows, Row, Table, Text

HALT_REASON_CHARS = 400


def heading(view: AccountView) -> str:
    """`as of the close of Tue 2012-07-31, amounts in USD`."""
    return cutoff.as_of(view.closed_on, currency(view))


def currency(view: AccountView) -> str:
    """The account's currency; empty where there is no such account."""
    return view.portfolio.equity.currency if view.portfolio else ""


def account(view: AccountView) -> str:
    """The account's name; empty where there is no such account."""
    return view.portfolio.account if view.portfolio else ""


def notes(view: AccountView) -> tuple[Text, ...]:
    """A halt of its buys, what its figures do not count yet, and the broker that it is bound to."""
    books = view.portfolio
    bound = books.venue if books else None
    at_broker = f"orders go to {bound.venue} {bound.account_number}; {DESK_STOPS}" if bound else ""
    halt = f"{halted(books.halt)}" if books and books.halt else ""
    later = cutoff.not_counted(view.not_counted, currency(view))
    if later and books:
        later += f"; cash is {amounts.money(books.cash)} now"
    return (
        *cells.notes(halt, tone=Tone.WARN),
        *cells.notes(later, tone=Tone.BUSY),
        *cells.notes(at_broker),
    )


def worth(view: AccountView) -> Facts:
    """Cash and positions, what they come to, and what was paid in."""
    unit, paid = currency(view), view.paid_in == view.starting_cash
    return Facts(
        (
            ("Cash", cells.money(view.cash, unit)),
            ("Positions", cells.money(view.equity - view.cash, unit)),
            ("Equity", cells.money(view.equity, unit).strong),
            ("Starting cash" if paid else "Paid in", cells.money(view.paid_in, unit)),
            ("Exposure", cells.percent(_share(view.exposure_gross, view.equity))),
        ),
        currency=unit,
    )


def gains(view: AccountView) -> Facts:
    """The P&L by its parts. The return says that it is time-weighted where more than the starting
    cash was paid in."""
    unit, total = currency(view), view.equity - view.paid_in
    time_weighted = "" if view.paid_in == view.starting_cash else " time-weighted"
    change = amounts.change(ticks.priced(total, unit), unit)
    shown = f"{change} ({amounts.gain_percent(view.return_pct)}{time_weighted})"
    return Facts(
        (
            ("Realised P&L", cells.gain(view.realised, unit)),
            ("Unrealised P&L", cells.gain(view.unrealised, unit)),
            ("Dividends", cells.gain(view.dividends, unit)),
            ("Fees", cells.gain(-view.fees, unit)),
            ("Total P&L", replace(cells.gain(total, unit), text=shown)),
        ),
        currency=unit,
    )


POSITIONS = (
    "Position",
    "Shares",
    Column("Since", right=True),
    Column("Cost", spare=3),
    "Price",
    "Value",
    Column("Of equity", spare=4),
    "Unrealised P&L",
    Column("Stop order", spare=2),
    Column("Sector", spare=1),
)


def positions(view: AccountView) -> Table:
    """The positions at the close, the largest first, and in the column Since the shares that moved
    afterwards."""
    unit, books = currency(view), view.portfolio
    now = {held.ticker: held for held in books.positions} if books else {}
    then = {held.ticker: held for held in view.held}
    stops = {it.asset: it.stop_price for it in books.open_orders if it.stop_price} if books else {}
    rows = (
        _position(view, ticker, then.get(ticker), now.get(ticker), stops.get(ticker))
        for ticker in sorted({*then, *now})
    )
    later = "since: shares bought or sold after this close, not counted yet"
    moved = any(_moved(then.get(it), now.get(it)) for it in {*then, *now})
    return cells.table(
        POSITIONS,
        cells.by_value(rows, VALUE),
        title="Positions",
        currency=unit,
        empty=NoRows("No open positions."),
        notes=(
            *cells.notes(later if moved else ""),
            *cells.notes(*map(_abroad, view.held)),
            *cells.notes(*unpriced(view.held), tone=Tone.WARN),
        ),
    )


VALUE = POSITIONS.index("Value")


def _position(
    view: AccountView,
    ticker: str,
    then: HeldAtClose | None,
    now: Position | None,
    stop: Money | None,
) -> Row:
    unit, moved = currency(view), _moved(then, now)
    name = cells.ticker(ticker, account(view))
    since = cells.say(f"{moved:+,f}", Tone.BUSY) if moved else BLANK
    tail = (
        cells.price(stop) if stop else BLANK,
        cells.say(now.sector) if now else BLANK,
    )
    if then is None:
        return cells.row(
            name, cells.shares(Decimal(0)), since, *[cells.unknown()] * 5, *tail, key=ticker
        )
    cost = then.cost / then.quantity if then.quantity else None
    return cells.row(
        name,
        cells.shares(then.quantity),
        since,
        _priced(cost, unit),
        _priced(then.price, unit),
        cells.money(then.value, unit),
        cells.percent(_share(then.value, view.equity)),
        cells.gain(then.gain, unit, _share(then.gain, then.cost)),
        *tail,
        key=ticker,
    )


def _moved(then: HeldAtClose | None, now: Position | None) -> Decimal:
    """The shares that moved since the close."""
    before = then.quantity if then else Decimal(0)
    return ((now.quantity if now else Decimal(0)) - before).normalize()


def _priced(amount: Decimal | None, unit: str) -> Cell:
    return cells.unknown() if amount is None else cells.price(ticks.priced(amount, unit))


def _share(part: Decimal | None, whole: Decimal) -> Decimal | None:
    return part / whole * 100 if part is not None and whole else None


def _abroad(held: HeldAtClose) -> str:
    return f"{held.ticker}: {amounts.foreign(held.foreign)}" if held.foreign else ""


FILLS = (
    "Session",
    "Fill",
    "Shares",
    "Ticker",
    "Price",
    Column("Value", spare=2),
    "Fee",
    Column("Counted", spare=1),
    Column("Decision", spare=3),
)


def fills(view: AccountView, decisions: Mapping[UUID, tuple[UUID, str]] | None = None) -> Table:
    """The newest fills. `decisions` are the cycle and the pipeline behind each order."""
    unit, behind = currency(view), decisions or {}
    rows = (
        (
            cells.day(fill.session),
            cells.say(fill.side.value, Tone.GOOD if fill.side is Side.BUY else Tone.BAD),
            cells.shares(fill.quantity),
            cells.ticker(fill.asset, account(view)),
            cells.price(fill.price),
            cells.money(fill.value, unit),
            cells.money(fill.fee.amount, unit),
            cells.say("not yet", Tone.BUSY)
            if view.closed_on and fill.session > view.closed_on
            else BLANK,
            cells.decision(*behind.get(fill.order_id, (None, None))),
        )
        for fill in view.fills
    )
    none = NoRows("Nothing was filled yet.")
    return cells.table(FILLS, rows, title="Last fills", currency=unit, empty=none)


def unpriced(held: Sequence[HeldAtClose]) -> Sequence[str]:
    """The positions that stand at an older session's price, a sentence each."""
    return [
        f"{position.ticker} has no price now: it is valued at its last price, of "
        f"{amounts.session(position.priced_on)}, and cannot be sold until it has a new one"
        for position in held
        if position.priced_on
    ]


def plans(books: Portfolio) -> Sequence[str]:
    """A sentence for each position: why it was bought, what would prove it wrong, and when it is
    reviewed."""
    stops = {order.asset: order.stop_price for order in books.open_orders if order.stop_price}
    return [
        f"{held.ticker}: {_plan(held, held.plan, stops.get(held.ticker), books.as_of)}"
        for held in books.positions
        if held.plan is not None
    ]


def _plan(held: Position, plan: HeldPlan, stop: Money | None, as_of: date) -> str:
    """`bought on Mon 2012-05-14 (For: ...); stop 545.20 USD; review by 2012-07-14`. The stop is the
    one that stands now: a split or an exit moves it."""
    wrong = f"wrong if its {plan.review_event} speaks against it" if plan.review_event else ""
    falls = f"stop {amounts.price(stop)}" if stop else ""
    again = f"review by {plan.review_by}" if plan.review_by else ""
    if plan.is_due(as_of):
        again = f"review due since {plan.review_by}: kept only if it would be bought today"
    return "; ".join(filter(None, (orders.entered(held), falls, wrong, again)))


def standing(books: Portfolio) -> Sequence[Text]:
    """The plan of each position, and the orders that wait."""
    orders = (f"open order: {waiting(order)}" for order in books.open_orders)
    return (*cells.notes(*plans(books)), *cells.notes(*orders, tone=Tone.WARN))


def waiting(order: OpenOrder) -> str:
    """`buy 3 AAPL, 100.00 USD reserved, decided Fri 2012-06-29`; of a stop its price."""
    text = f"{order.side.value} {amounts.quantity(order.quantity)} {order.asset}"
    if stop := order.stop_price:
        text += f" at a stop of {amounts.price(stop)}"
    if order.hold.amount:
        text += f", {amounts.money(order.hold)} reserved"
    return f"{text}, decided {amounts.session(order.as_of)}" if order.as_of else text


def halted(halt: Halt) -> str:
    """`buys of main are halted since 2026-11-22 02:00:00 UTC by cli: crash`."""
    whose = halt.account or "every account"
    since = f"{halt.since:%Y-%m-%d %H:%M:%S} UTC"
    because = f": {amounts.cut(halt.reason, HALT_REASON_CHARS)}" if halt.reason else ""
    return f"buys of {whose} are halted since {since} by {halt.by}{because}"


def remedy(halt: Halt) -> str:
    """The command that ends a halt."""
    return halt.remedy
