"""What an account is compared with: a source that is away is no absent price."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from libs.market.errors import MarketError, SourceUnavailable
from services.console.views import benchmark

SESSIONS = [date(2012, 6, 25), date(2012, 6, 26), date(2012, 6, 27)]


class History:
    """Closes of some tickers, or an error of the source."""

    described = "a source"

    def __init__(self, closes: Mapping[str, Mapping[date, Decimal]], error: MarketError | None):
        self._closes, self._error = closes, error

    async def closes(self, ticker: str, first: date, last: date) -> Mapping[date, Decimal]:
        if self._error is not None:
            raise self._error
        return self._closes.get(ticker, {})


async def line(
    closes: Mapping[str, Mapping[date, Decimal]], error: MarketError | None = None
) -> benchmark.GrowthLine:
    desk: Any = SimpleNamespace(history=History(closes, error), past=None, store=None)
    return await benchmark.line("IBM", "main", SESSIONS, desk)


async def test_a_ticker_is_bought_at_the_opening_and_held() -> None:
    held = await line({"IBM": dict(zip(SESSIONS, map(Decimal, (100, 110, 99)), strict=True))})
    assert list(held.grown.values()) == [1, Decimal("1.1"), Decimal("0.99")]


async def test_a_source_without_a_price_and_a_source_that_is_away_are_told_apart() -> None:
    absent = await line({})
    assert absent.message.startswith("there is no price of IBM at 2012-06-25")
    away = await line({}, SourceUnavailable("bars of IBM", "the connection was refused"))
    assert away.message.startswith("prices could not be read: no answer for bars of IBM")
    assert "no price of" not in away.message


@pytest.mark.parametrize("length", [0, 400])
async def test_however_long_an_error_is_the_message_fits(length: int) -> None:
    away = await line({}, SourceUnavailable("bars", "x" * length))
    assert 0 < len(away.message) <= 400
