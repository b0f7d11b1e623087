"""The first page: what waits for a person, money, what runs, what failed, and what it costs."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Response

from contracts.cycle import CycleStatus
from contracts.operation import OperationView
from contracts.performance import AccountSummaries
from contracts.upkeep import BudgetQuery, DeadLetter
from libs.bus.health import BUS_AWAY
from libs.postgres.pool import Record
from services.console import handler, logic
from services.console.http.requests import Desk, DeskAccess
from services.console.pages.folded import folded, with_results
from services.console.pages.overview.lines import by_reason
from services.console.pages.overview.near_exits import NearExits, near_exits
from services.console.pages.show import ShowPage
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


pages = APIRouter()


@pages.get("/")
async def overview_page(desk: Desk, show: ShowPage) -> Response:
    """The page at the root."""
    return show("overview.html", **await _read(desk))


async def _read(desk: DeskAccess) -> Mapping[str, Any]:
    """The lists of the page, at most SHOWN_MAX each, and how many there are in all.

    `letters` is None where NATS, or their stream, did not answer.
    """
    store, now = desk.store, desk.now()
    since, due = now - FAILED_WITHIN, now - STUCK_AFTER
    # All at once: one after the other each would wait for its turn of the event loop.
    (accounts, near), letter_page, (counted, halts, budget), lists = await asyncio.gather(
        _accounts(desk),
        _letters(desk),
        asyncio.gather(
            store.row(sql.attention, since, STUCK_SENDS, due, FAILED_MAX),
            store.rows(sql.halts),
            handler.budget(BudgetQuery(), desk),
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
    return {
        "counts": Counts(**(counted or {}), halts=len(halts), letters=len(letter_page or ())),
        "accounts": accounts,
        "near": near,
        "running": tuple(map(logic.cycle_view, running)),
        "failed": by_reason(map(logic.cycle_view, failed), SHOWN_MAX),
        "approvals": tuple(map(logic.waiting_approval, waiting)),
        "halts": tuple(map(logic.halt_of, halts)),
        "stuck": tuple(map(_stuck, stuck)),
        "decisions": await with_results(folded(decided, SHOWN_MAX), store=store),
        "budget": budget,
        "bad_files": await desk.bad_files(),
        "letters": None if letter_page is None else letter_page[:SHOWN_MAX],
    }


async def _accounts(desk: DeskAccess) -> tuple[AccountSummaries, NearExits]:
    """The accounts, and those of their positions that are near an exit."""
    accounts = await summaries.summaries(ACCOUNTS_SHOWN, desk)
    holding = [account.account for account in accounts.accounts if account.positions]
    return accounts, await near_exits(desk, holding)


def _stuck(row: Record) -> Stuck:
    return Stuck(tree.operation_node(row), row["sends"])


async def _letters(desk: DeskAccess) -> Sequence[DeadLetter] | None:
    """The newest letters; None where NATS, or their stream, does not answer."""
    try:
        async with asyncio.timeout(LETTERS_S_MAX):
            return await desk.letters.newest(LETTERS_MAX)
    except (TimeoutError, BUS_AWAY):
        return None
