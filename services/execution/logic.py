"""What to place, fill, cut and post: pure functions on an account's state and on market quotes.

All market data is read before; where a locked account needs a quote that was not read,
`StaleQuotes` asks for another reading.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

import orjson

from contracts.account import Side
from contracts.execution import ExecuteDecisions, ExecutionResult, OrderStatus
from contracts.halt import Halt
from contracts.risk import DecisionAction, PortfolioDecision
from contracts.trader import StockPick
from libs.broker.broker import Broker, Filled, MarketOrder, Opening, Working
from libs.quant.risk import RuleVerdict, evaluate
from libs.quant.risk_rules import CASH_RESERVE_BPS, HALTED, halt_words
from libs.quant.sizing import cash_hold
from libs.runtime import ids
from services.execution import books as ledger
from services.execution.account import (
    Account,
    Action,
    BookedOrder,
    BooksNotOpen,
    Ids,
    Quotes,
    StaleQuotes,
    fill_view,
    money,
    order_view,
    portfolio,
    require_clock,
    require_currency,
)
from services.execution.books import Entry

REASON_CHARS_MAX = 4_000
_ZERO: Final = Decimal(0)


@dataclass(frozen=True)
class Changes:
    """What is to be written, and the account after it. `ended` are orders that no longer work."""

    account: Account
    placed: tuple[BookedOrder, ...] = ()
    ended: tuple[BookedOrder, ...] = ()
    entries: tuple[Entry, ...] = ()

    def post(self, entry: Entry) -> "Changes":
        """With one more entry."""
        account = replace(self.account, books=self.account.books.posted(entry))
        return replace(self, account=account, entries=(*self.entries, entry))


def advance(account: Account, as_of: date, quotes: Quotes, broker: Broker) -> Changes:
    """Bring the account to as_of's close: splits and dividends, then the fills that were due.

    An order whose session has passed without an open in that ticker is cancelled: it was for that
    open. So is a buy that comes due while the account is halted. Raises ClockBack and StaleQuotes.
    """
    require_clock(account, as_of)
    steps = [*_action_steps(account, as_of, quotes), *_fill_steps(account, as_of, quotes)]
    changes = Changes(replace(account, clock=as_of))
    for _, step in sorted(steps, key=lambda item: item[0]):
        if isinstance(step, BookedOrder):
            changes = _fill_working(changes, step, quotes, broker)
        else:
            changes = _apply_action(changes, *step)
    return changes


_Step = tuple[tuple[date, int, str], "BookedOrder | tuple[str, Action]"]


def _action_steps(account: Account, as_of: date, quotes: Quotes) -> list[_Step]:
    if account.clock == as_of:
        return []
    if account.touched and (quotes.since is None or quotes.since > account.clock):
        raise StaleQuotes
    steps: list[_Step] = []
    for ticker in account.touched:
        if ticker not in quotes.actions:
            raise StaleQuotes
        steps += [
            ((action.session, 0, ticker), (ticker, action))
            for action in quotes.actions[ticker]
            if action.session > account.clock
        ]
    return steps


def _fill_steps(account: Account, as_of: date, quotes: Quotes) -> list[_Step]:
    steps: list[_Step] = []
    for order in account.working:
        if order.as_of not in quotes.due:
            raise StaleQuotes
        due = quotes.due[order.as_of]
        if due <= as_of:
            # Sales first: they make room for the day's buys.
            rank = 1 if order.side is Side.SELL else 2
            steps.append(((due, rank, order.ticker), order))
    return steps


def _apply_action(changes: Changes, ticker: str, action: Action) -> Changes:
    session = action.session
    if action.split_ratio != 1:
        changes = _split_once(changes, ticker, session, action.split_ratio, action.open_price)
    books = changes.account.books
    shares = books.quantity_before(ticker, session, with_split=True)
    paid_before = books.has(ledger.dividend_key(ticker, session))
    if action.dividend_per_share > 0 and shares > 0 and not paid_before:
        changes = changes.post(
            ledger.dividend(ticker, session, action.dividend_per_share, changes.account.books)
        )
    return changes


def _split_once(
    changes: Changes, ticker: str, session: date, ratio: Decimal, open_price: Decimal
) -> Changes:
    books = changes.account.books
    if books.has(ledger.split_key(ticker, session)) or not books.quantity_before(ticker, session):
        return changes
    return changes.post(ledger.split(ticker, session, ratio, open_price, books))


def _fill_working(changes: Changes, order: BookedOrder, quotes: Quotes, broker: Broker) -> Changes:
    if order.key not in quotes.openings:
        raise StaleQuotes
    opening, halt = quotes.openings[order.key], changes.account.halt
    why = ""
    if opening is None:
        why = f"{order.ticker} did not open on {quotes.due[order.as_of]}, the session it was for"
    if halt is not None and order.side is Side.BUY:
        why = f"{HALTED}: {halt_words(halt)}"
    if why:
        ended = replace(order, status=OrderStatus.CANCELLED, reason=_also(order.reason, why))
        return _with_ended(changes, ended)
    changes = _without(changes, order)  # its own hold is there for it
    ended, changes = _try_fill(changes, order, opening, broker)
    return _with_ended(changes, ended)


def _without(changes: Changes, order: BookedOrder) -> Changes:
    rest = tuple(o for o in changes.account.orders if o.order_id != order.order_id)
    return replace(changes, account=replace(changes.account, orders=rest))


def _with_ended(changes: Changes, order: BookedOrder) -> Changes:
    changes = _without(changes, order)
    return replace(changes, ended=(*changes.ended, order))


def _try_fill(
    changes: Changes, order: BookedOrder, opening: Opening | None, broker: Broker
) -> tuple[BookedOrder, Changes]:
    """Ask the broker; the order as it is then, and what was posted."""
    if opening is not None and opening.split_ratio != 1:
        changes = _split_once(
            changes, order.ticker, opening.session, opening.split_ratio, opening.price
        )
    account = changes.account
    answer = broker.answer(
        MarketOrder(order.order_id, order.ticker, order.side, order.quantity),
        opening,
        cash=account.cash_free,
        held=account.books.quantity(order.ticker),
    )
    if isinstance(answer, Filled):
        entry = ledger.filled(order.order_id, order.ticker, order.side, answer, account.books)
        done = replace(
            order,
            status=OrderStatus.FILLED,
            quantity=answer.quantity,
            reason=_also(order.reason, answer.note),
            fill=answer,
        )
        return done, changes.post(entry)
    status = OrderStatus.WORKING if isinstance(answer, Working) else OrderStatus.REJECTED
    return replace(order, status=status, reason=_also(order.reason, answer.reason)), changes


def _also(reason: str, more: str) -> str:
    return "; ".join(part for part in (reason, more) if part)[:REASON_CHARS_MAX]


def command_sha256(command: ExecuteDecisions) -> str:
    """What the command orders, as a hash: the same command sent again has the same one."""
    what = {
        "account": command.pipeline.account,
        "pipeline": command.pipeline.name,
        "as_of": command.as_of,
        "proposal": command.decision_validation.proposal_hash,
    }
    return hashlib.sha256(orjson.dumps(what, option=orjson.OPT_SORT_KEYS)).hexdigest()


def order_id(command: ExecuteDecisions, decision: PortfolioDecision) -> UUID:
    """The order's id: of the cycle, the pipeline and the leg, whatever else happens (I2)."""
    leg = f"{decision.action.value}/{decision.asset}"
    return ids.order_id(command.cycle_id, command.pipeline.name, leg)


def order_ids(command: ExecuteDecisions) -> list[UUID]:
    """The ids of all orders that the command can place."""
    return [order_id(command, d) for d in _in_order(command.decision_validation.decisions)]


def execute(
    command: ExecuteDecisions,
    account: Account,
    quotes: Quotes,
    broker: Broker,
    existing: Mapping[UUID, BookedOrder],
) -> tuple[ExecutionResult, Changes]:
    """Judge the decisions again on the account as it is, place what is left, fill it at the next
    open. Sales come first, buys after them, each by ticker.

    Raises ClockBack, BooksNotOpen, CurrencyMismatch and StaleQuotes.
    """
    require_clock(account, command.as_of)
    if account.clock < command.as_of:
        raise BooksNotOpen(account.name, command.as_of)
    verdict = _judge_again(command, account, quotes)
    allowed = {(d.action, d.asset): d.quantity for d in verdict.decisions}
    changes = Changes(account)
    orders: list[BookedOrder] = []
    for decision in _in_order(command.decision_validation.decisions):
        known = existing.get(order_id(command, decision))
        if known is not None:
            orders.append(known)
            continue
        quantity = min(decision.quantity, allowed.get((decision.action, decision.asset), _ZERO))
        order = _new_order(command, decision, quantity, verdict, quotes.closes, account.halt)
        if order.status is OrderStatus.WORKING:
            order, changes = _place(changes, order, quotes, broker)
        orders.append(order)
        changes = replace(changes, placed=(*changes.placed, order))
    return _result(command, account, changes, orders), changes


def _in_order(decisions: Sequence[PortfolioDecision]) -> list[PortfolioDecision]:
    traded = (d for d in decisions if d.action is not DecisionAction.HOLD)
    return sorted(traded, key=lambda d: (d.action is DecisionAction.BUY, d.asset))


def _judge_again(command: ExecuteDecisions, account: Account, quotes: Quotes) -> RuleVerdict:
    validation = command.decision_validation
    budget = validation.budget
    require_currency(account, budget)
    # The rules leave their own result as it is, so judging what they approved can only cut it.
    approved = [
        StockPick(
            ticker=decision.asset,
            action=Side(decision.action.value),
            allocation_pct=decision.allocation_pct,
            reasoning=decision.reasoning,
            confidence=decision.confidence,
        )
        for decision in _in_order(validation.decisions)
    ]
    named = Ids(command.cycle_id, command.op_id, command.as_of)
    return evaluate(
        approved,
        {item.ticker: item for item in validation.evidence},
        portfolio(account, named, quotes.closes, quotes.before),
        account.limits,
        budget,
        {ticker: close for ticker, close in quotes.closes.items() if close is not None},
    )


def _new_order(
    command: ExecuteDecisions,
    decision: PortfolioDecision,
    quantity: Decimal,
    verdict: RuleVerdict,
    closes: Mapping[str, Decimal | None],
    halt: Halt | None,
) -> BookedOrder:
    evidence = {item.ticker: item for item in command.decision_validation.evidence}
    sector = evidence[decision.asset].sector if decision.asset in evidence else "unknown"
    side = Side(decision.action.value)
    price = closes.get(decision.asset) or decision.price.amount
    buying = side is Side.BUY
    return BookedOrder(
        order_id=order_id(command, decision),
        account=command.pipeline.account,
        cycle_id=command.cycle_id,
        started_on=command.now.date(),
        op_id=command.op_id,
        pipeline=command.pipeline.name,
        ticker=decision.asset,
        sector=sector,
        side=side,
        quantity=quantity if quantity > 0 else decision.quantity,
        hold=cash_hold(price, quantity, CASH_RESERVE_BPS) if buying else _ZERO,
        status=OrderStatus.WORKING if quantity > 0 else OrderStatus.REJECTED,
        reason=_why_less(decision, quantity, verdict, halt),
        as_of=command.as_of,
    )


def _why_less(
    decision: PortfolioDecision, quantity: Decimal, verdict: RuleVerdict, halt: Halt | None
) -> str:
    if quantity >= decision.quantity:
        return ""
    if decision.action is DecisionAction.BUY and halt is not None:
        return f"{HALTED}: {halt_words(halt)}"
    told = [text for text in verdict.adjustments if text.startswith(f"{decision.asset}: ")]
    because = "; ".join(told) or "the account or the price has changed since it was validated"
    what = (
        f"cut from {decision.quantity:f} to {quantity:f} shares" if quantity > 0 else "not placed"
    )
    return f"{what} by the rules at execution: {because}"[:REASON_CHARS_MAX]


def _place(
    changes: Changes, order: BookedOrder, quotes: Quotes, broker: Broker
) -> tuple[BookedOrder, Changes]:
    if order.key not in quotes.openings:
        raise StaleQuotes
    order, changes = _try_fill(changes, order, quotes.openings[order.key], broker)
    if order.status is OrderStatus.WORKING and order.hold > changes.account.cash_free:
        # A hold that the cash cannot bear would let a later buy spend it twice.
        why = f"{changes.account.cash_free} of free cash does not cover its hold of {order.hold}"
        order = replace(order, status=OrderStatus.REJECTED, reason=_also(order.reason, why))
    if order.status is OrderStatus.WORKING:
        account = replace(changes.account, orders=(*changes.account.orders, order))
        changes = replace(changes, account=account)
    return order, changes


def _result(
    command: ExecuteDecisions, before: Account, changes: Changes, orders: Sequence[BookedOrder]
) -> ExecutionResult:
    return ExecutionResult.of(
        command,
        account=before.name,
        orders=tuple(order_view(order) for order in orders),
        fills=tuple(fill_view(o, o.fill, before) for o in orders if o.fill is not None),
        cash_before=money(before.books.cash, before),
        cash_after=money(changes.account.books.cash, before),
    )
