"""An account stands as of its newest valued close; a later sale's gain is known all the same."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from uuid import UUID

from libs.quant.standing import AccountStanding, Close, standing
from libs.quant.trades import Closing, Move, PlacedOrder

D = Decimal
CUT, NEXT = date(2012, 10, 31), date(2012, 11, 1)
BUY = PlacedOrder(UUID(int=1), UUID(int=11), "rules")
SALE = PlacedOrder(UUID(int=2), UUID(int=12), "rules", Closing.SIGNAL)
BOUGHT = Move(date(2012, 7, 2), "GOOG", D(12), D(8_000), fees=D("4.11"), order=BUY)
SOLD = Move(
    NEXT,
    "GOOG",
    D(-12),
    D(-8_000),
    realised=D("-68.88"),
    fees=D("4.08"),
    traded=D(7_931),
    order=SALE,
)
HALF = replace(SOLD, quantity=D(-6), cost=D(-4_000))
CLOSE = Close(CUT, D(2_000), D(8_100), D(10_000), D(0), D(100), D(0), D("4.11"))


def stood(*moves: Move) -> AccountStanding:
    stands = standing([CLOSE], {"GOOG": D(675)}, moves, D(10_000))
    assert stands is not None
    return stands


def test_a_sale_after_the_newest_close_has_its_gain_and_the_account_is_as_of_the_close() -> None:
    stands = stood(BOUGHT, SOLD)
    result = stands.by_order[SALE.order_id]
    assert result.gain == D("-77.07") == result.trip.gain
    assert result.trip.closed == NEXT
    (trip,) = stands.trips or ()
    assert trip.closed is None
    assert stands.by_order[BUY.order_id].trip is trip


def test_of_a_part_that_is_sold_later_the_rest_is_held_still() -> None:
    result = stood(BOUGHT, HALF).by_order[SALE.order_id]
    assert (result.gain, result.trip.held) == (D("-75.02"), D(6))
    assert result.trip.unrealised == 6 * 675 - 4_000


def test_a_buy_after_the_newest_close_has_no_result_yet() -> None:
    assert stood(replace(BOUGHT, session=NEXT)).by_order == {}
