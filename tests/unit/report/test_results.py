"""What came of a decision's orders: in money, how each ended, and the decision at the other end."""

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.account import Side
from contracts.performance import OrderResult, RoundTrip
from contracts.types import Money
from libs.report import results, view

ENTRY, EXIT = UUID(int=1), UUID(int=2)
CUT = date(2012, 8, 31)


def trip(**fields: Any) -> RoundTrip:
    known = {
        "ticker": "AAPL",
        "as_of": CUT,
        "opened": date(2012, 7, 2),
        "quantity": 68,
        "held": 68,
        "gain": "120.50",
        "gain_pct": "1.20",
        "entry_cycle_id": ENTRY,
        "entry_pipeline": "rules",
    }
    return RoundTrip.model_validate({**known, **fields})


def stopped() -> RoundTrip:
    return trip(
        closed=date(2012, 7, 20),
        sold=68,
        held=0,
        gain="-839.60",
        gain_pct="-5.97",
        sold_by="stop",
        exit_cycle_id=EXIT,
        exit_pipeline="rules",
    )


def result(side: Side = Side.BUY, status: str = "filled", **fields: Any) -> OrderResult:
    fields = {"order_id": UUID(int=9), "ticker": "AAPL", **fields}
    return OrderResult(side=side, status=status, as_of=CUT, **fields)


def usd(amount: str) -> Money:
    return Money(amount=Decimal(amount))


def test_a_trade_that_its_stop_sold_says_so_with_its_loss_and_leads_to_the_sale() -> None:
    of = results.table([result(gain=usd("-839.60"), trip=stopped())], "main")
    (row,) = of.rows
    order, gain, share, what, other = row.cells
    assert [cell.text for cell in (order, gain, share, what)] == [
        "buy AAPL",
        "-839.60",
        "-5.97%",
        "sold 2012-07-20: stop",
    ]
    assert other.link == f"/decisions/{EXIT}/rules"
    assert gain.link.startswith("/performance")
    assert of.currency == "USD"


def test_an_open_one_is_valued_at_the_newest_close_and_says_at_which() -> None:
    of = results.table([result(gain=usd("120.50"), trip=trip())], "main")
    assert of.rows[0].cells[3].text == "open, 68 held"
    assert "close of Fri 2012-08-31" in of.notes[0].text


def test_a_sale_has_its_own_gain_and_leads_to_the_decision_that_bought() -> None:
    of = results.table([result(Side.SELL, gain=usd("49"), trip=stopped())], "main")
    order, gain, share, what, other = of.rows[0].cells
    assert (order.text, gain.text, share) == ("sell AAPL", "+49.00", view.BLANK)
    assert what.text == "bought 2012-07-02"
    assert other.link == f"/decisions/{ENTRY}/rules"
    assert "of a sale: its part of the round trip, with the buy's fee" in of.notes[0].text


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        ("working", "", "waits for its fill"),
        ("working", "cut to 5 shares", "cut to 5 shares"),
        ("cancelled", "no bar at its session", "not filled (cancelled): no bar at its session"),
        ("rejected", "", "not filled (rejected)"),
        ("filled", "", "filled; no close has valued it yet"),
    ],
)
def test_what_has_no_result_says_why_and_is_no_zero(status: str, reason: str, words: str) -> None:
    one = result(status=status, reason=reason)
    assert results.ended(one) == words
    assert results.gain([one]) is None
    assert results.table([one], "main").rows[0].cells[1].text == "-"


def test_orders_of_which_nothing_is_known_yet_have_no_result_to_show() -> None:
    waiting = [result(status="working"), result(status="filled")]
    assert not results.is_known(waiting)
    assert not results.is_known(())
    assert results.is_known([*waiting, result(status="cancelled")])
    assert results.is_known([*waiting, result(gain=usd("120.50"), trip=trip())])


def test_a_decision_of_several_orders_has_their_sum_and_of_two_currencies_none() -> None:
    both = [result(gain=usd("-839.60"), trip=stopped()), result(gain=usd("120.50"), trip=trip())]
    assert results.gain(both) == usd("-719.10")
    abroad = result(gain=Money(amount=Decimal(1), currency="EUR"), trip=trip())
    assert results.gain([*both, abroad]) is None
    assert results.by_order(both[:1]) == {"buy AAPL": "-839.60 USD; sold 2012-07-20: stop"}


def stop(status: str = "filled", **fields: Any) -> OrderResult:
    return result(Side.SELL, status, type="stop", stop_price=usd("555.10"), **fields)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (stop("working"), "waits for its price"),
        (
            stop("cancelled", reason="all is sold"),
            "not filled (cancelled): all is sold",
        ),
        (stop(gain=usd("-838.60"), trip=stopped(), filled_on=date(2012, 7, 20)), "sold 2012-07-20"),
    ],
)
def test_a_stop_says_what_came_of_it(order: OrderResult, words: str) -> None:
    cells = results.table([order], "main").rows[0].cells
    assert (cells[0].text, cells[3].text) == ("sell AAPL, stop at 555.10 USD", words)


def test_what_a_stop_sold_is_counted_once() -> None:
    """In the round trip of its own decision's buy; by itself where the decision had only sold."""
    fired = stop(gain=usd("-838.60"), trip=stopped(), filled_on=date(2012, 7, 20))
    bought = result(gain=usd("-839.60"), trip=stopped())
    sold = result(Side.SELL, gain=usd("49"), trip=stopped())
    assert results.gain([bought, fired]) == usd("-839.60")
    assert results.gain([sold, fired]) == usd("-789.60")


def test_a_buy_that_added_to_a_position_says_so_and_is_not_called_unvalued() -> None:
    assert results.ended(result(trip=trip())) == "added to what was bought 2012-07-02"
