"""The example of a market source in docs/extending.md is one: mypy holds it to the Protocols."""

from datetime import date
from decimal import Decimal

import pytest

from docs.examples import steady_market
from docs.examples.steady_market import ACME, LAST, NoRates, SteadyFills, SteadyMarket
from libs.market.edgar.market import Splits
from libs.market.errors import NotASession, UnknownTicker
from libs.market.rates import ExchangeRates
from libs.market.sessions import Sessions
from libs.market.source import FillPrices, MarketData

MAY_DAY = date(2024, 5, 1)
MARKET: MarketData = SteadyMarket()
SPLITS: Splits = SteadyMarket()
FILLS: FillPrices = SteadyFills()
RATES: ExchangeRates = NoRates()
SESSIONS = Sessions("steady", MARKET.calendar, steady_market.span)


async def test_its_prices_end_at_as_of_and_it_names_what_it_does_not_know() -> None:
    bars = await MARKET.bars("ACME", MAY_DAY, 3)
    assert bars["close"].to_list() == [100.0] * 3
    assert bars["date"].max() == MAY_DAY
    assert await MARKET.universe(MAY_DAY) == (ACME,)
    with pytest.raises(UnknownTicker):
        await MARKET.bars("AAPL", MAY_DAY, 1)
    with pytest.raises(NotASession):
        await MARKET.bars("ACME", date(2024, 5, 4), 1)


async def test_a_request_without_a_date_means_its_last_session() -> None:
    assert await SESSIONS.latest() == LAST


async def test_an_order_is_filled_at_the_next_open_and_nothing_else_happens() -> None:
    fill = await FILLS.next_open("ACME", MAY_DAY)
    assert (fill.session, fill.open) == (date(2024, 5, 2), Decimal(100))
    assert await FILLS.actions("ACME", MAY_DAY, LAST) == ()
    assert await SPLITS.splits("ACME", MAY_DAY) == ()
    assert await RATES.into("USD", fill.opens_at) == {}
