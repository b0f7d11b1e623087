"""Studies: their list, and the report of one."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from contracts.study import StudiesQuery, StudyView
from contracts.study_score import StudyScoreQuery
from contracts.subjects.studies import STUDIES
from libs.facts import amounts
from services.console.http.requests import DeskAccess
from services.console.http.studies import report_of, score_query
from services.console.pages.show import Show


def studies(desk: DeskAccess, show: Show) -> APIRouter:
    """The list as a page of the console; a report is a page of its own, as over HTTP."""
    router = APIRouter()

    @router.get("/studies")
    async def studies_page(request: Request) -> Response:
        view = await desk.requests.ask(STUDIES, StudiesQuery())
        return show(request, "studies.html", it=view, standing=_standing)

    @router.get("/studies/{name}")
    async def study_page(query: Annotated[StudyScoreQuery, Depends(score_query)]) -> Response:
        return await report_of(desk, query)

    return router


def _standing(view: StudyView) -> str:
    """`40 of 60 cells, 2 failed`."""
    lost = view.failed + view.refused
    failed = f", {lost:,} failed" if lost else ""
    return f"{view.completed:,} of {amounts.count(view.cells, 'cell')}{failed}"
