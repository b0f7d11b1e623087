"""The tick of a price, from the smallest stored price to the largest."""

from decimal import ROUND_CEILING, ROUND_DOWN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.quant.ticks import PRICE_STEP, TICK_MAX, is_too_coarse, rounded_to_tick, tick_of

PRICES = st.decimals(Decimal("0.000001"), Decimal(10_000_000), places=6)


@pytest.mark.parametrize(
    ("price", "tick"),
    [
        ("246.25", "0.01"),
        ("100", "0.01"),
        ("28.98", "0.001"),
        ("1", "0.0001"),
        ("0.5512", "0.00001"),
        ("0.0455", "0.000001"),
        ("0.000493", "0.000001"),
    ],
)
def test_the_tick_falls_with_the_price(price: str, tick: str) -> None:
    assert tick_of(Decimal(price)) == Decimal(tick)


@given(PRICES)
def test_a_tick_is_at_most_a_ten_thousandth_of_the_price_or_the_finest_step(price: Decimal) -> None:
    assert PRICE_STEP <= tick_of(price) <= max(min(TICK_MAX, price / 10_000), PRICE_STEP)


@given(PRICES)
def test_a_rounding_moves_a_price_by_less_than_one_tick(price: Decimal) -> None:
    up, down = rounded_to_tick(price, ROUND_CEILING), rounded_to_tick(price, ROUND_DOWN)
    assert down <= price <= up
    assert up - price < tick_of(price)
    assert price - down < tick_of(price)


def test_a_price_whose_tick_is_more_than_a_hundredth_of_it_is_too_coarse() -> None:
    assert is_too_coarse(Decimal("0.000099"))
    assert not is_too_coarse(Decimal("0.0001"))
