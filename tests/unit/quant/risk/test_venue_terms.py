"""Decisions of a bound account: the terms that the broker is sent, and sizes by the limit price."""

from decimal import Decimal

from contracts.account import Side
from contracts.types import Money
from contracts.venue import BoundTo, VenueOrderType
from libs.quant.risk.evaluation import evaluate, proposal_hash
from libs.quant.sizing import limit_price
from tests.unit.quant.risk.test_evaluation import books, held, known, pick

D = Decimal
BOUND = BoundTo(venue="alpaca-paper", account_number="PA1")


def test_a_limit_is_rounded_down_to_what_exchanges_take() -> None:
    assert limit_price(D("10.033"), D(5)) == D("10.53")
    assert limit_price(D("0.51234"), D(5)) == D("0.5379")


def test_a_buy_is_a_limit_order_sized_by_its_limit_and_part_of_the_hash() -> None:
    portfolio = books().model_copy(update={"venue": BOUND})
    evidence = {"AAPL": known("AAPL")}
    price = evidence["AAPL"].price
    verdict = evaluate(
        [pick("AAPL", 10)], evidence, portfolio, portfolio.limits, None, {"AAPL": price}
    )
    (decision,) = verdict.decisions
    assert decision.venue is not None
    limit = decision.venue.limit_price
    assert limit == Money(amount=limit_price(price, D(5)), currency="USD")
    assert (decision.venue.type, decision.venue.account_number) == (VenueOrderType.LIMIT, "PA1")
    budget = portfolio.cash.amount * decision.allocation_pct / 100
    assert decision.quantity * limit.amount <= budget
    unbound = books()
    (other,) = evaluate(
        [pick("AAPL", 10)], evidence, unbound, unbound.limits, None, {"AAPL": price}
    ).decisions
    assert other.venue is None
    assert other.quantity >= decision.quantity
    higher = decision.venue.model_copy(
        update={"limit_price": Money(amount=limit.amount + 1, currency="USD")}
    )
    changed = decision.model_copy(update={"venue": higher})
    assert proposal_hash([changed]) != proposal_hash([decision])


def test_a_sale_is_a_market_order() -> None:
    portfolio = books(positions=(held("OLD", 10),)).model_copy(update={"venue": BOUND})
    asked = [pick("OLD", 100, Side.SELL)]
    verdict = evaluate(asked, {}, portfolio, portfolio.limits, None, {"OLD": D(10)})
    (decision,) = verdict.decisions
    assert decision.venue is not None
    assert (decision.venue.type, decision.venue.limit_price) == (VenueOrderType.MARKET, None)
