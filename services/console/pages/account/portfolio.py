"""Holdings of an account, their worth, and the exits that would sell them."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from contracts.account_query import EquityPoint, EquityView
from contracts.exit_signal import ExitDistancesQuery
from contracts.message import MAIN_ACCOUNT
from contracts.risk_use import RiskQuery
from contracts.subjects.exits import EXIT_DISTANCES
from contracts.types import Name
from libs.market.choice import SourceName, source_of
from libs.report import account as words
from libs.report import risk_use
from libs.report.exits import distances
from libs.runtime.errors import DeskError
from libs.runtime.nearest import UnknownAccount
from services.console.http.queries import query_of
from services.console.http.requests import Desk
from services.console.pages.show import ShowPage
from services.console.store import sql
from services.console.views import accounts, risk

FILLS_SHOWN = 20
POINTS_SHOWN = 200


pages = APIRouter()


@pages.get("/portfolio")
async def portfolio_page(desk: Desk, show: ShowPage, account: Name = MAIN_ACCOUNT) -> Response:
    """Holdings of an account, and their worth."""
    names = tuple(await desk.store.accounts())
    one = await accounts.read(account, desk)
    if one is None:
        return no_account(show, account, names)
    fills = await desk.store.rows(sql.newest_fills, account, FILLS_SHOWN)
    books, equity = one.books, EquityView()
    if one.standing is not None:
        equity = accounts.equity_of(one.standing, POINTS_SHOWN)
    view = accounts.view_of(one, names, fills)
    decided = {fill["order_id"]: (fill["cycle_id"], fill["pipeline"]) for fill in fills}
    return show(
        "portfolio.html",
        it=view,
        under=words.heading(view),
        notes=words.notes(view),
        gains=words.gains(view),
        positions=words.positions(view),
        held_now=frozenset(held.ticker for held in books.positions),
        fills=words.fills(view, decided),
        books=books,
        account=account,
        # Of recorded data the newest session may be years after the account's.
        sell_at=books.as_of if source_of(desk.settings) is SourceName.REPLAY else None,
        equity=equity,
        points=equity.points,
        plots=_plots(equity.points),
        points_shown=POINTS_SHOWN,
    )


@pages.get("/risk")
async def risk_page(
    desk: Desk, show: ShowPage, query: Annotated[RiskQuery, Depends(query_of(RiskQuery))]
) -> Response:
    """How much of each limit an account uses, and what the rules took."""
    view = await risk.risk(query, desk)
    if not view.found:
        return no_account(show, query.account, view.accounts)
    return show(
        "risk.html",
        it=view,
        account=query.account,
        accounts=view.accounts,
        days=query.days,
        heading=risk_use.heading(view),
        bars=risk_use.bars(view),
        limits=risk_use.table(view, query.account).without("Share"),
        cuts=risk_use.cuts(view),
    )


@pages.get("/exits")
async def exits_page(
    desk: Desk,
    show: ShowPage,
    query: Annotated[ExitDistancesQuery, Depends(query_of(ExitDistancesQuery))],
) -> Response:
    """How far each position is from its exit."""
    account = query.account
    names = tuple(await desk.store.accounts())
    if account not in names:
        return no_account(show, account, names)
    # The rules are another service's: without it the page says who does not answer.
    try:
        view, why = await desk.requests.ask(EXIT_DISTANCES, query), ""
    except DeskError as error:
        view, why = None, str(error)
    return show(
        "exits.html",
        it=view,
        positions=distances(view, account) if view else None,
        why=why,
        account=account,
        accounts=names,
    )


def no_account(show: ShowPage, account: str, names: Sequence[str], title: str = "") -> Response:
    """The page of an account that is not there; `title` where the menu has none of it.

    Before the first cycle there is none, which is no mistake of whoever asks. Raises
    `UnknownAccount` where there are others."""
    if names:
        raise UnknownAccount(account, names)
    return show("no_account.html", account=account, title=title)


def _plots(points: Sequence[EquityPoint]) -> dict[str, Any]:
    """Both charts as `charts.js` draws them."""
    at = [moment(point.session) for point in points]
    falls = [-float(point.drawdown_pct) for point in points]
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
