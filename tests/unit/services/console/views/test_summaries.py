"""An account in a line: the day's gain, all gain, and what is at risk at its stops."""

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from contracts.account import OpenOrder, Portfolio, Position, Side
from contracts.account_query import AccountView
from contracts.types import Money
from services.console.views.summaries import THROW_AWAY, summary

D = Decimal
FRI, MON = date(2012, 6, 29), date(2012, 7, 2)


def usd(amount: str) -> Money:
    return Money(amount=D(amount))


def held(ticker: str, shares: int, price: str) -> Position:
    return Position(ticker=ticker, quantity=D(shares), average_cost=usd("90"), price=usd(price))


def stop(ticker: str, shares: int, price: str) -> OpenOrder:
    return OpenOrder(
        order_id=UUID(int=1),
        asset=ticker,
        side=Side.SELL,
        quantity=D(shares),
        hold=usd("0"),
        stop_price=usd(price),
        as_of=FRI,
    )


def view(equity: str, *, paid_in: str = "1000", **books: Any) -> AccountView:
    return AccountView(
        portfolio=Portfolio(
            cycle_id=UUID(int=1),
            op_id=UUID(int=2),
            as_of=MON,
            account="main",
            cash=usd("200"),
            equity=usd(equity),
            **books,
        ),
        paid_in=D(paid_in),
        return_pct=D("10.0000"),
        exposure_gross=D(equity) - 200,
    )


def close(day: date, equity: str, paid_in: str = "1000") -> Any:
    return {"session": day, "equity": D(equity), "paid_in": D(paid_in)}


def test_the_days_gain_is_since_the_close_before_without_what_was_paid_in() -> None:
    made = summary(view("1650", paid_in="1500"), [close(FRI, "1100"), close(MON, "1650", "1500")])
    assert made is not None
    assert (made.day_gain, made.day_gain_pct) == (D("50.00"), D("3.1250")), "of 1,600"
    assert made.total_gain == D("150")


def test_without_a_close_before_nobody_says_what_the_day_brought() -> None:
    made = summary(view("1100"), [close(MON, "1100")])
    assert made is not None
    assert (made.day_gain, made.day_gain_pct) == (None, None)


def test_at_risk_is_what_the_stops_lose_from_here_and_the_rest_is_said_beside_it() -> None:
    positions = (held("AAPL", 10, "100"), held("IBM", 4, "50"), held("MSFT", 2, "30"))
    # Of IBM half has a stop, of MSFT nothing; a stop above the price has nothing left to lose.
    orders = (stop("AAPL", 10, "92"), stop("IBM", 2, "55"))
    made = summary(view("1460", positions=positions, open_orders=orders), [close(FRI, "1400")])
    assert made is not None
    assert (made.risk, made.unprotected) == (D("80.00"), D("160.00"))
    assert (made.positions, made.exposure_pct) == (3, D("86.3014"))


def test_the_curve_ends_with_the_return_as_it_is_now() -> None:
    days = [close(date(2012, 6, day), str(1000 + day)) for day in range(1, 29)]
    made = summary(view("1100"), days)
    assert made is not None
    assert made.curve[0] == 1
    assert made.curve[-1] == D("1.1")
    assert len(made.curve) <= 40


def test_an_account_of_one_look_is_known_by_its_name() -> None:
    assert THROW_AWAY.fullmatch("run-0a1b2c3d")
    assert not THROW_AWAY.fullmatch("run-of-the-mill")
