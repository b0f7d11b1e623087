"""Studies: their list, and the report of one."""

from fastapi import APIRouter, Response

from contracts.study import StudiesQuery, StudyView
from contracts.subjects.studies import STUDIES
from libs.facts import amounts
from services.console.http.requests import Desk
from services.console.http.studies import ScoreQuery, report_of
from services.console.pages.show import ShowPage

pages = APIRouter()


@pages.get("/studies")
async def studies_page(desk: Desk, show: ShowPage) -> Response:
    """The list, a page of the console."""
    view = await desk.requests.ask(STUDIES, StudiesQuery())
    return show("studies.html", it=view, standing=_standing)


@pages.get("/studies/{name}")
async def study_page(desk: Desk, query: ScoreQuery) -> Response:
    """A report, a page of its own as over HTTP."""
    return await report_of(desk, query)


def _standing(view: StudyView) -> str:
    """`40 of 60 cells, 2 failed`."""
    lost = view.failed + view.refused
    failed = f", {lost:,} failed" if lost else ""
    return f"{view.completed:,} of {amounts.count(view.cells, 'cell')}{failed}"
