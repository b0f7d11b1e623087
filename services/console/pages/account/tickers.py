"""A ticker as an account traded it: a chart, and a table of its trades."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from contracts.message import MAIN_ACCOUNT
from contracts.types import Day, Name, Ticker
from contracts.venue import DESK_STOPS
from libs.quant import ticks
from services.console.http.queries import OrAll
from services.console.http.requests import Desk
from services.console.pages.account.portfolio import no_account
from services.console.pages.show import ShowPage
from services.console.store import TICKERS_MAX, sql
from services.console.views import accounts
from services.console.views import ticker as view

Span = Literal["3m", "6m", "1y", "2y", "5y", "all"]
DAYS_SHOWN = 100
"""Days of trades in the table; the chart has them all."""


pages = APIRouter()


@pages.get("/tickers/{ticker:path}")
async def ticker_page(
    desk: Desk,
    show: ShowPage,
    ticker: Ticker,
    account: Annotated[Name | None, OrAll, Query()] = None,
    as_of: Annotated[Day | None, OrAll, Query()] = None,
    span: Annotated[Span | None, OrAll, Query()] = None,
) -> Response:
    """The page of one ticker."""
    names = tuple(await desk.store.accounts())
    # Where no account is named, it is the first one that there is.
    account = account or next(iter(names), MAIN_ACCOUNT)
    one = await accounts.read(account, desk)
    if one is None:
        return no_account(show, account, names, title=ticker)
    position = next((held for held in one.held if held.ticker == ticker), None)
    average_cost = None
    if position is not None:
        exact = position.cost / position.quantity
        average_cost = ticks.priced(exact, one.books.cash.currency)
    history = await view.history(account, ticker, store=desk.store)
    return show(
        "ticker.html",
        ticker=ticker,
        account=account,
        it=accounts.view_of(one, names),
        books=one.books,
        position=position,
        average_cost=average_cost,
        held_now=view.position_of(one.books, ticker),
        realised=one.standing.realised_of(ticker) if one.standing else None,
        stop=view.stop_of(one.books, ticker),
        whose=f"; {DESK_STOPS}" if one.books.venue else "",
        history=history,
        days=history[::-1][:DAYS_SHOWN],
        traded=await desk.store.column(sql.traded_tickers, account, TICKERS_MAX),
        bad_files=await desk.bad_files(ticker),
        as_of=as_of,
        span=span or "",
    )
