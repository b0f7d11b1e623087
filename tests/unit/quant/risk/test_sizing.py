"""Sizing never spends more than it was given, at any price and fee."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from libs.quant.sizing import (
    affordable_shares,
    cash_hold,
    fill_value,
    slipped_price,
    trade_fee,
    whole_shares,
)

D = Decimal
cents = st.decimals(D("0.01"), D(1_000_000), places=2)
prices = st.decimals(D("0.000001"), D(1_000_000), places=6)
shares = st.integers(1, 10**9).map(D)
money = st.decimals(D(-10), D(10_000_000), places=2)
bps = st.decimals(D(0), D(500), places=2)


@given(money, cents)
def test_whole_shares_are_the_most_that_the_amount_buys(amount, price):
    shares = whole_shares(amount, price)
    assert shares == shares.to_integral_value() >= 0
    assert shares * price <= max(amount, D(0)) < (shares + 1) * price


@given(money, prices, bps)
def test_affordable_shares_pay_their_fee_and_one_more_would_not(cash, price, fee_bps):
    def cost(quantity):
        value = fill_value(price, quantity, buying=True)
        return value + trade_fee(value, fee_bps)

    shares = affordable_shares(cash, price, fee_bps)
    assert shares == 0 or cost(shares) <= cash
    assert cost(shares + 1) > cash


@given(prices, bps)
def test_slippage_is_always_against_the_trader(price, slippage_bps):
    assert slipped_price(price, slippage_bps, buying=True) >= price
    assert slipped_price(price, slippage_bps, buying=False) <= price


def test_a_sale_is_never_priced_below_the_finest_step():
    assert slipped_price(D("0.01"), D(5000), buying=False) == D("0.005")
    assert slipped_price(D("0.000001"), D(5000), buying=False) == D("0.000001")


@given(prices, shares)
def test_what_is_bought_and_sold_at_one_price_never_makes_money(price, quantity):
    paid = fill_value(price, quantity, buying=True)
    assert fill_value(price, quantity, buying=False) <= price * quantity <= paid


def test_a_fee_is_rounded_up_to_the_cent():
    assert trade_fee(D("100.00"), D(5)) == D("0.05")
    assert trade_fee(D("100.01"), D(5)) == D("0.06")
    assert trade_fee(D("100.00"), D(0)) == 0


def test_a_hold_covers_value_and_reserve():
    assert cash_hold(D("9.99"), D(3), D(100)) == D("30.27")
