"""An account in a line: the day's gain, all gain, and what is at risk at its stops."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from contracts.account import OpenOrder, Portfolio, Position, Side
from contracts.types import Money
from libs.quant.standing import AccountStanding, Close, standing
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


def books(**fields: Any) -> Portfolio:
    return Portfolio(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=MON,
        account="main",
        cash=usd("200"),
        equity=usd("1460"),
        **fields,
    )


def stands(*closes: Close) -> AccountStanding:
    made = standing(closes, {}, [], D("1000"))
    assert made is not None
    return made


def close(day: date, equity: str, paid_in: str = "1000") -> Close:
    none = dict.fromkeys(("realised", "unrealised", "dividends", "fees"), D(0))
    return Close(day, D("200"), D(equity) - 200, D(paid_in), **none)


def test_the_days_gain_is_since_the_close_before_without_what_was_paid_in() -> None:
    made = summary(books(), stands(close(FRI, "1100"), close(MON, "1650", "1500")))
    assert (made.day_gain, made.day_gain_pct) == (D("50.00"), D("3.1250")), "of 1,600"
    assert made.total_gain == D("150")


def test_without_a_close_before_nobody_says_what_the_day_brought() -> None:
    made = summary(books(), stands(close(MON, "1100")))
    assert (made.day_gain, made.day_gain_pct) == (None, None)


def test_at_risk_is_what_the_stops_lose_from_here_and_the_rest_is_said_beside_it() -> None:
    positions = (held("AAPL", 10, "100"), held("IBM", 4, "50"), held("MSFT", 2, "30"))
    # Of IBM half has a stop, of MSFT nothing; a stop above the price has nothing left to lose.
    orders = (stop("AAPL", 10, "92"), stop("IBM", 2, "55"))
    made = summary(books(positions=positions, open_orders=orders), stands(close(FRI, "1460")))
    assert (made.risk, made.unprotected) == (D("80.00"), D("160.00"))
    assert (made.positions, made.exposure_pct) == (3, D("86.3014"))


def test_the_curve_ends_with_the_return_at_the_newest_close() -> None:
    days = [close(date(2012, 1, 1) + timedelta(day), str(1000 + day)) for day in range(101)]
    made = summary(books(), stands(*days))
    assert made.return_pct == D("10.0000")
    assert made.curve[0] == 1
    assert made.curve[-1] == D("1.1")
    assert len(made.curve) <= 40


def test_an_account_of_one_look_is_known_by_its_name() -> None:
    assert THROW_AWAY.fullmatch("run-0a1b2c3d")
    assert not THROW_AWAY.fullmatch("run-of-the-mill")
