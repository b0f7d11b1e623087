"""Prices and sums as people read them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.types import Money
from libs.facts import amounts
from libs.quant.ticks import priced, tick_of

PRICES = st.decimals(Decimal("0.000001"), Decimal(1_000_000), places=6)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("246.250000", "246.25 USD"),
        ("28.98", "28.98 USD"),
        ("28.9784", "28.978 USD"),
        ("1234.5", "1,234.50 USD"),
        ("0.000493", "0.000493 USD"),
        ("0.0049", "0.0049 USD"),
        ("0.000001", "0.000001 USD"),
        ("0.0000004", "under 0.000001 USD"),
        ("0", "0.00 USD"),
        ("-0.0312", "-0.0312 USD"),
        ("1E+3", "1,000.00 USD"),
    ],
)
def test_a_price_is_written_on_its_tick_with_its_currency(amount: str, text: str) -> None:
    assert amounts.price(priced(Decimal(amount), "USD")) == text


@given(PRICES)
def test_a_price_is_never_written_as_zero_and_is_off_by_half_a_tick_at_most(price: Decimal) -> None:
    digits = amounts.price(Money(amount=price, currency="GBX"), column="GBX")
    written = Decimal(digits.replace(",", ""))
    assert written > 0
    assert abs(written - price) <= tick_of(price) / 2
    assert 2 <= len(digits.partition(".")[2]) <= 6


def test_a_price_in_another_currency_than_its_column_carries_its_own() -> None:
    stop = Money(amount=Decimal("552.69"), currency="GBX")
    assert amounts.price(stop, column="USD") == "552.69 GBX"
    assert amounts.price(stop, column="GBX") == "552.69"


def test_a_measured_average_of_any_length_is_a_price() -> None:
    assert amounts.price(priced(484.534321987654, "EUR")) == "484.53 EUR"
