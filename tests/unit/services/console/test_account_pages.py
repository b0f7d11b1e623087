"""An account's pages, rendered from a ledger with fills after its newest close."""

from collections.abc import Awaitable, Callable
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import Response

from contracts.account import Side
from contracts.leaderboard import LeaderboardQuery
from contracts.performance import PerformanceQuery
from libs.report import market_files
from libs.report.view import Table
from libs.runtime.settings import Settings
from services.console.pages.account.performance import performance_page
from services.console.pages.account.portfolio import portfolio_page
from services.console.pages.account.tickers import ticker_page
from services.console.pages.board.leaderboard import leaderboard_page
from tests.fakes.console_ledger import NAME, Ledger, Reading, session
from tests.unit.services.console.test_no_account import SHOW, asked
from tests.unit.services.console.views.test_one_computation import NoPrices, Past

D = Decimal
RATE = D("1.25")


def lived() -> Ledger:
    """AAA is partly sold, BBB bought after the newest close, EEE.DE brought in from abroad."""
    made = Ledger(D(100_000), foreign=frozenset({"EEE.DE"}))
    made.bring_in("EEE.DE", 40, D("20.00"), RATE)
    prices = {"AAA": D("11.00"), "EEE.DE": D("21.50")}
    made.close(session(0), prices, RATE)
    made.fill(Side.BUY, "AAA", 100, D("10.00"), session(1), RATE)
    made.close(session(1), prices, RATE)
    made.fill(Side.SELL, "AAA", 30, D("12.00"), session(2), RATE)
    made.close(session(2), prices, RATE)
    made.fill(Side.BUY, "BBB", 7, D("50.00"), session(3), RATE)
    made.fill(Side.SELL, "AAA", 10, D("12.00"), session(3), RATE)
    return made


class Pages:
    """The pages of a desk with one account."""

    def __init__(self) -> None:
        self.store = cast("Any", Reading(lived()))
        self.past = cast("Any", Past(self.store))
        self.desk = cast(
            "Any",
            SimpleNamespace(
                store=self.store,
                past=self.past,
                history=NoPrices(),
                settings=Settings(),
                synthetic=False,
                bad_files=self.bad_files,
            ),
        )

    async def bad_files(self, ticker: str) -> Table:
        return market_files.bad_files((), (), ())

    async def html(self, page: Callable[..., Awaitable[Response]], path: str, **named: Any) -> str:
        answer = await page(desk=self.desk, show=partial(SHOW, asked(path)), **named)
        return " ".join(bytes(answer.body).decode().split())


@pytest.fixture
def pages() -> Pages:
    return Pages()


async def test_the_portfolio_shows_the_close_and_what_came_after_it(pages: Pages) -> None:
    text = await pages.html(portfolio_page, "/portfolio", account=NAME)
    assert "2012-06-06" in text
    assert "not counted yet" in text
    assert ">+7</td>" in text, "BBB, bought since"
    assert ">-10</td>" in text, "AAA, sold since"
    assert 'id="sell-BBB"' in text, "it is held now"


async def test_the_performance_values_open_trades_and_marks_a_part(pages: Pages) -> None:
    text = await pages.html(
        performance_page, "/performance", query=PerformanceQuery(account=NAME, benchmark="cash")
    )
    assert ">12.00*</td>" in text
    assert "30 of 100: exit signal: momentum" in text
    # 30 sold at +2, 70 held at +1, two fees of 1.07.
    assert '<td class="right gain">+127.86</td>' in text
    assert '<td class="right gain">+75.00</td>' in text, "40 from 20.00 to 21.50 EUR at 1.25"


@pytest.mark.parametrize(
    ("ticker", "position"),
    [
        ("AAA", "70 shares"),
        ("EEE.DE", "40 shares"),
        ("BBB", "7 bought after the close of Wed 2012-06-06, not counted yet"),
    ],
)
async def test_a_tickers_page_has_the_position_of_the_close(
    pages: Pages, ticker: str, position: str
) -> None:
    text = await pages.html(ticker_page, "/tickers/AAA", ticker=ticker, account=NAME)
    assert position in text


async def test_the_leaderboard_says_what_it_does_not_count(pages: Pages) -> None:
    text = await pages.html(
        leaderboard_page, "/leaderboard", query=LeaderboardQuery(rows=("rules@main",))
    )
    assert "ot counted yet, as they came after" in text
    assert "2 fills." in text
