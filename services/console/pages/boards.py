"""How strategies and sessions did."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from contracts.http import StrategyDetail
from contracts.report import ReportQuery
from contracts.strategy import STRATEGY_NAME_PATTERN
from contracts.strategy_query import NAMES_MAX, StrategiesQuery, StrategyView
from contracts.types import Name
from libs.facts import amounts
from libs.report.cited import pieces
from services.console.http.books import MAIN_ACCOUNT
from services.console.http.problems import not_found
from services.console.http.requests import DeskAccess
from services.console.pages import prose, words
from services.console.pages.account.portfolio import moment
from services.console.pages.show import Show
from services.console.views import report, strategies

STRATEGIES_SHOWN = 50

StrategyName = Annotated[str, Path(pattern=f"^{STRATEGY_NAME_PATTERN}$")]
Named = Annotated[str, Query(pattern=f"^{STRATEGY_NAME_PATTERN}$")]
Figure = tuple[str, Callable[[StrategyView], str]]


def boards(desk: DeskAccess, show: Show) -> APIRouter:
    """Strategies, daily reports."""
    router = APIRouter()

    @router.get("/strategies")
    async def strategies_page(
        request: Request, name: Annotated[tuple[Named, ...], Query(max_length=NAMES_MAX)] = ()
    ) -> Response:
        query = StrategiesQuery(names=name, limit=STRATEGIES_SHOWN)
        page = await strategies.strategies(query, store=desk.store)
        if name:
            return show(request, "compared.html", it=page, figures=FIGURES)
        return show(request, "strategies.html", it=page, names_max=NAMES_MAX)

    @router.get("/strategies/{name}")
    async def strategy_page(request: Request, name: StrategyName) -> Response:
        detail = await strategies.strategy(name, store=desk.store)
        if detail is None:
            raise not_found(f"no strategy is named {name}")
        return show(
            request,
            "strategy.html",
            it=detail,
            s=detail.strategy,
            figures=FIGURES,
            plots=_plots(detail),
            pieces=pieces,
        )

    @router.get("/reports")
    async def report_page(
        request: Request, account: Name = MAIN_ACCOUNT, session: date | None = None
    ) -> Response:
        names = tuple(await desk.store.accounts())
        if not names:
            return show(request, "no_account.html", account=account)
        query = ReportQuery(account=account, session=session)
        view = await report.report(query, known=desk.known)
        if view.report is None:
            raise not_found(view.message)
        return show(
            request,
            "report.html",
            it=view.report,
            blocks=prose.blocks(view.markdown),
            cycles={amounts.short(cycle.cycle_id): cycle.cycle_id for cycle in view.report.cycles},
            tickers=frozenset(await desk.store.traded_tickers(account)),
            account=account,
            accounts=names,
        )

    return router


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


def _trained(text_of: Callable[[Any], str]) -> Callable[[StrategyView], str]:
    return lambda view: text_of(view.training) if view.training else words.UNKNOWN


def _tested(text_of: Callable[[Any], str]) -> Callable[[StrategyView], str]:
    return lambda view: text_of(view.backtest) if view.backtest else words.UNKNOWN


FIGURES: Sequence[Figure] = (
    ("out-of-sample accuracy", _trained(lambda it: words.part(it.accuracy))),
    ("base rate", _trained(lambda it: words.part(it.base_rate))),
    ("return", _tested(lambda it: words.signed(it.total_return))),
    ("buy-and-hold", _tested(lambda it: words.signed(it.benchmark_return))),
    ("Sharpe ratio", _tested(lambda it: words.ratio(it.sharpe_ratio))),
    ("benchmark Sharpe", _tested(lambda it: words.ratio(it.benchmark_sharpe_ratio))),
    ("Sortino ratio", _tested(lambda it: words.ratio(it.sortino_ratio))),
    ("max drawdown", _tested(lambda it: words.part(it.max_drawdown))),
    ("deflated Sharpe", _tested(lambda it: words.part(it.deflated_sharpe))),
    ("trials", _tested(lambda it: f"{it.trials:,}")),
    ("trades", _tested(lambda it: f"{it.total_trades:,}")),
    ("win rate", _tested(lambda it: words.part(it.win_rate))),
    ("exposure", _tested(lambda it: words.part(it.exposure))),
    ("turnover per year", _tested(lambda it: words.ratio(it.turnover))),
)
"""What is told of every strategy, in this order."""
