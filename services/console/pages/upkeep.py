"""Upkeep of a desk: the schedule, dead letters, costs, the bus, settings."""

from typing import Annotated
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
from fastapi import APIRouter, Query, Response

from contracts.http import CostRow
from contracts.schedule import ScheduleQuery
from contracts.subjects.subject import ORCHESTRATOR, PREFIX
from contracts.upkeep import BudgetQuery, DeadLetter, DeadLettersQuery
from libs.report import costs as of_costs
from libs.report import letters as of_letters
from libs.report import model_costs, settings
from services.console import handler
from services.console.http.requests import Desk, DeskAccess
from services.console.http.upkeep import DAYS_MAX, Number, get_dead_letter
from services.console.pages.show import ShowPage
from services.console.views import bus, costs, schedule

LETTERS_SHOWN = 50
DAYS_SHOWN = 7
RUNS_SHOWN = 20
ORCHESTRATORS = f"{PREFIX}.dlq.{ORCHESTRATOR}."
"""Letters of what others sent to the orchestrator: requests and answers."""
OPEN = frozenset({"pending", "running"})


pages = APIRouter()


@pages.get("/schedule")
async def schedule_page(desk: Desk, show: ShowPage) -> Response:
    """Every job with its newest runs."""
    view = await schedule.schedule(ScheduleQuery(), desk)
    runs = await desk.store.newest_slots([job.name for job in view.jobs], RUNS_SHOWN)
    return show("schedule.html", it=view, zone=ZoneInfo(view.zone), runs=runs)


@pages.get("/letters")
async def letters_page(desk: Desk, show: ShowPage) -> Response:
    """The newest dead letters."""
    query = DeadLettersQuery(limit=LETTERS_SHOWN)
    page = await handler.dead_letters(query, desk)
    return show("letters.html", letters=of_letters.listed(page.letters), shown=LETTERS_SHOWN)


@pages.get("/letters/{number}")
async def letter_page(desk: Desk, show: ShowPage, number: Number) -> Response:
    """One dead letter with its body."""
    letter = await get_dead_letter(desk, number)
    why = await _never_again(letter, desk)
    return show("letter.html", it=letter, body=readable(letter.body), no_retry=why)


@pages.get("/costs")
async def costs_page(
    desk: Desk, show: ShowPage, days: Annotated[int, Query(ge=1, le=DAYS_MAX)] = DAYS_SHOWN
) -> Response:
    """What models cost, beside the budget."""
    view = await costs.costs(days, desk)
    query = BudgetQuery(days=days)
    budget = await handler.budget(query, desk)
    return show(
        "costs.html",
        it=view,
        budget=budget,
        by_day=of_costs.by_day(budget),
        days=days,
        sums={
            "By model": model_costs.by_key(view.rows, "Provider and model", _model),
            "By step": model_costs.by_key(view.rows, "Step", lambda row: row.stage),
        },
        every=model_costs.listed(view),
    )


@pages.get("/bus")
async def bus_page(desk: Desk, show: ShowPage) -> Response:
    """Streams, queues and services."""
    view = await bus.view(desk.health, desk.rates, desk.store, desk.settings)
    return show("bus.html", it=view)


@pages.get("/settings")
async def all_settings(desk: Desk, show: ShowPage) -> Response:
    """All settings, to be read."""
    every = settings.of_desk(desk.settings)
    groups = {
        "Set on this desk": [one for one in every if one.source != "default"],
        "Defaults": [one for one in every if one.source == "default"],
    }
    return show("settings.html", groups=groups)


async def _never_again(letter: DeadLetter, desk: DeskAccess) -> str:
    """Why a retry of the letter can never work; empty where it may."""
    if letter.subject.startswith(ORCHESTRATORS):
        return "Not a desk command, so it cannot be retried. Fix it at the sender."
    try:
        op_id = UUID(orjson.loads(letter.body or "")["op_id"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return "It names no operation, so no command can be sent again: discard it."
    operation = await desk.store.operation(op_id)
    if operation is None:
        return "Its operation is not on record: discard it."
    if operation["status"] not in OPEN:
        return f"Its operation is {operation['status']} and stays so: discard it."
    return ""


def readable(body: str | None) -> str | None:
    """A body with its JSON spread over lines; as it is where it is none."""
    if body is None:
        return None
    try:
        return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return body


def _model(row: CostRow) -> str:
    return f"{row.provider}: {row.model or model_costs.NO_REPLY}"
