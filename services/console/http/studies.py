"""The HTTP API's paths about studies: their files and how far they are, what they show, begin and
stop."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from contracts.cycle import DECISION
from contracts.http import Why
from contracts.message import PAGE_MAX
from contracts.performance import Benchmark
from contracts.study import (
    CELLS_MAX,
    HORIZON_MAX,
    ArmName,
    CellKind,
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
from contracts.subjects.studies import RUN_STUDY, STOP_STUDY
from contracts.types import Name
from libs.report.studies.compose import compose
from libs.report.studies.page import listed, page
from libs.web.problem import Refused
from services.console.http.boards import HTML, REPORT_POLICY
from services.console.http.bodies import Day, asked, body_of, json_of, problems
from services.console.http.problems import not_found
from services.console.http.requests import DeskAccess

PREFIX = "/studies"
CELLS_TOLD = 50
SCORED = problems(404, 502)

Horizon = Annotated[
    Annotated[int, Field(ge=1, le=HORIZON_MAX)] | None,
    Query(description="Sessions from the open after a decision; the first of its file."),
]
CostBps = Annotated[
    Annotated[float, Field(ge=0, le=1_000)] | None,
    Query(description="Paid a side, in basis points; as in its file."),
]
Beside = Annotated[Benchmark | None, Query(description="As in its file.")]


def score_asked(
    name: Name, horizon: Horizon = None, cost_bps: CostBps = None, benchmark: Beside = None
) -> StudyScoreQuery:
    """A score as an address asks for it."""
    return StudyScoreQuery(name=name, horizon=horizon, cost_bps=cost_bps, benchmark=benchmark)


def studies(desk: DeskAccess, root: str) -> APIRouter:
    """Studies at work and on record."""
    router = APIRouter(prefix=PREFIX, tags=["studies"])

    @router.get("", response_model=StudiesView)
    async def list_studies() -> Response:
        """The newest studies, as many as one answer holds: the file of each, and how far it is."""
        return json_of(await desk.studies.of(StudiesQuery()))

    @router.post(
        "",
        status_code=HTTPStatus.ACCEPTED,
        response_model=StudyAnswer,
        responses=problems(409, 413, 415, 429, 502),
        openapi_extra=asked(RunStudy),
    )
    async def run_study(wish: Annotated[RunStudy, Depends(body_of(RunStudy))]) -> Response:
        """Begin a study, or resume one: by its name, with the same file but for the budget. With
        `dry_run` nothing begins: what speaks against it is refused, and `notes` say what it will
        not show."""
        answer = await desk.requests.request(RUN_STUDY, wish)
        where = {} if wish.dry_run else {"Location": f"{root}{PREFIX}/{wish.study.name}"}
        return json_of(answer, HTTPStatus.ACCEPTED, where)

    @router.get("/{name}", response_model=StudyView, responses=problems(404))
    async def get_study(name: Name) -> Response:
        """One study: its file, and how far its cells are."""
        known = (await desk.studies.of(StudiesQuery(name=name))).studies
        if not known:
            raise _no_such(name)
        return json_of(known[0])

    @router.post(
        "/{name}/stop",
        response_model=StudyAnswer,
        responses=problems(404, 413, 415),
        openapi_extra=asked(Why, needed=False),
    )
    async def stop_study(
        name: Name, why: Annotated[Why, Depends(body_of(Why, needed=False))]
    ) -> Response:
        """Begin no further cell; those that run end. The same file again resumes it."""
        wish = StopStudy(name=name, reason=why.reason)
        return json_of(await desk.requests.request(STOP_STUDY, wish))

    return router


def scored(desk: DeskAccess) -> APIRouter:
    """Their scores: read from the record, at no cost, as often as wanted."""
    router = APIRouter(prefix=PREFIX, tags=["studies"])

    @router.get("/{name}/score", response_model=StudyScore, responses=SCORED)
    async def get_study_score(query: Annotated[StudyScoreQuery, Depends(score_asked)]) -> Response:
        """A study's score: what it shows, and what it does not."""
        return json_of(await _score(desk, query))

    @router.get(
        "/{name}/report",
        response_class=Response,
        responses={200: {"content": {"text/html": {}}}, **SCORED},
    )
    async def get_study_report(query: Annotated[StudyScoreQuery, Depends(score_asked)]) -> Response:
        """The score on one page of HTML, in a sandbox: it may run and load nothing."""
        score = await _score(desk, query)
        whole = page(compose(score), await listed(query.name, desk.scores.cells))
        return Response(whole, headers={"Content-Security-Policy": REPORT_POLICY}, media_type=HTML)

    @router.get("/{name}/cells", response_model=StudyCells, responses=problems(404))
    async def list_study_cells(
        name: Name,
        kind: CellKind = DECISION,
        arm: ArmName | None = None,
        on: Day | None = None,
        skip: Annotated[int, Query(ge=0, le=CELLS_MAX)] = 0,
        limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = CELLS_TOLD,
    ) -> Response:
        """The cycles that figures are from: what each arm bought, or whom it identified."""
        query = StudyCellsQuery(name=name, kind=kind, arm=arm, on=on, skip=skip, limit=limit)
        view = await desk.scores.cells(query)
        if not view.found:
            raise _no_such(name)
        return json_of(view)

    return router


async def _score(desk: DeskAccess, query: StudyScoreQuery) -> StudyScore:
    score = await desk.scores.score(query)
    if not score.found:
        raise _no_such(query.name)
    return score


def _no_such(name: str) -> Refused:
    return not_found(f"no study is named {name}")
