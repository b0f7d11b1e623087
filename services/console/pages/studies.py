"""Studies: their list, and the report of one."""

from fastapi import APIRouter, Response

from contracts.study import StudiesQuery
from contracts.subjects.studies import STUDIES
from libs.study.report import listing
from services.console.http.requests import Desk
from services.console.http.studies import ScoreQuery, report_of
from services.console.pages.show import ShowPage

pages = APIRouter()


@pages.get("/studies")
async def studies_page(desk: Desk, show: ShowPage) -> Response:
    """The list, a page of the console."""
    view = await desk.requests.ask(STUDIES, StudiesQuery())
    return show("studies.html", it=view, studies=listing.studies(view.studies))


@pages.get("/studies/{name}")
async def study_page(desk: Desk, query: ScoreQuery) -> Response:
    """A report, a page of its own as over HTTP."""
    return await report_of(desk, query)
