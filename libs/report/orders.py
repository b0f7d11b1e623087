"""Orders and fills, and the risk of buys: in sentences, and order by order. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from contracts.account import EntryPlan, Fill, OrderStatus, OrderType, Position, Side
from contracts.execution import ExecutionResult, Order
from contracts.risk import DecisionAction, DecisionValidation
from contracts.venue import DESK_STOPS
from libs.facts import amounts
from libs.quant.recalibration import in_words
from libs.quant.ticks import priced
from libs.report import view
from libs.report.reports import Reports
from libs.report.tones import Tone
from libs.report.view import BLANK, Cell, Column, Table
from libs.runtime.errors import listed

REASON_CHARS = 160
BOOKED_LATER = "waits for the next open; its fill is booked with the account's next cycle"
"""Of an order that the desk fills itself: prices alone book nothing, a cycle of any kind does."""
THESIS_CHARS = 240
"""Of a thesis in a line; the whole stands in its own decision."""


@dataclass(frozen=True)
class OrderRow:
    """One order with its fill."""

    order: Order
    fill: Fill | None

    @property
    def name(self) -> str:
        """`sell AAPL`, and for a stop order `sell AAPL, stop at 95.00 USD`."""
        order, stop = self.order, self.order.stop_price
        at = f", stop at {amounts.price(stop)}" if stop and _is_stop(order) else ""
        return f"{order.side.value} {order.asset}{at}"

    @property
    def abroad(self) -> str:
        """The exchange and its rate; empty for a fill in the account's own currency."""
        foreign = self.fill.foreign if self.fill else None
        return amounts.foreign(foreign) if foreign else ""

    @property
    def notes(self) -> Sequence[str]:
        """Why it was not filled or was cut, the exchange, and how it is filled where it waits."""
        order = self.order
        at_open = order.status is OrderStatus.WORKING and not _is_stop(order)
        waits = BOOKED_LATER if at_open and order.venue is None else ""
        return [note for note in (order.reason, self.abroad, waits) if note]


def _is_stop(order: Order) -> bool:
    return order.type is OrderType.STOP


def rows(result: ExecutionResult) -> Sequence[OrderRow]:
    """One row an order, in the order of placing."""
    fills = {fill.order_id: fill for fill in result.fills}
    return [OrderRow(order, fills.get(order.order_id)) for order in result.orders]


def table(orders: Sequence[OrderRow], result: ExecutionResult) -> Table:
    """A row an order with its fill; below the values what they did to the cash."""
    currency = result.cash_after.currency
    before, after = result.cash_before.amount, result.cash_after.amount
    cash = (
        ("cash before", view.money(before, currency)),
        ("change", view.gain(after - before, currency).toned(None)),
        ("cash after", view.money(after, currency)),
    )
    blanks = (BLANK,) * 4
    return view.table(
        (
            Column("Order", wraps=True),
            Column("Status", spare=2),
            "Shares",
            f"Price {currency}",
            "At the open of",
            f"Value {currency}",
            Column(f"Fee {currency}", spare=1),
        ),
        (
            *(view.row(*_cells(it)) for it in orders),
            *(view.row(label, *blanks, amount, BLANK) for label, amount in cash),
        ),
        currency=currency,
        notes=tuple(
            view.Text(
                f"{it.name}: {amounts.cut(note, REASON_CHARS)}",
                Tone.WARN if it.order.reason else None,
            )
            for it in orders
            for note in it.notes
        ),
    )


def _cells(it: OrderRow) -> Sequence[Cell]:
    order, fill = it.order, it.fill
    tone = Tone.GOOD if order.side is Side.BUY else Tone.BAD
    placed = (
        view.say(it.name, tone),
        view.say(order.status.value),
        view.shares(order.quantity),
    )
    if fill is None:
        return (*placed, *(BLANK,) * 4)
    return (
        *placed,
        view.price(fill.price),
        view.day(fill.session),
        view.money(fill.value, fill.price.currency),
        view.money(fill.fee.amount, fill.fee.currency),
    )


def proposal(wanted: Sequence[str], vetoed: Sequence[str]) -> str:
    """`buy 39 AAPL, buy 888 MSFT; vetoed FB, GOOG`; empty where there is nothing of either."""
    refused = f"vetoed {', '.join(vetoed)}" if vetoed else ""
    return "; ".join(filter(None, (", ".join(wanted), refused)))


def in_short(result: ExecutionResult) -> str:
    """`bought 39 AAPL and 888 MSFT for 50,024.49 USD`: the fills in one sentence."""
    parts = [_traded(result, side) for side in (Side.SELL, Side.BUY)]
    working = [order.type for order in result.orders if order.status is OrderStatus.WORKING]
    waiting, stops = working.count(OrderType.MARKET), working.count(OrderType.STOP)
    if waiting:
        parts.append(f"{amounts.count(waiting, 'order')} still to be filled")
    if stops:
        parts.append(f"{amounts.count(stops, 'stop')} placed")
    return "; ".join(filter(None, parts)) or "no order was filled"


def _traded(result: ExecutionResult, side: Side) -> str:
    fills = [fill for fill in result.fills if fill.side is side]
    if not fills:
        return ""
    names = [f"{amounts.quantity(fill.quantity)} {fill.asset}" for fill in fills]
    value = sum((fill.value for fill in fills), Decimal(0))
    verb = "bought" if side is Side.BUY else "sold"
    return f"{verb} {listed(names)} for {amounts.money(priced(value, fills[0].price.currency))}"


def planned(plan: EntryPlan) -> str:
    """`1,020.00 USD at risk (1% of equity; stop 545.20 USD); review by 2010-07-14`: a gap through
    the stop can lose more. An event that it names may prove it wrong too."""
    money = amounts.money(plan.risk)
    stop = "no stop" if plan.stop_price is None else f"stop {amounts.price(plan.stop_price)}"
    risks = f"{money} at risk ({amounts.percent(plan.risk_pct)} of equity; {stop})"
    wrong = f"wrong if its {plan.review_event} speaks against it" if plan.review_event else ""
    again = f"review by {plan.review_by}" if plan.review_by else ""
    return "; ".join(filter(None, (risks, wrong, again)))


def at_risk(validation: DecisionValidation | None) -> Sequence[str]:
    """The plans of the buys that the rules left, a line each, and whose their stops are."""
    plans = [
        (decision, decision.plan)
        for decision in (validation.decisions if validation else ())
        if decision.action is DecisionAction.BUY and decision.plan is not None
    ]
    stopped = any(decision.venue and plan.stop_price for decision, plan in plans)
    lines = [f"{decision.asset}: {planned(plan)}" for decision, plan in plans]
    return [*lines, *([DESK_STOPS] if stopped else [])]


def recalibrated(validation: DecisionValidation | None) -> Sequence[str]:
    """`AAPL: stated 0.62, recalibrated 0.55 from 84 outcomes known until 2012-06-29`: a line for
    each buy that the rules left, where outcomes were known to size it by."""
    return [
        f"{decision.asset}: {in_words(decision.confidence, decision.recalibrated)}"
        for decision in (validation.decisions if validation else ())
        if decision.recalibrated is not None
    ]


def outcomes_in(reports: Reports, *, is_known: bool = False) -> Sequence[str]:
    """A line for each position that is sold: what came of it until as_of's close, and why it was
    bought; of results that are known already only the latter. Its fill stands among the orders: a
    split at that open would count other shares."""
    positions = reports.portfolio.positions if reports.portfolio else ()
    held = {position.ticker: position for position in positions}
    sold = [
        (decision, held[decision.asset])
        for decision in reports.decisions.values()
        if decision.action is DecisionAction.SELL and decision.asset in held
    ]
    words = [entered(of) if is_known else _came_of(of, it.quantity) for it, of in sold]
    return [f"{of.ticker}: {text}" for (_, of), text in zip(sold, words, strict=True) if text]


def _came_of(held: Position, sold: Decimal) -> str:
    """`26 of 53 shares: +1,234.00 USD (+12.30%) at the close, before fees; bought on Mon 2012-05-14
    (For: ...)`: the thesis, which may be long, comes last."""
    price, cost = held.price, held.average_cost.amount
    gain = amounts.change(priced(sold * (price.amount - cost), price.currency))
    share = f" ({amounts.gain_percent((price.amount / cost - 1) * 100)})" if cost else ""
    shares = f"{amounts.quantity(sold)} of {amounts.quantity(held.quantity)} shares"
    of = f"{shares}: {gain}{share} at the close, before fees"
    return "; ".join(filter(None, (of, entered(held))))


def entered(held: Position) -> str:
    """`bought on Mon 2012-05-14 (For: ...)`: when and for which thesis; empty where neither is
    known."""
    since = held.plan.since if held.plan else held.opened_on
    bought = f"bought on {amounts.session(since)}" if since else ""
    thesis = amounts.cut(held.plan.thesis.rstrip("."), THESIS_CHARS) if held.plan else ""
    return " ".join(filter(None, (bought, thesis and f"({thesis})")))
