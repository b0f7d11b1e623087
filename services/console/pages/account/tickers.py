"""A ticker as an account traded it: a chart, and a table of its trades."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from contracts.account_query import AccountQuery
from contracts.types import Name, Ticker
from services.console.http.bodies import Day
from services.console.http.books import MAIN_ACCOUNT
from services.console.http.requests import DeskAccess
from services.console.pages.account.portfolio import no_account
from services.console.pages.choices import OrAll
from services.console.pages.show import Show
from services.console.views import accounts
from services.console.views import ticker as view

Span = Literal["3m", "6m", "1y", "2y", "5y", "all"]
DAYS_SHOWN = 100
"""Days of trades in the table; the chart has them all."""


def tickers(desk: DeskAccess, show: Show) -> APIRouter:
    """One page a ticker."""
    router = APIRouter()

    @router.get("/tickers/{ticker:path}")
    async def ticker_page(
        request: Request,
        ticker: Ticker,
        account: Annotated[Name | None, OrAll, Query()] = None,
        as_of: Annotated[Day | None, OrAll, Query()] = None,
        span: Annotated[Span | None, OrAll, Query()] = None,
    ) -> Response:
        # Where no account is named, it is the first one that there is.
        account = account or next(iter(await desk.store.accounts()), MAIN_ACCOUNT)
        query = AccountQuery(account=account, fills=0)
        books_view = await accounts.account(query, store=desk.store, closes=desk.closes)
        if books_view.portfolio is None:
            return no_account(show, request, account, books_view.accounts, title=ticker)
        history = await view.history(account, ticker, store=desk.store)
        return show(
            request,
            "ticker.html",
            ticker=ticker,
            account=account,
            it=books_view,
            books=books_view.portfolio,
            position=view.position_of(books_view.portfolio, ticker),
            stop=view.stop_of(books_view.portfolio, ticker),
            history=history,
            days=history.days[::-1][:DAYS_SHOWN],
            traded=await desk.store.traded_tickers(account),
            as_of=as_of,
            span=span or "",
        )

    return router
