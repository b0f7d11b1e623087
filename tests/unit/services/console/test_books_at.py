"""Books over time, from what each session moved."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from services.console.logic import Held, books_at, picked

MONDAY = date(2012, 7, 2)
WEEK = [MONDAY + timedelta(days=n) for n in range(5)]


def _move(day: int, ticker: str | None, amount: int, quantity: int = 0) -> dict[str, Any]:
    return {
        "session": WEEK[day],
        "ticker": ticker,
        "amount": Decimal(amount),
        "quantity": Decimal(quantity),
    }


def test_each_day_holds_what_was_moved_up_to_it() -> None:
    moves = [
        _move(0, None, 1_000),
        _move(2, None, -400),
        _move(2, "AAPL", 400, 4),
        _move(4, "AAPL", 0, 4),
    ]

    books = books_at(moves, WEEK)

    assert [each.cash for each in books] == [1_000, 1_000, 600, 600, 600]
    assert books[1].held == {}
    assert books[3].held == {"AAPL": Held(Decimal(4), Decimal(400))}
    assert books[4].held["AAPL"].quantity == 8, "a split moves shares and no money"


def test_days_that_are_not_asked_for_still_count() -> None:
    moves = [_move(0, None, 1_000), _move(1, None, -1), _move(3, None, -1)]

    assert [each.cash for each in books_at(moves, [WEEK[2], WEEK[4]])] == [999, 998]


def test_what_was_sold_is_held_no_more() -> None:
    moves = [_move(0, "AAPL", 400, 4), _move(1, "AAPL", -400, -4)]

    assert books_at(moves, WEEK)[-1].held == {}


def test_days_are_picked_evenly_with_both_ends() -> None:
    assert picked(WEEK, 9) == WEEK
    assert picked(WEEK, 3) == [WEEK[0], WEEK[2], WEEK[4]]
    assert picked(WEEK, 1) == [WEEK[4]]
    assert picked([], 3) == []
