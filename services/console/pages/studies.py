"""Studies: their list, what one shows, and the cycles that its figures are from."""

from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from contracts.cycle import DECISION
from contracts.performance import Benchmark
from contracts.study import (
    CELLS_MAX,
    HORIZON_MAX,
    ArmName,
    CellKind,
    StudiesQuery,
    StudyCellsQuery,
    StudyView,
)
from contracts.study_score import StudyScoreQuery
from contracts.types import Name
from libs.facts import amounts
from libs.report.studies.compose import compose
from libs.report.studies.parts import Cell, StudyReport
from libs.report.tones import Tone
from services.console.http.problems import not_found
from services.console.http.requests import DeskAccess
from services.console.pages.account.portfolio import moment
from services.console.pages.choices import OrAll
from services.console.pages.show import Show
from services.console.studies.score import Wanted

CELLS_SHOWN = 50
Horizon = Annotated[int, Field(ge=1, le=HORIZON_MAX)]
CostBps = Annotated[float, Field(ge=0, le=1_000)]
TONES = {Tone.GOOD: "gain", Tone.BAD: "loss", Tone.WARN: "loss", Tone.QUIET: "soft"}


def studies(desk: DeskAccess, show: Show) -> APIRouter:
    """Three pages."""
    router = APIRouter()

    @router.get("/studies")
    async def studies_page(request: Request) -> Response:
        view = await desk.studies.of(StudiesQuery())
        return show(request, "studies.html", it=view, standing=_standing)

    @router.get("/studies/{name}")
    async def study_page(
        request: Request,
        name: Name,
        horizon: Annotated[Horizon | None, OrAll, Query()] = None,
        cost_bps: Annotated[CostBps | None, OrAll, Query()] = None,
        benchmark: Annotated[Benchmark | None, OrAll, Query()] = None,
    ) -> Response:
        query = StudyScoreQuery(name=name, horizon=horizon, cost_bps=cost_bps, benchmark=benchmark)
        score = await desk.scores.at_once(query)
        if isinstance(score, Wanted):
            (view,) = (await desk.studies.of(StudiesQuery(name=name))).studies
            return show(request, "study_coming.html", view=view, standing=_standing)
        if score.study is None:
            raise not_found(f"no study is named {name}")
        report = compose(score)
        return show(
            request,
            "study.html",
            it=report,
            score=score,
            study=score.study,
            plots=_plots(report),
            tone_of=_tone_of,
        )

    @router.get("/studies/{name}/cells")
    async def cells_page(
        request: Request,
        name: Name,
        arm: Annotated[ArmName | None, OrAll, Query()] = None,
        on: Annotated[date | None, OrAll, Query()] = None,
        kind: Annotated[CellKind, Query()] = DECISION,
        skip: Annotated[int, Query(ge=0, le=CELLS_MAX)] = 0,
    ) -> Response:
        query = StudyCellsQuery(name=name, kind=kind, arm=arm, on=on, skip=skip, limit=CELLS_SHOWN)
        view = await desk.scores.cells(query)
        if not view.found:
            raise not_found(f"no study is named {name}")
        return show(request, "study_cells.html", it=view, name=name, query=query, shown=CELLS_SHOWN)

    return router


def _standing(view: StudyView) -> str:
    """`40 of 60 cells, 2 failed`."""
    lost = view.failed + view.refused
    failed = f", {lost:,} failed" if lost else ""
    return f"{view.completed:,} of {amounts.count(view.cells, 'cell')}{failed}"


def _tone_of(cell: Cell) -> str:
    return TONES.get(cell.tone, "") if cell.tone else ""


def _plots(report: StudyReport) -> dict[str, Any]:
    """The curves of each section, by its title."""
    return {
        section.title: {
            "x": [moment(day) for day in section.curves.points],
            "unit": "%",
            "lines": [
                {"name": line.name, "values": list(line.values)} for line in section.curves.lines
            ],
        }
        for section in report.sections
        if section.curves
    }
