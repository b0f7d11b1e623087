"""The HTTP API's path about prices, for whoever draws them."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query, Response

from contracts.http import PriceBars
from contracts.types import Ticker
from libs.market.errors import MarketError, UnknownTicker
from libs.web.problem import Refused
from services.console.http.bodies import json_of, problems
from services.console.http.problems import not_found
from services.console.http.requests import DeskAccess

BARS_MAX = 1_000


def market(desk: DeskAccess) -> APIRouter:
    """The market source's prices."""
    router = APIRouter(prefix="/market", tags=["market"])

    @router.get("/bars", response_model=PriceBars, responses=problems(404))
    async def get_bars(
        ticker: Ticker, as_of: date, sessions: Annotated[int, Query(ge=1, le=BARS_MAX)] = 120
    ) -> Response:
        """A ticker's daily bars, the newest ones up to the session `as_of`; nothing after it."""
        try:
            bars = await desk.prices.bars(ticker, as_of, sessions)
        except UnknownTicker as error:
            raise not_found(str(error)) from error
        except MarketError as error:
            raise Refused(422, error.code, str(error)) from error
        source = desk.prices.described
        return json_of(PriceBars(ticker=ticker, as_of=as_of, source=source, bars=tuple(bars)))

    return router
