"""The first page: what runs, what failed, what waits for a person, and what it costs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from fastapi import APIRouter, Request, Response

from contracts.cycle import CycleStatus
from contracts.halt import Halt
from contracts.operation import OperationView
from contracts.query import (
    BudgetQuery,
    BudgetView,
    CycleView,
    DeadLetter,
    DecisionsQuery,
    DecisionView,
    WaitingApproval,
)
from libs.postgres.pool import Record
from services.console import handler, logic
from services.console.http.requests import DeskAccess
from services.console.pages.show import Show
from services.console.views import tree

SHOWN_MAX = 6
"""Lines of each list; the page of its own has the rest."""
FAILED_WITHIN = timedelta(hours=24)
STUCK_SENDS = 4
"""Sendings of a command that nobody answered, after which it counts as stuck."""
STUCK_AFTER = timedelta(minutes=1)
"""How late the sweep may be before somebody should look at the orchestrator."""
LETTERS_MAX = 50
"""Dead letters that are counted: each is a question to NATS. Of more it says `50+`."""
LETTERS_S_MAX = 1.0
"""NATS is asked so long for the dead letters; the rest of the page comes without it."""


@dataclass(frozen=True)
class Stuck:
    """An operation that goes on without an answer."""

    operation: OperationView
    sends: int


@dataclass(frozen=True)
class Counts:
    """How many there are of each, listed or not; `letters` up to LETTERS_MAX."""

    running: int
    failed: int
    approvals: int
    stuck: int
    halts: int
    letters: int

    @property
    def waiting(self) -> int:
        """How many things wait for a person."""
        return self.approvals + self.halts + self.letters + self.stuck

    @property
    def waiting_text(self) -> str:
        """`12`; `54+` where letters were not counted to the end."""
        return f"{self.waiting:,}{'+' if self.letters >= LETTERS_MAX else ''}"


@dataclass(frozen=True)
class Overview:
    """The lists of the page, at most SHOWN_MAX each, and how many there are in all.

    `letters` is None where NATS did not answer.
    """

    counts: Counts
    running: Sequence[CycleView]
    failed: Sequence[CycleView]
    approvals: Sequence[WaitingApproval]
    halts: Sequence[Halt]
    letters: Sequence[DeadLetter] | None
    stuck: Sequence[Stuck]
    decisions: Sequence[DecisionView]
    budget: BudgetView


def overview(desk: DeskAccess, show: Show) -> APIRouter:
    """The page at the root."""
    router = APIRouter()

    @router.get("/")
    async def overview_page(request: Request) -> Response:
        return show(request, "overview.html", it=await _read(desk))

    return router


async def _read(desk: DeskAccess) -> Overview:
    store, now = desk.store, desk.now()
    # NATS is asked while Postgres answers; a connection answers one question at a time anyway.
    letters = asyncio.ensure_future(_letters(desk))
    since, due = now - FAILED_WITHIN, now - STUCK_AFTER
    counted = await store.attention(since, STUCK_SENDS, due)
    running = await store.cycles_of_status(CycleStatus.RUNNING, None, SHOWN_MAX)
    failed = await store.cycles_of_status(CycleStatus.FAILED, since, SHOWN_MAX)
    waiting = await store.waiting_approvals(None, SHOWN_MAX)
    stuck = await store.stuck_operations(STUCK_SENDS, due, SHOWN_MAX)
    decided = await handler.decisions(DecisionsQuery(limit=SHOWN_MAX), store=store)
    halts = tuple(map(logic.halt_of, await store.halts()))
    letter_page = await letters
    return Overview(
        counts=Counts(**counted, halts=len(halts), letters=len(letter_page or ())),
        running=tuple(map(logic.cycle_view, running)),
        failed=tuple(map(logic.cycle_view, failed)),
        approvals=tuple(map(logic.waiting_approval, waiting)),
        halts=halts,
        stuck=tuple(map(_stuck, stuck)),
        decisions=decided.decisions,
        budget=await handler.budget(
            BudgetQuery(), store=store, settings=desk.settings, now=desk.now
        ),
        letters=None if letter_page is None else letter_page[:SHOWN_MAX],
    )


def _stuck(row: Record) -> Stuck:
    return Stuck(tree.operation_node(row), row["sends"])


async def _letters(desk: DeskAccess) -> Sequence[DeadLetter] | None:
    try:
        async with asyncio.timeout(LETTERS_S_MAX):
            return await desk.letters.newest(LETTERS_MAX)
    except TimeoutError:
        return None
