"""How strategies and sessions did."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from contracts.http import StrategyDetail
from contracts.report import ReportQuery
from contracts.strategy_query import NAMES_MAX, StrategiesPage, StrategiesQuery
from libs.report import day_report
from libs.report.cited import pieces
from libs.report.strategies import tables
from libs.report.strategies.page import unit
from services.console.http.boards import StrategyName, get_strategy
from services.console.http.problems import not_found
from services.console.http.queries import query_of
from services.console.http.requests import Desk, DeskAccess
from services.console.pages.account.portfolio import moment
from services.console.pages.board import compared
from services.console.pages.show import ShowPage
from services.console.views import report, strategies

STRATEGIES_SHOWN = 50


pages = APIRouter()


@pages.get("/strategies")
async def strategies_page(
    desk: Desk,
    show: ShowPage,
    query: Annotated[StrategiesQuery, Depends(query_of(StrategiesQuery, limit=STRATEGIES_SHOWN))],
) -> Response:
    """The newest strategies, or those named side by side."""
    page = await strategies.strategies(query, store=desk.store)
    if query.names:
        return await _compared(page, desk, show)
    return show(
        "strategies.html",
        it=page,
        # As many columns as fit beside the menu of a small screen.
        listed=tables.listed(page.strategies).without("Cycle", "Trades", "Equity"),
        names_max=NAMES_MAX,
    )


@pages.get("/strategies/{name}")
async def strategy_page(desk: Desk, show: ShowPage, name: StrategyName) -> Response:
    """One strategy."""
    detail = await get_strategy(desk, name)
    return show(
        "strategy.html",
        it=detail,
        s=detail.strategy,
        figures=tables.compared([detail.strategy]),
        checks=tuple(tables.checks(detail.strategy)),
        plots=_plots(detail),
        pieces=pieces,
        unit=unit,
    )


@pages.get("/reports")
async def report_page(
    desk: Desk, show: ShowPage, query: Annotated[ReportQuery, Depends(query_of(ReportQuery))]
) -> Response:
    """A session's report."""
    names = tuple(await desk.store.accounts())
    if not names:
        return show("no_account.html", account=query.account)
    view = await report.report(query, desk)
    if view.report is None:
        raise not_found(view.message)
    return show(
        "report.html",
        it=view.report,
        title=day_report.title(view.report),
        headline=day_report.headline(view.report),
        sections=day_report.sections(view.report),
        account=query.account,
        accounts=names,
    )


async def _compared(page: StrategiesPage, desk: DeskAccess, show: ShowPage) -> Response:
    views = page.strategies
    details = [await strategies.strategy(view.name, store=desk.store) for view in views]
    return show(
        "compared.html",
        it=page,
        side_by_side=tables.compared(views),
        plot=compared.equity_plot([it for it in details if it is not None]),
    )


def _plots(detail: StrategyDetail) -> dict[str, Any]:
    losses, backtest = detail.loss_curve, detail.strategy.backtest
    plots: dict[str, Any] = {
        "loss": {
            "x": list(range(len(losses))),
            "axis": "epoch",
            "lines": [{"name": "Training loss", "values": list(losses)}],
        }
    }
    if backtest is not None:
        plots["equity"] = {
            "x": [moment(day) for day in detail.sessions],
            "lines": [
                {"name": "Strategy", "values": list(backtest.equity)},
                {"name": "Buy-and-hold", "values": list(backtest.benchmark)},
            ],
        }
    return plots
