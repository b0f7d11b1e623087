"""An account on the screen: its worth, the parts of its gain, and the equity's chart."""

from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.account import Fill, Portfolio, Position, Side
from contracts.account_query import AccountView, EquityPoint, HeldAtClose, NotCounted
from contracts.types import ExchangeRate, Foreign, Money
from services.cli.render import chart
from services.cli.trading import portfolio
from tests.unit.services.cli.screens import printed

DAY = date(2012, 6, 29)


def _usd(amount: str) -> Money:
    return Money(amount=Decimal(amount))


BOOKS = Portfolio(
    cycle_id=UUID(int=0),
    op_id=UUID(int=0),
    as_of=date(2012, 7, 31),
    account="main",
    cash=_usd("49950.49"),
    equity=_usd("51950.49"),
    positions=(
        Position(
            ticker="AAPL",
            quantity=Decimal(10),
            average_cost=_usd("150"),
            price=_usd("200"),
            sector="Information Technology",
        ),
    ),
)
HELD = HeldAtClose(
    ticker="AAPL",
    quantity=Decimal(10),
    cost=Decimal(1_500),
    price=Decimal(200),
    value=Decimal(2_000),
    gain=Decimal(500),
)
VIEW = AccountView(
    portfolio=BOOKS,
    closed_on=date(2012, 7, 31),
    cash=Decimal("49950.49"),
    equity=Decimal("51950.49"),
    held=(HELD,),
    starting_cash=Decimal(50_000),
    paid_in=Decimal(50_000),
    return_pct=Decimal("3.90"),
    realised=Decimal("1500.49"),
    dividends=Decimal(25),
    fees=Decimal(75),
    unrealised=Decimal(500),
    exposure_gross=Decimal(2_000),
    exposure_net=Decimal(2_000),
)


def _points(*values: int) -> list[EquityPoint]:
    none = dict.fromkeys(
        ("cash", "realised", "unrealised", "exposure_gross", "exposure_net"), Decimal(0)
    )
    return [
        EquityPoint(session=DAY + timedelta(days=n), equity=Decimal(value), **none)
        for n, value in enumerate(values)
    ]


def _told(
    points: list[EquityPoint],
    width: int = 80,
    encoding: str = "utf-8",
    view: AccountView = VIEW,
    books: Portfolio = BOOKS,
) -> str:
    return printed(portfolio.screen(view, books, points), width, encoding)


def test_the_gain_is_told_in_its_parts_and_they_sum_to_it() -> None:
    text = " ".join(_told([]).split())

    assert text.startswith("account main as of ")
    assert "cash 49,950.49 realised P&L +1,500.49" in text
    assert "positions 2,000.00 unrealised P&L +500.00" in text
    assert "equity 51,950.49 dividends +25.00" in text
    assert "starting cash 50,000.00 fees -75.00" in text
    assert "exposure 3.8% total P&L +1,950.49 (+3.90%)" in text


def test_what_came_after_the_close_is_listed_and_said_to_be_not_counted_yet() -> None:
    bought = BOOKS.positions[0].model_copy(update={"quantity": Decimal(49)})
    fresh = BOOKS.positions[0].model_copy(update={"ticker": "IBM", "quantity": Decimal(7)})
    books = BOOKS.model_copy(update={"positions": (bought, fresh), "cash": _usd("42000")})
    later = NotCounted(fills=2, paid_in=Decimal(1_000))
    fill = Fill(
        order_id=UUID(int=3),
        asset="IBM",
        side=Side.BUY,
        price=_usd("190"),
        quantity=Decimal(7),
        fee=_usd("1"),
        session=date(2012, 8, 1),
    )
    view = VIEW.model_copy(update={"portfolio": books, "not_counted": later, "fills": (fill,)})

    lines = [" ".join(line.split()) for line in _told([], 100, view=view, books=books).splitlines()]
    text = " ".join(lines)
    assert "2 fills, 1,000.00 USD paid in; cash is 42,000.00 USD" in text
    assert "equity 51,950.49" in text, "as it was at the close"
    assert any(line.startswith("AAPL 10 +39 ") for line in lines)
    assert any(line.startswith("IBM 0 +7 - ") for line in lines)
    assert any("190.00" in line and "not yet" in line for line in lines)


def test_a_foreign_position_says_at_which_rate_of_which_day_it_stands() -> None:
    rate = ExchangeRate(currency="EUR", into="USD", rate=Decimal("1.2500000000"), on=DAY)
    foreign = Foreign(price=Money(amount=Decimal(160), currency="EUR"), rate=rate)
    held = HELD.model_copy(update={"foreign": foreign})

    text = _told([], view=VIEW.model_copy(update={"held": (held,)}))

    assert "AAPL: 160.00 EUR at EURUSD 1.25 of Fri 2012-06-29" in text


@pytest.mark.parametrize("width", [60, 80, 118])
def test_the_chart_names_its_ends_and_fits(width: int) -> None:
    text = _told(_points(*range(50_000, 50_200)), width)

    assert "50,199.00" in text
    assert "50,000.00" in text
    assert "Fri 2012-06-29" in text
    assert max(map(len, text.splitlines())) <= width
    assert "█" in text


@pytest.mark.parametrize("width", [80, 118])
def test_no_word_of_an_account_is_cut(width: int) -> None:
    assert "…" not in _told(_points(1, 2), width)


def test_a_terminal_that_knows_only_ascii_gets_ascii() -> None:
    text = _told(_points(1, 5, 3), encoding="ascii")

    assert text.isascii()
    assert "#" in text


def test_an_account_of_one_session_has_no_chart() -> None:
    assert "equity at the close" not in _told(_points(50_000))


def test_a_chart_rises_where_the_values_rise() -> None:
    lines = chart.drawn([Decimal(n) for n in (1, 2, 3)], 3)

    heights = [sum(line.ljust(3)[column] != " " for line in lines) for column in range(3)]
    assert heights == sorted(heights)
    assert heights[0] >= 1
    assert heights[-1] == chart.HEIGHT
    assert lines[0].endswith("█")


def test_a_flat_account_is_a_flat_line() -> None:
    lines = chart.drawn([Decimal(7)] * 4, 4)

    assert len({line.ljust(4) for line in lines if line}) <= 2
    assert any(lines)


def test_more_values_than_columns_keep_the_newest() -> None:
    values = [Decimal(n) for n in (*([1] * 999), 9)]

    assert chart.drawn(values, 10)[0].endswith("█")
    assert chart.drawn([], 10) == []
