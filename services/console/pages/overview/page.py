"""The first page: what waits for a person, money, what runs, what failed, and what it costs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from fastapi import APIRouter, Request, Response

from contracts.approval import WaitingApproval
from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView
from contracts.halt import Halt
from contracts.operation import OperationView
from contracts.performance import AccountSummaries
from contracts.risk import UnreadableDecision
from contracts.upkeep import BudgetQuery, BudgetView, DeadLetter
from libs.bus.health import BUS_AWAY
from libs.postgres.pool import Record
from libs.report.view import Table
from services.console import logic
from services.console.http.requests import DeskAccess
from services.console.pages.folded import Shown, folded, with_results
from services.console.pages.overview.lines import Failures, by_reason
from services.console.pages.overview.near_exits import AskedRarely, NearExits
from services.console.pages.show import Show
from services.console.store import sql
from services.console.views import summaries, tree

SHOWN_MAX = 5
"""Lines of each list; the page of its own has the rest."""
ACCOUNTS_SHOWN = 6
DECISIONS_LOOKED_AT = 80
"""Of these, those that did something; what did nothing in between is folded."""
FAILED_LOOKED_AT = 30
FAILED_WITHIN = timedelta(hours=24)
FAILED_MAX = 1_000
"""Failed cycles that are counted. Of more it says `1,000+`."""
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
    """How many there are of each, listed or not; `letters` up to LETTERS_MAX, `failed` up to
    FAILED_MAX."""

    running: int
    failed: int
    approvals: int
    stuck: int
    halts: int
    letters: int

    @property
    def failed_text(self) -> str:
        """`12`; `1,000+` where they were not counted to the end."""
        return f"{self.failed:,}{'+' if self.failed >= FAILED_MAX else ''}"

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

    `letters` is None where NATS, or their stream, did not answer.
    """

    counts: Counts
    accounts: AccountSummaries
    near: NearExits
    running: Sequence[CycleView]
    failed: Sequence[Failures]
    approvals: Sequence[WaitingApproval | UnreadableDecision]
    halts: Sequence[Halt]
    letters: Sequence[DeadLetter] | None
    stuck: Sequence[Stuck]
    decisions: Sequence[Shown]
    budget: BudgetView
    bad_files: Table


def overview(desk: DeskAccess, show: Show) -> APIRouter:
    """The page at the root."""
    router = APIRouter()
    exits = AskedRarely(desk)

    @router.get("/")
    async def overview_page(request: Request) -> Response:
        return show(request, "overview.html", it=await _read(desk, exits))

    return router


async def _read(desk: DeskAccess, exits: AskedRarely) -> Overview:
    store, now = desk.store, desk.now()
    since, due = now - FAILED_WITHIN, now - STUCK_AFTER
    # All at once: one after the other each would wait for its turn of the event loop.
    (accounts, near), letter_page, (counted, halts, budget), lists = await asyncio.gather(
        _accounts(desk, exits),
        _letters(desk),
        asyncio.gather(
            store.attention(since, STUCK_SENDS, due, FAILED_MAX),
            store.rows(sql.halts),
            desk.budget(BudgetQuery()),
        ),
        asyncio.gather(
            store.rows(sql.cycles_of_status, CycleStatus.RUNNING, None, SHOWN_MAX),
            store.rows(sql.cycles_of_status, CycleStatus.FAILED, since, FAILED_LOOKED_AT),
            store.rows(sql.waiting_approvals, None, SHOWN_MAX),
            store.rows(sql.stuck_operations, STUCK_SENDS, due, SHOWN_MAX),
            store.decisions_briefly(DECISIONS_LOOKED_AT),
        ),
    )
    running, failed, waiting, stuck, decided = lists
    return Overview(
        counts=Counts(**counted, halts=len(halts), letters=len(letter_page or ())),
        accounts=accounts,
        near=near,
        running=tuple(map(logic.cycle_view, running)),
        failed=by_reason(map(logic.cycle_view, failed), SHOWN_MAX),
        approvals=tuple(map(logic.waiting_approval, waiting)),
        halts=tuple(map(logic.halt_of, halts)),
        stuck=tuple(map(_stuck, stuck)),
        decisions=await with_results(folded(decided, SHOWN_MAX), store=store),
        budget=budget,
        bad_files=await desk.bad_files(),
        letters=None if letter_page is None else letter_page[:SHOWN_MAX],
    )


async def _accounts(desk: DeskAccess, exits: AskedRarely) -> tuple[AccountSummaries, NearExits]:
    """The accounts, and those of their positions that are near an exit."""
    accounts = await summaries.summaries(ACCOUNTS_SHOWN, store=desk.store, synthetic=desk.synthetic)
    holding = [account.account for account in accounts.accounts if account.positions]
    return accounts, await exits.of(holding)


def _stuck(row: Record) -> Stuck:
    return Stuck(tree.operation_node(row), row["sends"])


async def _letters(desk: DeskAccess) -> Sequence[DeadLetter] | None:
    """The newest letters; None where NATS, or their stream, does not answer."""
    try:
        async with asyncio.timeout(LETTERS_S_MAX):
            return await desk.letters.newest(LETTERS_MAX)
    except (TimeoutError, BUS_AWAY):
        return None
