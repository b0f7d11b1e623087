"""Positions near their exit, as the exit rules say; asked rarely, as the page is read often."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from contracts.exit_signal import ExitDistances, ExitDistancesQuery, ExitTrigger, PositionExits
from contracts.subjects.exits import EXIT_DISTANCES
from libs.runtime.errors import DeskError
from services.console.http.requests import DeskAccess

SHOWN_MAX = 5
KEPT_FOR = timedelta(seconds=30)
"""So long an answer serves: distances change with a session, an order or a rule."""
ASKED_S_MAX = 1.5
"""The page waits so long for the exit rules, then it comes without them."""


@dataclass(frozen=True)
class Near:
    """A position and the trigger that is nearest; `account` holds it."""

    account: str
    position: PositionExits
    trigger: ExitTrigger


@dataclass(frozen=True)
class NearExits:
    """The positions that are nearest to an exit; `silent` are accounts that nobody could say of."""

    positions: Sequence[Near] = ()
    silent: Sequence[str] = ()


def nearest(answers: Mapping[str, ExitDistances | None]) -> NearExits:
    """Of all accounts' positions the nearest to a trigger first; of some there is no answer."""
    near = [
        Near(account, position, trigger)
        for account, answer in answers.items()
        for position in (answer.positions if answer else ())
        if (trigger := _trigger(position)) is not None
    ]
    near.sort(key=lambda one: (one.trigger.distance or 0.0, one.account, one.position.ticker))
    silent = [account for account, answer in answers.items() if answer is None]
    return NearExits(near[:SHOWN_MAX], silent)


def _trigger(position: PositionExits) -> ExitTrigger | None:
    """The nearest trigger that would sell, measured in price or return."""
    known = [
        trigger
        for trigger in position.triggers
        if trigger.primary and trigger.distance is not None and trigger.unit != "sessions"
    ]
    return min(known, key=lambda trigger: trigger.distance or 0.0, default=None)


async def near_exits(desk: DeskAccess, accounts: Sequence[str]) -> NearExits:
    """The nearest of these accounts; each account's answer is kept for a while."""
    answers = await asyncio.gather(*(_answer(desk, account) for account in accounts))
    return nearest(dict(zip(accounts, answers, strict=True)))


async def _answer(desk: DeskAccess, account: str) -> ExitDistances | None:
    now = desk.now()
    at, kept = desk.exits_kept.get(account, (None, None))
    if at is not None and now - at < KEPT_FOR:
        return kept
    try:
        async with asyncio.timeout(ASKED_S_MAX):
            answer = await desk.requests.ask(EXIT_DISTANCES, ExitDistancesQuery(account=account))
    except (TimeoutError, DeskError):
        return None
    desk.exits_kept[account] = (now, answer)
    return answer
