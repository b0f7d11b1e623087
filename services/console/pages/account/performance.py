"""How an account did, beside what it is compared with."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from contracts.performance import PerformancePoint, PerformanceQuery
from libs.report import performance as words
from services.console.http.queries import query_of
from services.console.http.requests import Desk
from services.console.pages.account.portfolio import POINTS_SHOWN, moment, no_account
from services.console.pages.show import ShowPage
from services.console.views import performance

TRIPS_SHOWN = 100
ASKED = query_of(PerformanceQuery, is_form=True, trips=TRIPS_SHOWN, points=POINTS_SHOWN)


pages = APIRouter()


@pages.get("/performance")
async def performance_page(
    desk: Desk,
    show: ShowPage,
    query: Annotated[PerformanceQuery, Depends(ASKED)],
) -> Response:
    """The page with its charts."""
    account = query.account
    view = await performance.performance(query, desk)
    if not view.found:
        return no_account(show, account, view.accounts)
    return show(
        "performance.html",
        it=view,
        account=account,
        benchmark=words.benchmark(view),
        under=words.heading(view),
        notes=words.notes(view),
        figures=words.figures(view),
        trading=words.trading(view.trades, view.currency or ""),
        months=words.months(view),
        trips=words.trips(view, account),
        tickers=words.tickers(view, account),
        plots=_plots(view.points),
    )


def _plots(points: Sequence[PerformancePoint]) -> dict[str, Any]:
    """Returns beside the benchmark's, drawdown and exposure, in percent."""
    at = [moment(point.session) for point in points]
    returns = [{"name": "Account", "values": [float(point.return_pct) for point in points]}]
    beside = [point.benchmark_pct for point in points]
    if any(pct is not None for pct in beside):
        values = [None if pct is None else float(pct) for pct in beside]
        returns.append({"name": "Benchmark", "values": values})
    return {
        "returns": {"x": at, "unit": "%", "lines": returns},
        "drawdown": _percent_line(at, "Drawdown", [-point.drawdown_pct for point in points]),
        "exposure": _percent_line(at, "Exposure", [point.exposure_pct for point in points]),
    }


def _percent_line(at: Sequence[int], name: str, values: Sequence[Decimal]) -> dict[str, Any]:
    return {"x": at, "unit": "%", "lines": [{"name": name, "values": list(map(float, values))}]}
