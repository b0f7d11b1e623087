"""What the signals come to, and how much is sold."""

from decimal import Decimal
from typing import Any

import pytest

from contracts.account import OpenOrder, Side
from contracts.exit_signal import Holdings
from contracts.types import ExchangeRate, Foreign, Money
from libs.quant.exits.terms import ExitTerms
from services.exit_signal.logic import Assessment, SellablePart, assess, held_in, stop_of
from tests.unit.services.exit_signal.conftest import (
    AS_OF,
    BAD,
    CRASHING,
    FALLING,
    RISING,
    facts,
    position,
)

D = Decimal
UNKNOWN = (None, None, None, 0.1)


def assessed(months: Any = RISING, shares: str = "53", **terms: Any) -> Assessment:
    basket = terms.pop("basket_returns", {"SPY": (0.0, 0.0, 0.0, 0.0)})
    given = facts(months, basket, **terms.pop("facts", {}))
    return assess(given, ExitTerms.model_validate(terms), SellablePart(position(shares)))


@pytest.mark.parametrize(
    ("months", "basket", "told"),
    [
        (FALLING, BAD, "STRONG EXIT (momentum, regime)"),
        (FALLING, {"SPY": RISING}, "EXIT (momentum)"),
        (FALLING, {}, "EXIT (momentum)"),
        (RISING, BAD, "MONITOR (regime)"),
        (RISING, {"SPY": RISING}, "HOLD"),
        (RISING, {}, "HOLD"),
        (UNKNOWN, BAD, "ERROR (momentum)"),
        (UNKNOWN, {"SPY": RISING}, "ERROR (momentum)"),
    ],
)
def test_the_assessment_follows_from_both_rules(months: Any, basket: Any, told: str) -> None:
    assert assessed(months, basket_returns=basket).summary == told


def test_what_the_session_has_sold_of_already_is_not_sold_again() -> None:
    holdings = Holdings(
        account="main", as_of=AS_OF, positions=(position("53"),), sold=(position("53").ticker,)
    )
    held = held_in(holdings, position("53").ticker)
    assert held is not None
    found = assess(facts(FALLING, {"SPY": RISING}), ExitTerms(), held)
    assert (found.summary, found.sizing, held.shares) == ("EXIT (momentum)", None, 53)
    assert "sold of it already" in found.not_sold


def test_a_primary_rule_that_fires_is_not_silenced_by_one_that_cannot_say() -> None:
    found = assessed(UNKNOWN, stop_loss={"pct": 10}, facts={"price": 50.0})
    assert found.summary == "EXIT (stop_loss)"
    assert found.sizing is not None
    assert found.sizing.quantity == 53


@pytest.mark.parametrize(
    ("shares", "half", "most"),
    [
        ("1", 1, 1),
        ("2", 1, 1),
        ("3", 1, 2),
        ("53", 26, 39),
        ("1000001", 500_000, 750_000),
        # Of a holding with a fraction the part is exact to six places.
        ("3.5", D("1.75"), D("2.625")),
        ("0.000001", D("0.000001"), D("0.000001")),
    ],
)
def test_a_sale_is_half_or_three_quarters_in_the_shares_held_and_at_least_one(
    shares: str, half: Decimal, most: Decimal
) -> None:
    kept = {"rest_shares_min": 0, "rest_value_min": 0}
    for months, quantity in ((FALLING, half), (CRASHING, most)):
        sizing = assessed(months, shares, **kept).sizing
        assert sizing is not None
        assert sizing.quantity == quantity
        assert sizing.remaining == D(shares) - quantity


@pytest.mark.parametrize("months", [RISING, UNKNOWN])
def test_nothing_is_sold_without_a_primary_rule_that_fires(months: Any) -> None:
    assert assessed(months, basket_returns=BAD).sizing is None


def test_the_rule_that_asks_for_most_sizes_the_sale() -> None:
    sizing = assessed(FALLING, stop_loss={"pct": 10}, facts={"price": 50.0}).sizing
    assert sizing is not None
    assert (sizing.quantity, sizing.remaining) == (53, 0)
    assert sizing.reason == "stop_loss sells 100%"


def test_a_position_that_is_being_sold_already_is_left_alone() -> None:
    found = assess(facts(FALLING), ExitTerms(), SellablePart(position(), promised=D(20)))
    assert found.sizing is None
    assert found.not_sold == "an open order sells 20 shares already"
    assert found.summary == "EXIT (momentum)"


def test_a_stop_stands_below_the_close_by_its_percentage() -> None:
    sizing = assessed(FALLING, stop_pct=8).sizing
    assert sizing is not None
    assert sizing.stop_price == D("92.00")


def test_a_named_price_is_the_stop() -> None:
    assert stop_of(ExitTerms(stop_price=D("95.5")), position()) == (D("95.5"), "")


@pytest.mark.parametrize("price", ["100", "120"])
def test_a_stop_at_or_above_the_price_is_none_and_says_why(price: str) -> None:
    found, why = stop_of(ExitTerms(stop_price=D(price)), position())
    assert found is None
    assert why == f"the stop price {D(price):.2f} USD is not below the price 100.00 USD"


def test_without_a_remainder_there_is_no_stop() -> None:
    sizing = assessed(FALLING, "1", stop_pct=8).sizing
    assert sizing is not None
    assert (sizing.remaining, sizing.stop_price, sizing.no_stop) == (0, None, "")


def test_a_stop_is_in_the_currency_that_the_ticker_trades_in() -> None:
    rate = ExchangeRate(currency="EUR", into="USD", rate=D("1.25"), on=AS_OF)
    euros = Foreign(price=Money(amount=D(80), currency="EUR"), rate=rate)
    foreign = position().model_copy(update={"foreign": euros})
    assert stop_of(ExitTerms(stop_pct=10), foreign) == (D("72.00"), "")


def test_what_open_sales_promise_is_not_free() -> None:
    def order(asset: str, side: Side, quantity: str) -> OpenOrder:
        return OpenOrder(
            order_id="00000000-0000-0000-0000-000000000001",
            asset=asset,
            side=side,
            quantity=D(quantity),
            hold=Money(amount=D(0)),
            as_of="2012-06-29",
        )

    holdings = Holdings(
        account="main",
        as_of=AS_OF,
        positions=(position("53.5"),),
        open_orders=(
            order("AAPL", Side.SELL, "20"),
            order("AAPL", Side.BUY, "7"),
            order("MSFT", Side.SELL, "9"),
        ),
    )
    held = held_in(holdings, "AAPL")
    assert held is not None
    assert (held.shares, held.promised, held.free) == (D("53.5"), 20, D("33.5"))
    assert held_in(holdings, "MSFT") is None
    part = {"positions": (position("0.5"),), "open_orders": ()}
    held = held_in(holdings.model_copy(update=part), "AAPL")
    assert held is not None
    assert held.free == D("0.5")
