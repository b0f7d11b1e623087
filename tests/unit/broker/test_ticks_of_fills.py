"""Fills at every price and in every currency: near the open, and never a gain by rounding."""

from datetime import date
from decimal import Decimal
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st

from contracts.account import Fill, Side
from contracts.types import ExchangeRate, Foreign, Money
from libs.broker.broker import DayPrices, Filled, MarketOrder, Opening, OrderRefused, StopOrder
from libs.broker.paper import PaperBroker
from libs.quant.exchange import price_in
from libs.quant.sizing import CENT
from libs.quant.ticks import is_too_coarse, tick_of
from tests.unit.quant.risk.test_evaluation import books, judge, known, pick

D = Decimal
DAY = date(2012, 7, 2)
PRICES = st.decimals(D("0.000001"), D(1_000_000), places=6)
SMALL = st.decimals(D("0.000001"), D("0.01"), places=6)
OPENS = st.one_of(PRICES, SMALL, st.decimals(D("0.000001"), D(1), places=10))
BPS = st.decimals(D(0), D(1_000), places=2)
GAPS = st.decimals(D("0.2"), D(5), places=4)
RATES = st.sampled_from([None, "1.25", "0.0125", "0.0067", "0.00004", "3.3"])
"""Into dollars: none, and as of euros, pence, yen, dong and a dinar."""


def order(side: Side, quantity: Decimal) -> MarketOrder:
    return MarketOrder(UUID(int=1), "AAA", side, quantity)


def rate_of(rate: str | None) -> ExchangeRate | None:
    if rate is None:
        return None
    return ExchangeRate(currency="GBX", into="USD", rate=D(rate), on=DAY)


@given(OPENS, BPS, st.integers(1, 10**9), RATES)
def test_a_fill_is_within_slippage_and_one_tick_of_the_open(open_, slippage_bps, shares, rate):
    broker = PaperBroker(D(0), slippage_bps)
    opening = Opening(DAY, open_, rate=rate_of(rate))
    slipped = open_ * slippage_bps / 10_000

    bought = broker.answer(order(Side.BUY, D(shares)), opening, cash=D(10**18), held=D(0))
    if is_too_coarse(open_):
        assert isinstance(bought, OrderRefused)
        assert "one tick" in bought.reason
    else:
        assert isinstance(bought, Filled)
        assert open_ + slipped <= bought.price <= open_ + slipped + tick_of(bought.price)

    sold = broker.answer(order(Side.SELL, D(shares)), opening, cash=D(0), held=D(shares))
    assert isinstance(sold, Filled)
    assert open_ - slipped - tick_of(sold.price) <= sold.price <= open_
    assert sold.price <= open_ - slipped or sold.price == D("0.000001")


@given(PRICES, GAPS, BPS, RATES, st.decimals(D(1), D(100), places=4))
def test_a_buy_costs_what_was_allowed_times_the_gap_slippage_and_one_rounding(
    close, gap, slippage_bps, rate, share
):
    """However far it opens from the close that it was sized at."""
    exchange, open_ = rate_of(rate), (close * gap).quantize(D("0.000001"))
    evidence = known("AAA").model_copy(update={"price": D(10)})
    reference = price_in(close, exchange)
    assume(reference > 0)
    if exchange is not None:
        foreign = Foreign(price=Money(amount=close, currency="GBX"), rate=exchange)
        evidence = evidence.model_copy(update={"foreign": foreign})
    evidence = evidence.model_copy(update={"price": reference})
    verdict = judge(
        pick("AAA", share), prices={"AAA": reference}, evidence=[evidence], portfolio=books()
    )
    if is_too_coarse(close) or is_too_coarse(reference):
        assert [check.rule for check in verdict.checks if not check.passed] == ["tick_size"]
        return
    assume(verdict.decisions)
    (decision,) = verdict.decisions
    answer = PaperBroker(D(5), slippage_bps).answer(
        order(Side.BUY, decision.quantity),
        Opening(DAY, open_, rate=exchange),
        cash=D(10**12),
        held=D(0),
    )
    assume(isinstance(answer, Filled))
    assert isinstance(answer, Filled)
    into = D(1) if exchange is None else exchange.rate
    allowed = decision.allocation_pct * 100_000 / 100
    bound = allowed * (open_ / close) * (1 + slippage_bps / 10_000)
    rounding = answer.quantity * tick_of(answer.price) * into
    paid = answer.quantity * answer.price * into
    assert paid <= bound + rounding
    fill = Fill(
        order_id=UUID(int=1),
        asset="AAA",
        side=Side.BUY,
        price=Money(amount=price_in(answer.price, exchange)),
        quantity=answer.quantity,
        fee=Money(amount=D(0)),
        session=DAY,
        foreign=None
        if exchange is None
        else Foreign(price=Money(amount=answer.price, currency="GBX"), rate=exchange),
    )
    assert abs(fill.value - paid) <= CENT * (1 + into)


@given(OPENS, OPENS, BPS, st.integers(1, 10**9))
def test_a_stop_is_filled_no_better_than_its_price_and_the_open(stop, open_, slippage_bps, shares):
    day = DayPrices(DAY, open_, min(open_, stop))
    asked = StopOrder(UUID(int=1), "AAA", D(shares), stop)
    answer = PaperBroker(D(0), slippage_bps).answer_stop(asked, day, held=D(shares))
    assert isinstance(answer, Filled)
    reached = min(stop, open_)
    assert reached - reached * slippage_bps / 10_000 - tick_of(answer.price) <= answer.price
    assert answer.price <= reached


def test_the_trade_that_made_ten_thousand_dollars_of_nothing():
    """1,000,000 shares worth 493 dollars were sold at one cent each."""
    sold = PaperBroker(D(5), D(5)).answer(
        order(Side.SELL, D(1_000_000)), Opening(DAY, D("0.000493")), cash=D(0), held=D(1_000_000)
    )
    assert isinstance(sold, Filled)
    assert sold.price == D("0.000492")


def test_below_the_finest_price_that_is_kept_nothing_is_filled():
    opening = Opening(DAY, D("0.0000004"))
    for side in Side:
        answer = PaperBroker(D(5), D(5)).answer(order(side, D(10)), opening, cash=D(9), held=D(10))
        assert isinstance(answer, OrderRefused)
        assert "below 0.000001, the finest price" in answer.reason
