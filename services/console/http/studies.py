"""The HTTP API's paths about studies: their files and how far they are, what they show, begin and
stop."""

from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from contracts.http import ReasonBody
from contracts.study import (
    RunStudy,
    StopStudy,
    StudiesQuery,
    StudiesView,
    StudyAnswer,
    StudyCells,
    StudyCellsQuery,
    StudyView,
)
from contracts.study_score import StudyScore, StudyScoreQuery
from contracts.subjects.studies import RUN_STUDY, STOP_STUDY, STUDIES, STUDY_CELLS, STUDY_SCORE
from contracts.types import Name
from libs.study.report.compose import compose
from libs.study.report.page import listed, page
from libs.web.problem import HttpProblem
from services.console.http.boards import HTML, REPORT_POLICY
from services.console.http.bodies import ROOT, Body, problems
from services.console.http.problems import not_found
from services.console.http.queries import query_of
from services.console.http.requests import Desk, DeskAccess

PREFIX = "/studies"
BEGIN_S = 18.0
"""The first cell is judged before a study begins, by whoever knows the market and the models."""
SCORE_S = 120.0
"""A long study's statistics, on a busy machine."""
SCORED = problems(404, 502)

ScoreQuery = Annotated[StudyScoreQuery, Depends(query_of(StudyScoreQuery, path="name"))]
"""A score as an address asks for it."""


studies = APIRouter(prefix=PREFIX, tags=["studies"])


@studies.get("")
async def list_studies(desk: Desk) -> StudiesView:
    """The newest studies, as many as fit: the file and the progress of each."""
    return await desk.requests.ask(STUDIES, StudiesQuery())


@studies.post(
    "",
    status_code=HTTPStatus.ACCEPTED,
    responses=problems(409, 413, 415, 429, 502),
)
async def run_study(
    desk: Desk, response: Response, wish: Annotated[RunStudy, Body(RunStudy)]
) -> StudyAnswer:
    """Begin a study, or resume one: by its name, with the same file but for the budget. With
    `dry_run` nothing begins: what speaks against it is refused, and `notes` say what it will
    not show."""
    answer = await desk.requests.request(RUN_STUDY, wish, BEGIN_S)
    if not wish.dry_run:
        response.headers["Location"] = f"{ROOT}{PREFIX}/{wish.study.name}"
    return answer


@studies.get("/{name}", responses=problems(404))
async def get_study(desk: Desk, name: Name) -> StudyView:
    """One study: its file and its progress."""
    known = (await desk.requests.ask(STUDIES, StudiesQuery(name=name))).studies
    if not known:
        raise _no_such(name)
    return known[0]


@studies.post(
    "/{name}/stop",
    responses=problems(404, 413, 415),
)
async def stop_study(
    desk: Desk, name: Name, why: Annotated[ReasonBody, Body(ReasonBody)] | None = None
) -> StudyAnswer:
    """Start no more cells; running ones finish. Send the same file again to resume."""
    wish = StopStudy(name=name, reason=why.reason if why else "")
    return await desk.requests.request(STOP_STUDY, wish)


@studies.get("/{name}/score", responses=SCORED)
async def get_study_score(desk: Desk, query: ScoreQuery) -> StudyScore:
    """A study's score: which differences are significant, and which are not."""
    return await _score(desk, query)


@studies.get(
    "/{name}/report",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, **SCORED},
)
async def get_study_report(desk: Desk, query: ScoreQuery) -> Response:
    """The score as one HTML page in a sandbox that runs and loads nothing."""
    return await report_of(desk, query)


@studies.get("/{name}/cells", responses=problems(404))
async def list_study_cells(
    desk: Desk,
    query: Annotated[StudyCellsQuery, Depends(query_of(StudyCellsQuery, path="name"))],
) -> StudyCells:
    """The cycles behind the numbers: what each arm bought, or which company it identified."""
    view = await desk.requests.ask(STUDY_CELLS, query)
    if not view.found:
        raise _no_such(query.name)
    return view


async def report_of(desk: DeskAccess, query: StudyScoreQuery) -> Response:
    """The score of a study on one page of HTML."""
    score = await _score(desk, query)
    whole = page(compose(score), await listed(query.name, partial(desk.requests.ask, STUDY_CELLS)))
    return Response(whole, headers={"Content-Security-Policy": REPORT_POLICY}, media_type=HTML)


async def _score(desk: DeskAccess, query: StudyScoreQuery) -> StudyScore:
    score = await desk.requests.ask(STUDY_SCORE, query, SCORE_S)
    if not score.found:
        raise _no_such(query.name)
    return score


def _no_such(name: str) -> HttpProblem:
    return not_found(f"no study is named {name}")
