"""The HTTP API's paths about prices, for whoever draws them."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query

from contracts.http import PriceBars
from contracts.message import MAIN_ACCOUNT
from contracts.performance import TickerChart
from contracts.types import Name, Ticker
from libs.runtime.nearest import UnknownAccount
from services.console.http.bodies import problems
from services.console.http.requests import Desk
from services.console.views.ticker import chart

BARS_MAX = 1_000
CHART_SESSIONS, CHART_SESSIONS_MAX = 5_000, 15_000
"""Twenty years, and sixty."""


market = APIRouter(prefix="/market", tags=["market"])


@market.get("/bars", responses=problems(404, 502))
async def get_bars(
    desk: Desk,
    ticker: Ticker,
    as_of: date,
    sessions: Annotated[int, Query(ge=1, le=BARS_MAX)] = 120,
) -> PriceBars:
    """A ticker's newest daily bars up to the session `as_of`."""
    bars = await desk.history.bars(ticker, as_of, sessions)
    return PriceBars(
        ticker=ticker,
        currency=await desk.history.currency(ticker, as_of),
        as_of=as_of,
        source=desk.history.described,
        bars=tuple(bars),
    )


@market.get("/chart", responses=problems(404, 502))
async def get_chart(
    desk: Desk,
    ticker: Ticker,
    account: Name = MAIN_ACCOUNT,
    sessions: Annotated[int, Query(ge=1, le=CHART_SESSIONS_MAX)] = CHART_SESSIONS,
    adjusted_to: date | None = None,
) -> TickerChart:
    """A ticker as an account has seen it: daily bars up to the account's session, moving
    averages, average cost and stop over time, and its trades, a day each. Prices are adjusted
    for splits and dividends up to the account's session, or up to `adjusted_to`, the session of
    a decision: then up to there they are what the decision saw."""
    body = await chart(
        account, ticker, sessions, adjusted_to, store=desk.store, prices=desk.history
    )
    if body is None:
        raise UnknownAccount(account, await desk.store.accounts())
    return body
