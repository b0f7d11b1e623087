"""Orders to place and cuts to make: pure functions on an account's state and on market quotes.

All market data is read before; where a locked account needs a quote that was not read,
`StaleQuotes` asks for another reading.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from contracts.account import Fill, OrderStatus, OrderType, Side
from contracts.execution import ExecuteDecisions, ExecutionResult, Order
from contracts.facts import RISK_UNKNOWN
from contracts.halt import Halt
from contracts.risk import DecisionAction, Evidence, PortfolioDecision
from contracts.trader import StockPick
from contracts.types import shortened
from contracts.venue import VenueTerms
from libs.broker.broker import Broker, Filled
from libs.market.symbols import is_us_ticker
from libs.quant.exchange import cents_in, price_in
from libs.quant.risk.evaluation import RuleVerdict, evaluate
from libs.quant.risk.plugins import plugin_ceilings
from libs.quant.risk.rules import (
    EXIT_GATES,
    HALTED,
    SELL_GATES,
    halt_words,
)
from libs.quant.sizing import CASH_RESERVE_BPS, cash_hold, whole_lots
from libs.runtime import ids
from services.execution import stops
from services.execution.account import (
    Account,
    BookedOrder,
    PortfolioIds,
    Quotes,
    foreign,
    money,
    portfolio,
    require_clock,
    require_currency,
    sector_of,
    stop_money,
)
from services.execution.changes import REASON_CHARS_MAX, Changes, also
from services.execution.clock import ratio_of, try_fill
from services.execution.errors import BooksNotOpen
from services.execution.record import Bounds
from services.execution.snapshots import StaleQuotes

_ZERO: Final = Decimal(0)


def order_id(command: ExecuteDecisions, decision: PortfolioDecision) -> UUID:
    """The order's id: of the cycle, the pipeline and the leg, whatever else happens."""
    leg = f"{decision.action.value}/{decision.asset}"
    return ids.order_id(command.cycle_id, command.pipeline.name, leg)


def order_ids(command: ExecuteDecisions) -> list[UUID]:
    """The ids of all orders that the command can place."""
    return [order_id(command, d) for d in _in_order(command.decision_validation.decisions)]


def execute(
    command: ExecuteDecisions,
    bounds: Bounds,
    account: Account,
    quotes: Quotes,
    broker: Broker,
    existing: Mapping[UUID, BookedOrder],
) -> tuple[ExecutionResult, Changes]:
    """Judge the decisions again on the account as it is, place what is left, fill it at the next
    open. Sales come first, buys after them, each by ticker. `bounds` are those of the request on
    record.

    Raises ClockBack, BooksNotOpen, CurrencyMismatch and StaleQuotes.
    """
    require_clock(account, command.as_of)
    if account.clock < command.as_of:
        raise BooksNotOpen(account.name, command.as_of)
    verdict = _judge_again(command, bounds, account, quotes)
    allowed = {(d.action, d.asset): d for d in verdict.decisions}
    changes = Changes(account)
    orders: list[BookedOrder] = []
    for decision in _in_order(command.decision_validation.decisions):
        known = existing.get(order_id(command, decision))
        if known is not None:
            orders.append(known)
            continue
        judged = allowed.get((decision.action, decision.asset))
        quantity = _ZERO if judged is None else _smaller(decision, judged)
        order = _new_order(command, decision, judged, quantity, verdict, account, quotes)
        if order.is_working:
            order = _as_decided(order, decision, judged, changes.account)
        if order.is_working and account.broker is None:
            order, changes = _fill(changes, order, quotes, broker)
        changes = changes.place(order)
        orders.append(order)
        changes = stops.after_fill(changes, order, ratio_of(quotes.openings.get(order.key)))
    orders += [order for order in changes.placed if order.type is OrderType.STOP]
    return _result(command, account, changes, orders), changes


def _as_decided(
    order: BookedOrder,
    decision: PortfolioDecision,
    judged: PortfolioDecision | None,
    account: Account,
) -> BookedOrder:
    """The order with what a broker is sent of it, exactly as it was decided; rejected where that
    is not what may be sent now. A sale is at most what both books hold."""
    binding, terms = account.broker, decision.venue
    if binding is None and terms is None:
        return order
    why = next(_not_as_decided(order, terms, judged, account), "")
    if why or binding is None:
        reason = also(order.reason, why or "the account is not bound to a broker")
        return replace(order, status=OrderStatus.REJECTED, reason=reason)
    held = binding.positions.get(order.ticker, _ZERO)
    if order.side is Side.SELL and held < order.quantity:
        cut = f"from {order.quantity:f} to {held:f} shares: the broker holds no more"
        if held <= 0:
            reason = also(order.reason, f"the broker holds no {order.ticker}")
            return replace(order, status=OrderStatus.REJECTED, reason=reason)
        order = replace(order, quantity=held, reason=also(order.reason, f"cut {cut}"))
    order = replace(order, terms=terms, window=binding.window)
    if order.hold > account.cash_free:
        why = f"{account.cash_free} of free cash does not cover its hold of {order.hold}"
        return replace(order, status=OrderStatus.REJECTED, reason=also(order.reason, why))
    return order


def _not_as_decided(
    order: BookedOrder,
    terms: VenueTerms | None,
    judged: PortfolioDecision | None,
    account: Account,
) -> Iterator[str]:
    """Why an order of a bound account may not be sent; nothing where it may."""
    binding, now = account.broker, judged.venue if judged else None
    if binding is None:
        yield "it was decided for a broker, and the account is not bound to one"
        return
    if terms is None or now is None:
        yield "the decision does not say what the broker is sent: request the cycle again"
        return
    if binding.window is None:
        yield "the next open is too near, or its session is not the newest one: nothing is sent"
    of, to = terms.account_number, binding.bound.account_number
    if (terms.venue, of) != (binding.bound.venue, to):
        yield f"it was decided for account {of} of {terms.venue}, and {to} is bound"
    if (terms.type, terms.time_in_force) != (now.type, now.time_in_force):
        yield f"it was decided as a {terms.type.value} order, and it is a {now.type.value} one"
    if _limit(terms) > _limit(now):
        yield f"its limit of {_limit(terms):f} is above {_limit(now):f}, the highest now"
    if order.foreign is not None:
        yield f"it trades in {order.foreign.price.currency}, and the broker trades in US dollars"
    if not is_us_ticker(order.ticker):
        yield f"{order.ticker} is no ticker of a US exchange, and the broker has no others"
    if order.ticker in binding.blocked:
        yield "a split of it is in one of both books only: deskbus account reconcile"
    if any(o.ticker == order.ticker and o.terms is not None for o in account.working):
        yield "another order of it is at the broker: one at a time"


def _limit(terms: VenueTerms) -> Decimal:
    return terms.limit_price.amount if terms.limit_price else _ZERO


def _in_order(decisions: Sequence[PortfolioDecision]) -> list[PortfolioDecision]:
    traded = (d for d in decisions if d.action is not DecisionAction.HOLD)
    return sorted(traded, key=lambda d: (d.action is DecisionAction.BUY, d.asset))


def _judge_again(
    command: ExecuteDecisions, bounds: Bounds, account: Account, quotes: Quotes
) -> RuleVerdict:
    """The rules on what execution knows itself. Of the command counts only what is asked for, and
    what was judged of it: both can but make less of it."""
    validation = command.decision_validation
    require_currency(account, bounds.budget)
    # The rules leave their own result as it is, so judging what they approved can only cut it.
    proposed = {(proposal.action, proposal.ticker): proposal for proposal in validation.proposals}
    approved = [
        _approved(decision, proposed.get((Side(decision.action.value), decision.asset)))
        for decision in _in_order(validation.decisions)
    ]
    named = PortfolioIds(command.cycle_id, command.op_id, command.as_of)
    return evaluate(
        approved,
        {
            item.ticker: _as_known(item, command.as_of, account, quotes)
            for item in validation.evidence
        },
        portfolio(account, named, quotes),
        account.limits,
        bounds.budget,
        quotes.prices(command.as_of),
        moves=quotes.moves,
        # Those of the plan are the command's word: beside the ones on record they only tighten.
        constraints=bounds.constraints.also(validation.constraints),
        sell_gates=EXIT_GATES if any(d.exit for d in validation.decisions) else SELL_GATES,
        own_ceilings=plugin_ceilings(bounds.plugins, validation.plugins),
    )


def _approved(decision: PortfolioDecision, proposal: StockPick | None) -> StockPick:
    return StockPick(
        ticker=decision.asset,
        action=Side(decision.action.value),
        allocation_pct=decision.allocation_pct,
        reasons=proposal.reasons if proposal else (),
        reasoning=decision.reasoning,
        confidence=decision.confidence,
        plan=proposal.plan if proposal else None,
        recalibrated=decision.recalibrated,
    )


def _as_known(stated: Evidence, as_of: date, account: Account, quotes: Quotes) -> Evidence:
    """The evidence with every fact as execution's own sources have it. What is left of the command
    are judgements, and the price that they were made at, which the present one is held against."""
    mark = quotes.closes.get((stated.ticker, as_of))
    own = quotes.facts.get(stated.ticker)
    named = stated.catalyst_event.id if stated.catalyst_event else None
    facts = {
        "measured_risk": own.measured_risk if own else RISK_UNKNOWN,
        "catalyst_event": next((e for e in own.events if e.id == named), None) if own else None,
        "sector": sector_of(account, stated.ticker, quotes),
        "foreign": mark.foreign if mark else None,
        "no_rate": mark.currency if mark and mark.amount is None else None,
        "atr": own.atr if own else None,
        "report": own.report if own else None,
        "has_reports": own is not None and own.has_reports,
        "issuer": quotes.issuers.get(stated.ticker, ""),
        "lot": quotes.lots.get(stated.ticker, 1),
        "exits": own.exits if own else None,
        "exits_note": own.exits_note if own else "",
    }
    return stated.model_copy(update=facts)


def _smaller(decision: PortfolioDecision, judged: PortfolioDecision) -> Decimal:
    """The smaller of both, of a buy in whole lots."""
    quantity = min(decision.quantity, judged.quantity)
    return whole_lots(quantity, judged.lot) if judged.action is DecisionAction.BUY else quantity


def _new_order(
    command: ExecuteDecisions,
    decision: PortfolioDecision,
    judged: PortfolioDecision | None,
    quantity: Decimal,
    verdict: RuleVerdict,
    account: Account,
    quotes: Quotes,
) -> BookedOrder:
    side = Side(decision.action.value)
    mark = quotes.closes.get((decision.asset, command.as_of))
    # Without a price nothing is bought, and a sale holds nothing back.
    price = (mark.amount if mark else None) or _ZERO
    buying = side is Side.BUY
    return BookedOrder(
        order_id=order_id(command, decision),
        account=command.pipeline.account,
        cycle_id=command.cycle_id,
        started_on=command.now.date(),
        op_id=command.op_id,
        pipeline=command.pipeline.name,
        ticker=decision.asset,
        sector=sector_of(account, decision.asset, quotes),
        side=side,
        quantity=quantity if quantity > 0 else decision.quantity,
        hold=_hold(decision, price, quantity) if buying else _ZERO,
        status=OrderStatus.WORKING if quantity > 0 else OrderStatus.REJECTED,
        reason=_why_less(decision, quantity, verdict, account.halt),
        as_of=command.as_of,
        foreign=mark.foreign if mark else None,
        stop_price=_stop_price(decision, judged),
        exit=decision.exit is not None,
        acts=None if decision.exit is None else decision.exit.acts,
        plan=judged.plan if judged else None,
        thesis=decision.reasoning if buying else "",
    )


def _hold(decision: PortfolioDecision, price: Decimal, quantity: Decimal) -> Decimal:
    """The cash that a buy holds back. A limit is the most that it can cost at a broker."""
    limit = decision.venue.limit_price if decision.venue else None
    if limit is not None:
        return cash_hold(limit.amount, quantity, _ZERO)
    return cash_hold(price, quantity, CASH_RESERVE_BPS)


def _stop_price(decision: PortfolioDecision, judged: PortfolioDecision | None) -> Decimal | None:
    """An exit's as it was proposed; a buy's by the close and the range that execution has read."""
    source = judged.plan if judged and judged.plan else decision.exit
    return None if source is None or source.stop_price is None else source.stop_price.amount


def _why_less(
    decision: PortfolioDecision, quantity: Decimal, verdict: RuleVerdict, halt: Halt | None
) -> str:
    if quantity >= decision.quantity:
        return ""
    if decision.action is DecisionAction.BUY and halt is not None:
        return f"{HALTED}: {halt_words(halt)}"
    cuts = [text for text in verdict.adjustments if text.startswith(f"{decision.asset}: ")]
    because = "; ".join(cuts) or "the account or the price has changed since it was validated"
    what = (
        f"cut from {decision.quantity:f} to {quantity:f} shares" if quantity > 0 else "not placed"
    )
    return shortened(f"{what} by the rules at execution: {because}", REASON_CHARS_MAX)


def _fill(
    changes: Changes, order: BookedOrder, quotes: Quotes, broker: Broker
) -> tuple[BookedOrder, Changes]:
    if order.key not in quotes.openings:
        raise StaleQuotes
    order, changes = try_fill(changes, order, quotes.openings[order.key], broker)
    if order.is_working and order.hold > changes.account.cash_free:
        # A hold that the cash cannot bear would let a later buy spend it twice.
        why = f"{changes.account.cash_free} of free cash does not cover its hold of {order.hold}"
        order = replace(order, status=OrderStatus.REJECTED, reason=also(order.reason, why))
    return order, changes


def _result(
    command: ExecuteDecisions, before: Account, changes: Changes, orders: Sequence[BookedOrder]
) -> ExecutionResult:
    return ExecutionResult.of(
        command,
        account=before.name,
        orders=tuple(_order_view(order, before) for order in orders),
        fills=tuple(_fill_view(o, o.fill, before) for o in orders if o.fill is not None),
        cash_before=money(before.books.cash, before),
        cash_after=money(changes.account.books.cash, before),
    )


def _order_view(order: BookedOrder, account: Account) -> Order:
    return Order(
        order_id=order.order_id,
        asset=order.ticker,
        side=order.side,
        quantity=order.quantity,
        type=order.type,
        status=order.status,
        reason=order.reason,
        foreign=order.foreign,
        stop_price=stop_money(order, account.currency),
        venue=order.terms,
    )


def _fill_view(order: BookedOrder, fill: Filled, account: Account) -> Fill:
    return Fill(
        order_id=order.order_id,
        asset=order.ticker,
        side=order.side,
        price=money(price_in(fill.price, fill.rate), account),
        quantity=fill.quantity,
        fee=money(cents_in(fill.fee, fill.rate), account),
        session=fill.session,
        foreign=foreign(fill),
    )
