"""The HTTP API's paths about keeping the desk: dead letters, schedule, halts, costs, the bus."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from contracts.halt import HaltAnswer, Halts, HaltsQuery, HaltTrading, ResumeTrading
from contracts.http import BusView, CostsView, RunWish, Why
from contracts.message import PAGE_MAX
from contracts.schedule import JobAnswer, PauseJob, ResumeJob, RunJob, ScheduleQuery, ScheduleView
from contracts.subjects.halts import HALT, RESUME
from contracts.subjects.schedule import PAUSE_JOB, RESUME_JOB, RUN_JOB
from contracts.subjects.upkeep import DISCARD_LETTER, RETRY_LETTER
from contracts.types import Name
from contracts.upkeep import (
    DeadLetter,
    DeadLettersPage,
    DeadLettersQuery,
    DiscardLetter,
    LetterAnswer,
    RetryLetter,
)
from libs.web.problem import Refused
from services.console import handler
from services.console.http.bodies import asked, body_of, json_of, problems
from services.console.http.problems import not_found
from services.console.http.requests import DeskAccess
from services.console.views import bus, costs, schedule

DAYS_MAX = 31
SEQUENCE_MAX = 2**53 - 1
"""What JSON readers that count in floats still have exactly; NATS counts further."""

Number = Annotated[int, Path(ge=1, le=SEQUENCE_MAX, description="The letter's number.")]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX)]
CHANGED = problems(404, 409, 413, 415)


def letters(desk: DeskAccess) -> APIRouter:
    """Messages that could not be used."""
    router = APIRouter(prefix="/dead-letters", tags=["dead letters"])

    @router.get("", response_model=DeadLettersPage)
    async def list_dead_letters(limit: Limit = 20) -> Response:
        """The newest dead letters, without their bodies."""
        query = DeadLettersQuery(limit=limit)
        return json_of(await handler.dead_letters(query, letters=desk.letters))

    @router.get("/{number}", response_model=DeadLetter, responses=problems(404))
    async def get_dead_letter(number: Number) -> Response:
        """One dead letter with its body as text; null where that is no longer kept."""
        query = DeadLettersQuery(sequence=number)
        waiting = (await handler.dead_letters(query, letters=desk.letters)).letters
        if not waiting:
            raise not_found(f"there is no dead letter {number}")
        return json_of(waiting[0])

    @router.post("/{number}/retry", response_model=LetterAnswer, responses=problems(404, 409, 413))
    async def retry_dead_letter(number: Number) -> Response:
        """Have the command of the letter's operation sent again, while that is open."""
        return json_of(await desk.requests.request(RETRY_LETTER, RetryLetter(sequence=number)))

    @router.post(
        "/{number}/discard",
        response_model=LetterAnswer,
        responses=CHANGED,
        openapi_extra=asked(Why, needed=False),
    )
    async def discard_dead_letter(
        number: Number, why: Annotated[Why, Depends(body_of(Why, needed=False))]
    ) -> Response:
        """Delete a letter. Who did it, and why, stays on record; its operation is not touched."""
        wish = DiscardLetter(sequence=number, reason=why.reason)
        return json_of(await desk.requests.request(DISCARD_LETTER, wish))

    return router


def jobs(desk: DeskAccess) -> APIRouter:
    """The schedule."""
    router = APIRouter(prefix="/schedule", tags=["schedule"])

    @router.get("", response_model=ScheduleView)
    async def get_schedule() -> Response:
        """Every job: when it runs next, and how its last run ended."""
        view = await schedule.schedule(
            ScheduleQuery(),
            store=desk.store,
            settings=desk.settings,
            calendar=desk.calendar,
            now=desk.now,
        )
        return json_of(view)

    @router.post(
        "/{job}/pause",
        response_model=JobAnswer,
        responses=CHANGED,
        openapi_extra=asked(Why, needed=False),
    )
    async def pause_job(
        job: Name, why: Annotated[Why, Depends(body_of(Why, needed=False))]
    ) -> Response:
        """Let a job rest until it is resumed."""
        return json_of(await desk.requests.request(PAUSE_JOB, PauseJob(job=job, reason=why.reason)))

    @router.post("/{job}/resume", response_model=JobAnswer, responses=problems(404, 409))
    async def resume_job(job: Name) -> Response:
        """Let a paused job run again, from its next slot on."""
        return json_of(await desk.requests.request(RESUME_JOB, ResumeJob(job=job)))

    @router.post(
        "/{job}/run",
        response_model=JobAnswer,
        responses=CHANGED,
        openapi_extra=asked(RunWish, needed=False),
    )
    async def run_job(
        job: Name, wish: Annotated[RunWish, Depends(body_of(RunWish, needed=False))]
    ) -> Response:
        """Run a job once, also while it is paused; the same moment again is the same run."""
        at = wish.at or desk.now().replace(microsecond=0)
        answer = await desk.requests.request(RUN_JOB, RunJob(job=job, at=at))
        if answer.run is not None and answer.run.outcome == "rejected":
            raise Refused(HTTPStatus.CONFLICT, "run_refused", answer.run.reason)
        return json_of(answer)

    return router


def switch(desk: DeskAccess) -> APIRouter:
    """The kill switch."""
    router = APIRouter(prefix="/halts", tags=["halts"])

    @router.get("", response_model=Halts)
    async def list_halts() -> Response:
        """The halts that stand; empty where buys are free."""
        return json_of(await handler.halts(HaltsQuery(), store=desk.halts))

    @router.post(
        "",
        response_model=HaltAnswer,
        responses=problems(404, 413, 415),
        openapi_extra=asked(HaltTrading),
    )
    async def halt_trading(
        wish: Annotated[HaltTrading, Depends(body_of(HaltTrading))],
    ) -> Response:
        """Block buys at once, of one account or of all. Sales pass."""
        return json_of(await desk.requests.switch(HALT, wish))

    @router.post(
        "/resume",
        response_model=HaltAnswer,
        responses=problems(404, 413, 415),
        openapi_extra=asked(ResumeTrading),
    )
    async def resume_trading(
        wish: Annotated[ResumeTrading, Depends(body_of(ResumeTrading))],
    ) -> Response:
        """End the halt of one account, or the one of all."""
        return json_of(await desk.requests.switch(RESUME, wish))

    return router


def watch(desk: DeskAccess) -> APIRouter:
    """The use and work of the desk's parts."""
    router = APIRouter()

    @router.get("/costs", response_model=CostsView, tags=["budget"])
    async def get_costs(days: Annotated[int, Query(ge=1, le=DAYS_MAX)] = 7) -> Response:
        """The costs of models by day, provider, model and step; the budget is apart."""
        return json_of(await costs.costs(days, store=desk.store, now=desk.now))

    @router.get("/bus", response_model=BusView, tags=["bus"])
    async def get_bus() -> Response:
        """Streams, consumers with what waits for them, services and embedded servers."""
        return json_of(await bus.view(desk.health, desk.rates, desk.store, desk.settings))

    return router
