"""Sizing never spends more than it was given, at any price and fee."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from libs.quant.sizing import (
    affordable_shares,
    cash_hold,
    slipped_price,
    trade_fee,
    trade_value,
    whole_shares,
)

D = Decimal
cents = st.decimals(D("0.01"), D(1_000_000), places=2)
money = st.decimals(D(-10), D(10_000_000), places=2)
bps = st.decimals(D(0), D(500), places=2)


@given(money, cents)
def test_whole_shares_are_the_most_that_the_amount_buys(amount, price):
    shares = whole_shares(amount, price)
    assert shares == shares.to_integral_value() >= 0
    assert shares * price <= max(amount, D(0)) < (shares + 1) * price


@given(money, cents, bps)
def test_affordable_shares_pay_their_fee_and_one_more_would_not(cash, price, fee_bps):
    def cost(quantity):
        value = trade_value(price, quantity)
        return value + trade_fee(value, fee_bps)

    shares = affordable_shares(cash, price, fee_bps)
    assert shares == 0 or cost(shares) <= cash
    assert cost(shares + 1) > cash


@given(cents, bps)
def test_slippage_is_always_against_the_trader(price, slippage_bps):
    assert slipped_price(price, slippage_bps, buying=True) >= price
    assert slipped_price(price, slippage_bps, buying=False) <= price


def test_a_sale_is_never_priced_below_a_cent():
    assert slipped_price(D("0.01"), D(5000), buying=False) == D("0.01")


def test_a_fee_is_rounded_up_to_the_cent():
    assert trade_fee(D("100.00"), D(5)) == D("0.05")
    assert trade_fee(D("100.01"), D(5)) == D("0.06")
    assert trade_fee(D("100.00"), D(0)) == 0


def test_a_hold_covers_value_and_reserve():
    assert cash_hold(D("9.99"), D(3), D(100)) == D("30.27")
