"""Round trips add up to the ledger's own amounts, whatever comes between buys and sales."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from libs.quant.trades import Closing, Move, PlacedOrder, Trip, by_ticker, round_trips, tally

DAY = date(2012, 1, 3)
BUY = PlacedOrder(UUID(int=11), UUID(int=1), "rules")
STOP = PlacedOrder(UUID(int=12), UUID(int=2), "rules", Closing.STOP)
SIGNAL = PlacedOrder(UUID(int=13), UUID(int=2), "rules", Closing.SIGNAL, ("momentum",))
"""A decision that sells a part and places a stop on the rest."""


def bought(quantity: int, cost: int, day: int = 0, ticker: str = "AAPL") -> Move:
    return Move(
        DAY + timedelta(day), ticker, Decimal(quantity), Decimal(cost), fees=Decimal(1), order=BUY
    )


def sold(
    quantity: int, cost: int, gain: int, day: int, order: PlacedOrder = STOP, ticker: str = "AAPL"
) -> Move:
    return Move(
        DAY + timedelta(day),
        ticker,
        Decimal(-quantity),
        Decimal(-cost),
        realised=Decimal(gain),
        fees=Decimal(1),
        order=order,
    )


def test_a_trip_goes_from_the_first_share_to_the_last_and_names_who_sold_last() -> None:
    (trip,) = round_trips(
        [bought(10, 1_000), sold(5, 500, 50, 3, SIGNAL), sold(5, 500, -20, 9, STOP)]
    )
    assert (trip.opened, trip.closed) == (DAY, DAY + timedelta(9))
    assert (trip.entry, trip.exit) == (BUY, STOP)
    assert (trip.entry_price, trip.exit_price) == (Decimal(100), Decimal(103))
    assert trip.gain == Decimal(27)
    assert trip.gain_pct == Decimal("2.7")


def test_the_sessions_held_are_the_closes_between_the_open_that_bought_and_the_one_that_sold() -> (
    None
):
    closes = [DAY + timedelta(day) for day in range(3)]
    (trip,) = round_trips([bought(10, 1_000), sold(10, 1_000, 0, 2)])
    assert trip.sessions(closes) == 2
    assert trip.sessions(closes[:2]) == 2, "the close of the sale's session changes nothing"
    (day_trade,) = round_trips([bought(10, 1_000), sold(10, 1_000, 0, 0)])
    assert day_trade.sessions(closes) == 0
    (brought_in,) = round_trips([bought(10, 1_000, -400), sold(10, 1_000, 0, 1)])
    assert brought_in.sessions(closes) == 1, "not that of the session that sold it"
    (held,) = round_trips([bought(10, 1_000)])
    assert held.sessions(closes) is None


def test_what_is_bought_again_after_the_last_share_is_another_trip() -> None:
    trips = round_trips([bought(10, 1_000), sold(10, 1_000, 5, 2), bought(4, 300, 5)])
    assert [(trip.opened, trip.closed) for trip in trips] == [
        (DAY, DAY + timedelta(2)),
        (DAY + timedelta(5), None),
    ]


def test_after_a_split_prices_are_of_the_new_shares() -> None:
    split = Move(DAY + timedelta(1), "AAPL", Decimal(10), is_split=True)
    (trip,) = round_trips([bought(10, 1_000), split, sold(20, 1_000, 200, 4)])
    assert (trip.bought, trip.sold) == (Decimal(20), Decimal(20))
    assert (trip.entry_price, trip.exit_price) == (Decimal(50), Decimal(60))


def test_a_part_of_a_share_that_a_split_pays_out_is_a_share_of_the_new_ones() -> None:
    # 66 at 20, 21 sold; 45 become 67.5 at 1.5 for one, and the half is paid out with its cost.
    split = Move(
        DAY + timedelta(2),
        "AAPL",
        Decimal(22),
        Decimal("-6.67"),
        realised=Decimal("10.21"),
        is_split=True,
    )
    (trip,) = round_trips([bought(66, 1_320), sold(21, 420, 210, 1), split])
    cent = Decimal("0.01")
    assert (trip.bought.quantize(cent), trip.sold.quantize(cent)) == (99, 32)
    assert trip.held == 67
    assert trip.entry_price is not None
    assert trip.exit_price is not None
    assert trip.entry_price.quantize(cent) == Decimal("13.33"), "20 over 1.5"
    assert trip.exit_price.quantize(cent) == Decimal("20.21"), "646.88 over 32"


def test_a_reverse_split_that_leaves_nothing_closes_the_trip() -> None:
    paid_out = Move(
        DAY + timedelta(1), "AAPL", Decimal(-3), Decimal(-30), realised=Decimal(-6), is_split=True
    )
    (trip,) = round_trips([bought(3, 30), paid_out])
    assert trip.closed == DAY + timedelta(1)
    assert (trip.proceeds, trip.exit_price) == (Decimal(24), Decimal(8))
    assert trip.exit is None


def test_a_dividend_after_the_sale_belongs_to_the_trip_that_was_closed() -> None:
    later = Move(DAY + timedelta(8), "AAPL", dividends=Decimal(7))
    (trip,) = round_trips([bought(10, 1_000), sold(10, 1_000, 0, 2), later])
    assert trip.dividends == Decimal(7)
    assert trip.closed == DAY + timedelta(2)


def test_winners_are_counted_after_fees_and_open_trips_are_not() -> None:
    even = round_trips([bought(10, 1_000), sold(10, 1_000, 2, 2)])
    won = round_trips([bought(10, 1_000), sold(10, 1_000, 12, 2)])
    lost = round_trips([bought(10, 1_000), sold(10, 1_000, -3, 2)])
    held = round_trips([bought(10, 1_000)])
    of = tally([*even, *won, *lost, *held])
    assert (of.closed, of.won) == (3, 1)
    assert (of.best, of.worst, of.gain) == (Decimal(10), Decimal(-5), Decimal(5))
    assert of.profit_factor == Decimal(2)
    assert of.win_rate_pct == Decimal(100) / 3


def test_without_a_closed_trip_there_is_no_rate() -> None:
    of = tally(round_trips([bought(10, 1_000)]))
    assert (of.closed, of.win_rate_pct, of.best, of.profit_factor) == (0, None, None, None)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["AAPL", "IBM"]),
            st.sampled_from(["buy", "sell", "split", "dividend"]),
            st.integers(1, 9),
            st.integers(-50, 50),
        ),
        max_size=40,
    )
)
def test_trips_add_up_to_the_ledger(steps: list[tuple[str, str, int, int]]) -> None:
    held = {"AAPL": 0, "IBM": 0}
    moves = []
    for day, (ticker, what, number, gain) in enumerate(steps):
        at = DAY + timedelta(day)
        if what == "buy":
            moves.append(bought(number, number * 10, day, ticker))
            held[ticker] += number
        elif what == "sell" and held[ticker]:
            quantity = min(number, held[ticker])
            moves.append(sold(quantity, quantity * 10, gain, day, ticker=ticker))
            held[ticker] -= quantity
        elif what == "split" and held[ticker]:
            moves.append(Move(at, ticker, Decimal(held[ticker] * number), is_split=True))
            held[ticker] += held[ticker] * number
        elif what == "dividend" and any(move.ticker == ticker for move in moves):
            moves.append(Move(at, ticker, dividends=Decimal(abs(gain))))
    trips = round_trips(moves)

    for name in ("realised", "dividends", "fees"):
        posted = sum(getattr(move, name) for move in moves)
        assert sum(getattr(trip, name) for trip in trips) == posted
    assert {it.ticker: it.gain for it in by_ticker(trips)} == {
        ticker: sum((trip.gain for trip in trips if trip.ticker == ticker), Decimal(0))
        for ticker in {trip.ticker for trip in trips}
    }
    open_now = {trip.ticker: trip.held for trip in trips if trip.closed is None}
    assert open_now == {ticker: Decimal(shares) for ticker, shares in held.items() if shares}


def test_of_an_untouched_ticker_there_is_no_trip() -> None:
    assert round_trips([]) == []
    assert Trip("AAPL", DAY).gain_pct is None


def paid(dividends: int, day: int) -> Move:
    return Move(DAY + timedelta(day), "AAPL", dividends=Decimal(dividends))


def test_each_sale_of_a_trip_has_the_gain_of_its_own_shares_and_their_part_of_the_buys_fee() -> (
    None
):
    trips = round_trips(
        [bought(10, 1_000), sold(5, 500, 50, 3, SIGNAL), sold(5, 500, -20, 9, STOP)]
    )
    assert trips[0].sales == {
        SIGNAL.order_id: Decimal("48.50"),
        STOP.order_id: Decimal("-21.50"),
    }


def test_one_buy_and_one_sale_of_all_of_it_have_one_figure() -> None:
    (trip,) = round_trips([bought(12, 8_000), sold(12, 8_000, -69, 90)])
    assert trip.sales == {STOP.order_id: Decimal(-71)} == {STOP.order_id: trip.gain}


def test_a_sale_has_its_shares_part_of_the_dividends_and_one_paid_late_is_the_last_sales() -> None:
    (trip,) = round_trips(
        [
            bought(10, 1_000),
            paid(11, 1),
            sold(5, 500, 0, 3, SIGNAL),
            sold(5, 500, 0, 9, STOP),
            paid(2, 12),
        ]
    )
    assert trip.sales == {SIGNAL.order_id: Decimal(4), STOP.order_id: Decimal(6)}


def test_what_a_split_paid_in_cash_is_in_the_sales_after_it() -> None:
    split = Move(DAY + timedelta(1), "AAPL", Decimal(-5), realised=Decimal(7), is_split=True)
    (trip,) = round_trips([bought(10, 1_000), split, sold(5, 1_000, 20, 3)])
    assert trip.sales == {STOP.order_id: trip.gain} == {STOP.order_id: Decimal(25)}


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(-90, 90), st.integers(0, 20)),
        min_size=1,
        max_size=6,
    )
)
def test_the_sales_of_a_closed_trip_are_its_gain_to_the_cent(
    parts: list[tuple[int, int, int]],
) -> None:
    whole = sum(shares for shares, _, _ in parts)
    moves = [bought(whole, whole * 100)]
    for day, (shares, gain, dividend) in enumerate(parts):
        order = replace(STOP, order_id=UUID(int=day))
        moves += [paid(dividend, day + 1), sold(shares, shares * 100, gain, day + 1, order)]
    (trip,) = round_trips(moves)
    assert trip.closed is not None
    assert sum(trip.sales.values()) == trip.gain
    assert all(part == part.quantize(Decimal("0.01")) for part in trip.sales.values())
