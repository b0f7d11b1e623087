"""Holdings of an account, their worth, and the exits that would sell them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import accumulate
from typing import Any

from fastapi import APIRouter, Request, Response

from contracts.account import Portfolio
from contracts.exit_signal import ExitDistancesQuery
from contracts.query import AccountQuery, EquityPoint, EquityQuery
from contracts.types import Name
from libs.market.sources import SourceName, source_of
from libs.quant.returns import ONE
from libs.runtime.errors import DeskError
from libs.runtime.nearest import UnknownAccount
from services.console.http.books import MAIN_ACCOUNT
from services.console.http.requests import DeskAccess
from services.console.pages.show import Show
from services.console.views import accounts

FILLS_SHOWN = 20
POINTS_SHOWN = 200


@dataclass(frozen=True)
class Fall:
    """The max drawdown: the largest fall from an earlier peak, as a fraction, of what 1 at the
    opening has become. What was taken out is no fall."""

    deepest: float
    day: date | None


def money(desk: DeskAccess, show: Show) -> APIRouter:
    """Two pages of one account point."""
    router = APIRouter()

    @router.get("/portfolio")
    async def portfolio_page(request: Request, account: Name = MAIN_ACCOUNT) -> Response:
        query = AccountQuery(account=account, fills=FILLS_SHOWN)
        view = await accounts.account(query, store=desk.store, closes=desk.closes)
        if view.portfolio is None:
            return no_account(show, request, account, view.accounts)
        asked = EquityQuery(account=account, points=POINTS_SHOWN)
        equity = await accounts.equity(asked, store=desk.store, closes=desk.closes)
        return show(
            request,
            "portfolio.html",
            it=view,
            books=view.portfolio,
            account=account,
            # Of recorded data the newest session may be years after the account's.
            sell_at=view.portfolio.as_of if source_of(desk.settings) is SourceName.REPLAY else None,
            stops=stops_of(view.portfolio),
            decided={
                row["order_id"]: (row["cycle_id"], row["pipeline"])
                for row in await desk.store.newest_fills(account, FILLS_SHOWN)
            },
            fall=fall_of(equity.points),
            points=equity.points,
            plots=_plots(equity.points),
            points_shown=POINTS_SHOWN,
        )

    @router.get("/exits")
    async def exits_page(request: Request, account: Name = MAIN_ACCOUNT) -> Response:
        names = tuple(await desk.store.accounts())
        if account not in names:
            return no_account(show, request, account, names)
        # The rules are another service's: without it the page says who does not answer.
        try:
            view, why = await desk.requests.distances(ExitDistancesQuery(account=account)), ""
        except DeskError as error:
            view, why = None, str(error)
        return show(request, "exits.html", it=view, why=why, account=account, accounts=names)

    return router


def no_account(
    show: Show, request: Request, account: str, names: Sequence[str], title: str = ""
) -> Response:
    """The page of an account that is not there; `title` where the menu has none of it.

    Before the first cycle there is none, which is no mistake of whoever asks. Raises
    `UnknownAccount` where there are others."""
    if names:
        raise UnknownAccount(account, names)
    return show(request, "no_account.html", account=account, title=title)


def stops_of(books: Portfolio) -> dict[str, str]:
    """By ticker: the price of the stop order that waits."""
    return {
        order.asset: f"{order.stop_price.amount.normalize():f} {order.stop_price.currency}"
        for order in books.open_orders
        if order.stop_price is not None
    }


def fall_of(points: Sequence[EquityPoint]) -> Fall:
    """How deep it fell, and when."""
    deepest = Fall(0.0, None)
    for point, fall in zip(points, _falls(points), strict=True):
        if fall > deepest.deepest:
            deepest = Fall(fall, point.session)
    return deepest


def _falls(points: Sequence[EquityPoint]) -> Sequence[float]:
    """At point point, how far it is below the highest one before."""
    grown = [ONE + point.return_pct / 100 for point in points]
    peaks = accumulate(grown, max)
    return [float(ONE - point / peak) for point, peak in zip(grown, peaks, strict=True)]


def _plots(points: Sequence[EquityPoint]) -> dict[str, Any]:
    """Both charts as `charts.js` draws them."""
    at = [moment(point.session) for point in points]
    falls = [-fall * 100 for fall in _falls(points)]
    return {
        "equity": {
            "x": at,
            "lines": [
                {"name": "Equity", "values": [float(point.equity) for point in points]},
                {"name": "Cash", "values": [float(point.cash) for point in points]},
            ],
        },
        "drawdown": {"x": at, "unit": "%", "lines": [{"name": "Drawdown", "values": falls}]},
    }


def moment(day: date) -> int:
    """A session on a time axis: its noon, in seconds."""
    return int(datetime.combine(day, time(12), UTC).timestamp())
