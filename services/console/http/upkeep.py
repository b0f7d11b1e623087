"""The HTTP API's paths about keeping the desk: dead letters, schedule, halts, costs, the bus."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from contracts.halt import HaltAnswer, Halts, HaltsQuery, HaltTrading, ResumeTrading
from contracts.http import BusView, CostsView, ReasonBody, RunWish
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
from libs.web.problem import HttpProblem
from services.console import handler
from services.console.http.bodies import Body, problems
from services.console.http.problems import not_found
from services.console.http.queries import query_of
from services.console.http.requests import ANSWER_S, Desk
from services.console.views import bus, costs, schedule

DAYS_MAX = 31
HALT_ANSWER_S = 30.0
"""Execution waits some seconds for a broker's cancels before it answers."""
SEQUENCE_MAX = 2**53 - 1
"""What JSON readers that count in floats still have exactly; NATS counts further."""

Number = Annotated[int, Path(ge=1, le=SEQUENCE_MAX, description="The letter's number.")]
CHANGED = problems(404, 409, 413, 415)


letters = APIRouter(prefix="/dead-letters", tags=["dead letters"])


@letters.get("")
async def list_dead_letters(
    desk: Desk,
    query: Annotated[DeadLettersQuery, Depends(query_of(DeadLettersQuery, sequence=None))],
) -> DeadLettersPage:
    """The newest dead letters, without their bodies."""
    return await handler.dead_letters(query, desk)


@letters.get("/{number}", responses=problems(404))
async def get_dead_letter(desk: Desk, number: Number) -> DeadLetter:
    """One dead letter with its body as text; null if it is no longer kept."""
    query = DeadLettersQuery(sequence=number)
    waiting = (await handler.dead_letters(query, desk)).letters
    if not waiting:
        raise not_found(f"there is no dead letter {number}; it may have been discarded")
    return waiting[0]


@letters.post("/{number}/retry", responses=problems(404, 409, 413))
async def retry_dead_letter(desk: Desk, number: Number) -> LetterAnswer:
    """Send the command of the letter's operation again, if the operation is still open."""
    return await desk.requests.request(RETRY_LETTER, RetryLetter(sequence=number))


@letters.post(
    "/{number}/discard",
    responses=CHANGED,
)
async def discard_dead_letter(
    desk: Desk, number: Number, why: Annotated[ReasonBody, Body(ReasonBody)] | None = None
) -> LetterAnswer:
    """Delete a dead letter. The record keeps who did it and why; the operation does not change."""
    wish = DiscardLetter(sequence=number, reason=why.reason if why else "")
    return await desk.requests.request(DISCARD_LETTER, wish)


jobs = APIRouter(prefix="/schedule", tags=["schedule"])


@jobs.get("")
async def get_schedule(desk: Desk) -> ScheduleView:
    """Every job: when it runs next, and how its last run ended."""
    return await schedule.schedule(ScheduleQuery(), desk)


@jobs.post(
    "/{job}/pause",
    responses=CHANGED,
)
async def pause_job(
    desk: Desk, job: Name, why: Annotated[ReasonBody, Body(ReasonBody)] | None = None
) -> JobAnswer:
    """Pause a job until it is resumed."""
    return await desk.requests.request(
        PAUSE_JOB, PauseJob(job=job, reason=why.reason if why else "")
    )


@jobs.post("/{job}/resume", responses=problems(404, 409))
async def resume_job(desk: Desk, job: Name) -> JobAnswer:
    """Resume a paused job from its next slot."""
    return await desk.requests.request(RESUME_JOB, ResumeJob(job=job))


@jobs.post(
    "/{job}/run",
    responses=CHANGED,
)
async def run_job(
    desk: Desk, job: Name, wish: Annotated[RunWish, Body(RunWish)] | None = None
) -> JobAnswer:
    """Run a job once, even if it is paused; a second run of the same moment does nothing."""
    at = (wish and wish.at) or desk.now().replace(microsecond=0)
    answer = await desk.requests.request(RUN_JOB, RunJob(job=job, at=at))
    if answer.run is not None and answer.run.outcome == "rejected":
        raise HttpProblem(HTTPStatus.CONFLICT, "run_refused", answer.run.reason)
    return answer


switch = APIRouter(prefix="/halts", tags=["halts"])


@switch.get("")
async def list_halts(desk: Desk) -> Halts:
    """The halts in force; empty if buys are possible."""
    return await handler.halts(HaltsQuery(), store=desk.halts)


@switch.post(
    "",
    responses=problems(404, 413, 415),
)
async def halt_trading(
    desk: Desk,
    wish: Annotated[HaltTrading, Body(HaltTrading)],
) -> HaltAnswer:
    """Block buys at once, for one account or all. Sales are still possible."""
    return await desk.requests.ask(HALT, wish, HALT_ANSWER_S)


@switch.post(
    "/resume",
    responses=problems(404, 413, 415),
)
async def resume_trading(
    desk: Desk,
    wish: Annotated[ResumeTrading, Body(ResumeTrading)],
) -> HaltAnswer:
    """End the halt of one account, or of all accounts."""
    return await desk.requests.ask(RESUME, wish, ANSWER_S)


watch = APIRouter()


@watch.get("/costs", tags=["budget"])
async def get_costs(desk: Desk, days: Annotated[int, Query(ge=1, le=DAYS_MAX)] = 7) -> CostsView:
    """Model costs by day, provider, model and step, without the budget."""
    return await costs.costs(days, desk)


@watch.get("/bus", tags=["bus"])
async def get_bus(desk: Desk) -> BusView:
    """Streams, consumers with their backlog, services and embedded servers."""
    return await bus.view(desk.health, desk.rates, desk.store, desk.settings)
