"""The HTTP API's paths about how pipelines, strategies and sessions did."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from contracts.http import StrategyDetail
from contracts.leaderboard import LeaderboardQuery, LeaderboardView
from contracts.report import ReportQuery, ReportView
from contracts.strategy import STRATEGY_NAME_PATTERN
from contracts.strategy_query import StrategiesPage, StrategiesQuery
from services.console.http.bodies import problems
from services.console.http.problems import not_found
from services.console.http.queries import query_of
from services.console.http.requests import Desk
from services.console.views import report, strategies
from services.console.views.board import leaderboard

HTML = "text/html; charset=utf-8"
REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
"""Of a strategy's report, which models have written words of: no script, no request, no origin."""

StrategyName = Annotated[str, Path(pattern=f"^{STRATEGY_NAME_PATTERN}$")]


boards = APIRouter(tags=["results"])


@boards.get("/leaderboard")
async def get_leaderboard(
    desk: Desk, query: Annotated[LeaderboardQuery, Depends(query_of(LeaderboardQuery))]
) -> LeaderboardView:
    """The pipelines' results against cash and buy-and-hold on the same sessions."""
    return await leaderboard.board(query, desk)


@boards.get("/report", responses=problems(404))
async def get_report(
    desk: Desk, query: Annotated[ReportQuery, Depends(query_of(ReportQuery))]
) -> ReportView:
    """A session's report of an account, as data and as Markdown; by default the newest."""
    view = await report.report(query, desk)
    if not view.found:
        raise not_found(view.message)
    return view


tried = APIRouter(prefix="/strategies", tags=["strategies"])


@tried.get("")
async def list_strategies(
    desk: Desk, query: Annotated[StrategiesQuery, Depends(query_of(StrategiesQuery))]
) -> StrategiesPage:
    """The newest strategies, or the named ones; each with the result of its newest run."""
    return await strategies.strategies(query, store=desk.store)


@tried.get("/{name}", responses=problems(404))
async def get_strategy(desk: Desk, name: StrategyName) -> StrategyDetail:
    """One strategy with its loss curve and folds."""
    detail = await strategies.strategy(name, store=desk.store)
    if detail is None:
        raise not_found(f"no strategy is named {name}")
    return detail


@tried.get(
    "/{name}/report",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, **problems(404)},
)
async def get_strategy_report(desk: Desk, name: StrategyName) -> Response:
    """The strategy as one HTML page in a sandbox that runs and loads nothing."""
    whole = await strategies.report(name, store=desk.store)
    if whole is None:
        raise not_found(f"no strategy named {name} has been trained: there is no report")
    return Response(whole, headers={"Content-Security-Policy": REPORT_POLICY}, media_type=HTML)
