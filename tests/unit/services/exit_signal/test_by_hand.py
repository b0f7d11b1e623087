"""What a person sells by hand is proposed as it was asked for, and whole shares of whole ones."""

from decimal import Decimal

import pytest

from contracts.cycle import CycleRequest, SellNow
from contracts.message import Pipeline
from libs.quant.sizing import part_of
from services.exit_signal.by_hand import sold_by_hand
from services.exit_signal.logic import SellablePart
from tests.unit.services.exit_signal.conftest import position

D = Decimal


def sale(share: str = "100") -> SellNow:
    return SellNow(ticker="AAPL", share_pct=D(share))


@pytest.mark.parametrize(
    ("shares", "share", "sold", "pct"),
    [
        ("20", "100", "20", "100"),
        ("20", "50", "10", "50"),
        ("21", "50", "10", "50"),
        # Less than one share is one, and the percentage is that of one.
        ("3", "1", "1", "33.3334"),
        ("1", "10", "1", "100"),
        ("0.5", "50", "0.25", "50"),
        ("10.5", "100", "10.5", "100"),
        ("0.333333", "50", "0.166666", "50"),
        ("0.000001", "10", "0.000001", "100"),
    ],
)
def test_the_share_asked_for_is_proposed(shares: str, share: str, sold: str, pct: str) -> None:
    found = sold_by_hand(SellablePart(position(shares)), sale(share))

    assert (found.quantity, found.sell_pct) == (D(sold), D(pct))
    assert found.assessment.startswith("EXIT BY HAND")
    assert found.stop_price is None


@pytest.mark.parametrize(
    ("shares", "share", "sold", "pct"),
    [("250", "50", "100", "40"), ("130", "10", "100", "76.9231"), ("30", "50", "30", "100")],
)
def test_lots_are_sold_whole(shares: str, share: str, sold: str, pct: str) -> None:
    held = position(shares).model_copy(update={"lot": 100})
    found = sold_by_hand(SellablePart(held), sale(share))
    assert found.quantity == D(sold)
    assert found.sell_pct is not None
    assert part_of(D(shares), found.sell_pct, 100) == D(sold)


@pytest.mark.parametrize(
    ("shares", "most", "sold", "pct"), [("20", "20", "20", "100"), ("30", "20", "20", "66.6667")]
)
def test_no_more_is_sold_than_was_shown(shares: str, most: str, sold: str, pct: str) -> None:
    shown = SellNow(ticker="AAPL", quantity_max=D(most))
    found = sold_by_hand(SellablePart(position(shares)), shown)
    assert (found.quantity, found.sell_pct) == (D(sold), D(pct))


def test_what_an_open_order_sells_already_is_left_to_it() -> None:
    found = sold_by_hand(SellablePart(position(20), promised=D(5)), sale())

    assert found.quantity is None
    assert found.note == "an open order sells 5 shares already"


def test_what_is_no_longer_held_is_said_and_not_sold() -> None:
    found = sold_by_hand(None, sale())
    assert (found.ticker, found.quantity) == ("AAPL", None)
    assert "no longer held" in found.note


@pytest.mark.parametrize(
    "stated",
    [
        {"kind": "decision"},
        {"pipelines": (Pipeline(name="a"), Pipeline(name="b"))},
        {"sell_now": {"ticker": "AAPL", "share_pct": 0}},
        {"sell_now": {"ticker": "AAPL", "share_pct": 100.01}},
        {"sell_all": [{"ticker": "AAPL"}]},
        {"sell_now": None, "sell_all": [{"ticker": "AAPL"}, {"ticker": "AAPL"}]},
    ],
)
def test_only_an_exit_cycle_of_one_account_sells_a_share_by_hand(stated: dict[str, object]) -> None:
    whole = {"idempotency_key": "k", "kind": "exit", "sell_now": {"ticker": "AAPL"}}
    assert CycleRequest.model_validate(whole).sell_now == sale()
    with pytest.raises(ValueError, match=r"sell_now|sell_all|share_pct"):
        CycleRequest.model_validate({**whole, **stated})


def test_a_request_without_a_sale_by_hand_does_not_mention_one() -> None:
    """The body of every other request stays as it was, and so does its hash."""
    assert "sell_now" not in CycleRequest(idempotency_key="k").model_dump()
