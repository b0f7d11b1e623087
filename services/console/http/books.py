"""The HTTP API's paths about accounts, positions and budgets."""

from http import HTTPStatus
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Header

from contracts.account_query import AccountQuery, AccountView, EquityQuery, EquityView
from contracts.cycle import EXIT, CycleRequest, IdempotencyKey, SellNow
from contracts.exit_signal import (
    CheckExitSignals,
    ExitDistances,
    ExitDistancesQuery,
)
from contracts.http import CycleAccepted, ExitAnswer, HoldingView, PositionSale
from contracts.message import Limit, Pipeline
from contracts.performance import AccountSummaries, PerformanceQuery, PerformanceView
from contracts.risk_use import RiskQuery, RiskView
from contracts.subjects.exits import EXIT_DISTANCES
from contracts.types import Ticker
from contracts.upkeep import BudgetQuery, BudgetView
from libs.runtime.nearest import UnknownAccount
from services.console import handler
from services.console.http.bodies import Body, of_cycle, problems
from services.console.http.queries import query_of
from services.console.http.requests import Desk, DeskAccess
from services.console.views import accounts, benchmark, performance, risk, summaries

OfAccount = TypeVar("OfAccount", AccountView, EquityView, HoldingView, PerformanceView, RiskView)


portfolio = APIRouter()


@portfolio.get("/portfolio", responses=problems(404), tags=["portfolio"])
async def get_portfolio(
    desk: Desk, query: Annotated[AccountQuery, Depends(query_of(AccountQuery))]
) -> AccountView:
    """An account: cash, positions, P&L and newest fills; `accounts` lists all names."""
    view = await accounts.account(query, desk)
    return await _of_account(view, query.account, desk)


@portfolio.get("/portfolio/equity", responses=problems(404), tags=["portfolio"])
async def get_equity(
    desk: Desk, query: Annotated[EquityQuery, Depends(query_of(EquityQuery))]
) -> EquityView:
    """An account's equity over its sessions."""
    view = await accounts.equity(query, store=desk.store)
    return await _of_account(view, query.account, desk)


@portfolio.get(
    "/portfolio/holding",
    responses=problems(404),
    tags=["portfolio"],
)
async def get_holding(
    desk: Desk, query: Annotated[EquityQuery, Depends(query_of(EquityQuery))]
) -> HoldingView:
    """Buy-and-hold of the first candidates, for comparison."""
    view = await benchmark.holding(query.account, query.points, desk)
    return await _of_account(view, query.account, desk)


@portfolio.get("/risk", responses=problems(404), tags=["portfolio"])
async def get_risk(
    desk: Desk, query: Annotated[RiskQuery, Depends(query_of(RiskQuery))]
) -> RiskView:
    """How much of each limit an account uses, and what the rules cut recently."""
    return await _of_account(await risk.risk(query, desk), query.account, desk)


@portfolio.get("/budget", tags=["budget"])
async def get_budget(
    desk: Desk, query: Annotated[BudgetQuery, Depends(query_of(BudgetQuery))]
) -> BudgetView:
    """Today's remaining model budget, and the use of the last days."""
    return await handler.budget(query, desk)


@portfolio.get("/accounts", tags=["portfolio"])
async def list_accounts(
    desk: Desk,
    limit: Limit = 20,
) -> AccountSummaries:
    """Accounts, one line each: equity, daily and total P&L, exposure, risk at the stops."""
    return await summaries.summaries(limit, desk)


@portfolio.get(
    "/portfolio/performance",
    responses=problems(404),
    tags=["portfolio"],
)
async def get_performance(
    desk: Desk, query: Annotated[PerformanceQuery, Depends(query_of(PerformanceQuery))]
) -> PerformanceView:
    """An account's performance against a benchmark: returns, risk, months and round trips."""
    view = await performance.performance(query, desk)
    return await _of_account(view, query.account, desk)


@portfolio.get("/exit-signals", responses=problems(404), tags=["portfolio"])
async def list_exit_distances(
    desk: Desk, query: Annotated[ExitDistancesQuery, Depends(query_of(ExitDistancesQuery))]
) -> ExitDistances:
    """How far each open position is from its exit triggers, nearest first."""
    return await desk.requests.ask(EXIT_DISTANCES, query)


@portfolio.post(
    "/exit-signals/{ticker}/check",
    responses=problems(404),
    tags=["portfolio"],
)
async def check_exit_signals(
    desk: Desk,
    query: Annotated[CheckExitSignals, Depends(query_of(CheckExitSignals, path="ticker"))],
) -> ExitAnswer:
    """Check whether to sell a position, how much and why. Orders nothing."""
    return ExitAnswer.model_validate(await desk.requests.check(query))


@portfolio.post(
    "/exit-signals/{ticker}/sell",
    status_code=HTTPStatus.ACCEPTED,
    responses=problems(404, 409, 413, 415, 429),
    tags=["portfolio"],
)
async def sell_position(
    desk: Desk,
    ticker: Ticker,
    wish: Annotated[PositionSale, Body(PositionSale)],
    idempotency_key: Annotated[IdempotencyKey | None, Header()] = None,
) -> CycleAccepted:
    """Sell a position or a part of it by hand, with an exit cycle. The response comes when the
    cycle is on record; then follow the rules for sales, approval and execution."""

    def exit_of(key: str) -> CycleRequest:
        return CycleRequest(
            idempotency_key=key,
            kind=EXIT,
            as_of=wish.as_of,
            pipelines=(Pipeline(name="rules", account=wish.account),),
            sell_now=SellNow(ticker=ticker, share_pct=wish.share_pct),
        )

    return of_cycle(await desk.requests.cycle(idempotency_key, exit_of))


async def _of_account(view: OfAccount, account: str, desk: DeskAccess) -> OfAccount:
    """The view of an account. Raises `UnknownAccount`."""
    if not view.found:
        raise UnknownAccount(account, await desk.store.accounts())
    return view
