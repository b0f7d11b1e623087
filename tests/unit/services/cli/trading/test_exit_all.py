"""What a sale of everything shows, and what its hash is of."""

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.account import OpenOrder, Portfolio, Position, Side
from contracts.types import Money
from services.cli.trading.exit_all import exit_of_all

D = Decimal
DAY = date(2012, 6, 29)


def usd(amount: str) -> Money:
    return Money(amount=D(amount))


def held(ticker: str, shares: str = "10", price: str = "20", **fields: Any) -> Position:
    return Position(
        ticker=ticker, quantity=D(shares), average_cost=usd("1"), price=usd(price), **fields
    )


def sale(ticker: str, shares: str, stop: str | None = None) -> OpenOrder:
    return OpenOrder(
        order_id=UUID(int=1),
        asset=ticker,
        side=Side.SELL,
        quantity=D(shares),
        hold=usd("0"),
        stop_price=None if stop is None else usd(stop),
        as_of=DAY,
    )


def books(*positions: Position, orders: tuple[OpenOrder, ...] = (), **fields: Any) -> Portfolio:
    return Portfolio(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=fields.pop("as_of", DAY),
        account="main",
        cash=usd("500"),
        equity=usd("1000"),
        positions=positions,
        open_orders=orders,
    )


def test_all_that_no_open_order_sells_is_sold_and_no_more_than_was_shown() -> None:
    shown = exit_of_all(
        books(
            held("AAA"),
            held("BBB", priced_on=date(2012, 6, 1)),
            held("CCC"),
            orders=(sale("BBB", "10", stop="8"), sale("CCC", "3")),
        )
    )
    assert [(it.ticker, it.quantity_max) for it in shown.sales] == [("AAA", D(10)), ("BBB", D(10))]
    by_ticker = {it.ticker: it for it in shown.lines}
    assert by_ticker["BBB"].priced_on == date(2012, 6, 1)
    assert "its stop at 8.00 USD" in by_ticker["BBB"].rule
    assert by_ticker["CCC"].rule == "not sold: an open order already sells 3 of it"


@pytest.mark.parametrize(
    "other",
    [
        books(held("AAA", "9")),
        books(held("AAA", price="21")),
        books(held("AAA"), held("BBB")),
        books(held("AAA"), as_of=date(2012, 7, 2)),
        books(held("AAA"), orders=(sale("AAA", "10", stop="8"),)),
    ],
)
def test_whatever_of_it_changes_the_hash_is_another(other: Portfolio) -> None:
    shown = exit_of_all(books(held("AAA")))
    assert shown.hash == exit_of_all(books(held("AAA"))).hash
    assert exit_of_all(other).hash != shown.hash
