"""The paper broker: the next open, worse by the slippage, and never on credit."""

from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.account import Side
from contracts.types import ExchangeRate
from libs.broker.broker import (
    Answer,
    DayPrices,
    Filled,
    MarketOrder,
    Opening,
    OrderRefused,
    StopOrder,
    Working,
)
from libs.broker.paper import PaperBroker

D = Decimal
DAY = date(2012, 7, 2)
BROKER = PaperBroker(fee_bps=D(10), slippage_bps=D(50))


def ask(
    side: Side,
    quantity: Decimal | int,
    opening: Opening | None,
    cash: int = 10_000,
    held: Decimal | int = 0,
) -> Answer:
    order = MarketOrder(UUID(int=1), "AAA", side, D(quantity))
    return BROKER.answer(order, opening, cash=D(cash), held=D(held))


def test_a_buy_pays_more_and_a_sale_gets_less_than_the_open():
    at_ten = Opening(DAY, D(10))
    assert ask(Side.BUY, 100, at_ten) == Filled(D("10.05"), D(100), D("1.01"), DAY)
    assert ask(Side.SELL, 100, at_ten, held=100) == Filled(D("9.95"), D(100), D("1.00"), DAY)


def test_without_an_open_the_order_works():
    assert isinstance(ask(Side.BUY, 100, None), Working)


def test_a_buy_is_cut_to_the_cash_and_the_note_says_so():
    answer = ask(Side.BUY, 100, Opening(DAY, D(10)), cash=500)
    assert isinstance(answer, Filled)
    assert answer.quantity == 49
    assert answer.note.startswith("cut from 100 to 49 shares: the cash")


def test_cash_for_less_than_one_share_is_a_refusal_with_the_price():
    answer = ask(Side.BUY, 1, Opening(DAY, D(10)), cash=10)
    assert isinstance(answer, OrderRefused)
    assert "10.05" in answer.reason


def test_a_sale_is_cut_to_the_shares_held():
    answer = ask(Side.SELL, 100, Opening(DAY, D(10)), held=30)
    assert isinstance(answer, Filled)
    assert answer.quantity == 30
    assert isinstance(ask(Side.SELL, 100, Opening(DAY, D(10)), held=0), OrderRefused)


def test_a_split_at_the_open_multiplies_the_ordered_shares():
    answer = ask(Side.BUY, 100, Opening(DAY, D(5), split_ratio=D(2)))
    assert isinstance(answer, Filled)
    assert answer.quantity == 200
    assert "100 shares became 200" in answer.note


def test_a_reverse_split_that_leaves_no_whole_share_to_buy_is_a_refusal():
    assert isinstance(ask(Side.BUY, 5, Opening(DAY, D(50), split_ratio=D("0.1"))), OrderRefused)


def test_a_buy_that_is_cut_stays_in_whole_lots_and_a_sale_need_not():
    opening = Opening(DAY, D(10), lot=100)
    bought = ask(Side.BUY, 300, opening, cash=2_500)
    assert isinstance(bought, Filled)
    assert bought.quantity == 200
    assert "cut from 300 to 200 shares: the cash" in bought.note
    assert isinstance(too_few := ask(Side.BUY, 300, opening, cash=900), OrderRefused)
    assert "the cash allows less than a lot of 100 shares" in too_few.reason
    split = ask(Side.BUY, 100, Opening(DAY, D(10), split_ratio=D("1.5"), lot=100))
    assert isinstance(split, Filled)
    assert (split.quantity, "a lot of 100 shares" in split.note) == (100, True)
    sold = ask(Side.SELL, 130, opening, held=130)
    assert isinstance(sold, Filled)
    assert sold.quantity == 130


def test_a_part_of_a_share_is_sold_down_to_six_places():
    answer = ask(Side.SELL, 5, Opening(DAY, D(50), split_ratio=D(repr(1 / 7))), held=1)
    assert isinstance(answer, Filled)
    assert answer.quantity == D("0.714285")
    all_of_it = ask(Side.SELL, D("0.5"), Opening(DAY, D(50)), held=D("0.25"))
    assert isinstance(all_of_it, Filled)
    assert all_of_it.quantity == D("0.25")


def test_a_sale_never_costs_money_however_high_the_fee():
    broker = PaperBroker(fee_bps=D(20_000), slippage_bps=D(0))
    order = MarketOrder(UUID(int=1), "AAA", Side.SELL, D(1))
    answer = broker.answer(order, Opening(DAY, D(1)), cash=D(0), held=D(1))
    assert isinstance(answer, Filled)
    assert answer.fee == 1


# --- stop orders ------------------------------------------------------------------------------


def stop(open_: str, low: str, held: int = 100, at: str = "9.00") -> Answer:
    order = StopOrder(UUID(int=1), "AAA", D(100), D(at))
    return BROKER.answer_stop(order, DayPrices(DAY, D(open_), D(low)), held=D(held))


def test_a_stop_that_was_not_reached_waits():
    assert isinstance(stop("10", "9.01"), Working)
    order = StopOrder(UUID(int=1), "AAA", D(100), D(9))
    assert isinstance(BROKER.answer_stop(order, None, held=D(100)), Working)


def test_a_stop_that_was_reached_fills_at_its_price_with_slippage_and_fee():
    for low in ("9.00", "3.00"):
        answer = stop("10", low)
        assert isinstance(answer, Filled)
        assert (answer.price, answer.quantity, answer.fee) == (D("8.955"), D(100), D("0.90"))
        assert answer.note == "the stop at 9.00 USD was reached"


@pytest.mark.parametrize("opened", ["20", "8"])
def test_a_stop_that_was_reached_before_fills_at_the_open(opened):
    order = StopOrder(UUID(int=1), "AAA", D(100), D(9), reached_on=date(2012, 6, 28))
    answer = BROKER.answer_stop(order, DayPrices(DAY, D(opened), D(8)), held=D(100))
    assert isinstance(answer, Filled)
    assert answer.price == D(opened) * D("0.995")
    assert answer.note.startswith("the stop at 9.00 USD was reached on 2012-06-28")


def test_a_gap_through_the_stop_fills_at_the_open():
    answer = stop("8.00", "7.50")
    assert isinstance(answer, Filled)
    assert answer.price == D("7.96")
    assert answer.note == "the session opened at 8.00 USD, below the stop at 9.00 USD"


def test_a_stop_sells_no_more_than_is_held():
    answer = stop("10", "9", held=30)
    assert isinstance(answer, Filled)
    assert answer.quantity == 30
    assert isinstance(stop("10", "9", held=0), OrderRefused)


def test_in_another_currency_a_stop_is_filled_at_the_days_rate():
    rate = ExchangeRate(currency="EUR", into="USD", rate=D("1.25"), on=DAY)
    order = StopOrder(UUID(int=1), "AAA", D(100), D(9))
    answer = BROKER.answer_stop(order, DayPrices(DAY, D(10), D(8), rate), held=D(100))
    assert isinstance(answer, Filled)
    assert answer.rate == rate


# --- a limit by the session's volume --------------------------------------------------------------

TENTH = PaperBroker(fee_bps=D(0), slippage_bps=D(0), volume_pct_max=D(10))


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    ("volume", "filled"), [(None, 377), (10_000, 377), (3_770, 377), (3_769, 376), (302, 30)]
)
def test_a_fill_takes_no_more_than_its_part_of_the_sessions_volume(side, volume, filled):
    opening = Opening(DAY, D(10), volume=None if volume is None else D(volume))
    order = MarketOrder(UUID(int=1), "AAA", side, D(377))
    answer = TENTH.answer(order, opening, cash=D(10_000), held=D(377))
    assert isinstance(answer, Filled)
    assert answer.quantity == filled
    assert ("the rest is cancelled" in answer.note) is (filled < 377)
    assert ask(side, 377, opening, held=377).quantity == 377, "by default volume sets no limit"


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("volume", [0, 9])
def test_a_session_that_traded_too_little_fills_nothing(side, volume):
    order = MarketOrder(UUID(int=1), "AAA", side, D(377))
    opening = Opening(DAY, D(10), volume=D(volume))
    answer = TENTH.answer(order, opening, cash=D(10_000), held=D(377))
    assert isinstance(answer, OrderRefused)
    assert f"10% of the session's volume of {volume} is no share" in answer.reason


def test_a_stop_sells_its_part_of_the_sessions_volume_and_waits_where_nothing_traded():
    order = StopOrder(UUID(int=1), "AAA", D(100), D(9))
    answer = TENTH.answer_stop(order, DayPrices(DAY, D(10), D(8), volume=D(302)), held=D(100))
    assert isinstance(answer, Filled)
    assert (answer.price, answer.quantity) == (D(9), D(30))
    quiet = TENTH.answer_stop(order, DayPrices(DAY, D(10), D(8), volume=D(0)), held=D(100))
    assert isinstance(quiet, Working)
