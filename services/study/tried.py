"""Reads which configurations this desk has tried on the assets and sessions of a study's path."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

import orjson

from contracts.study import Study, StudyArm, StudyKind
from contracts.study_score import ConfigurationKind
from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries
from libs.quant.returns import AccountWorth, growth
from libs.study.statistics.record import Tried
from services.study.record import study_in, worth_of

sql = Queries(Path(__file__).parent / "tried.sql")

CURVES_MAX = 400
"""Accounts of other studies, and strategies, whose returns are read, the newest ones; further ones
count as tries."""
STUDIES_READ_MAX = 2_000


async def mark(study: Study, pool: Pool) -> str:
    """A text that changes whenever there may be others than before; empty where none count."""
    if study.kind is not StudyKind.PATH:
        return ""
    row = await pool.fetchrow(sql.mark, study.name)
    return str(row["mark"]) if row else ""


async def tried(study: Study, sessions: Sequence[date], pool: Pool) -> Sequence[Tried]:
    """The configurations besides the study's own: of other studies that have ended and of
    strategies, on one of its assets at the least and within its `sessions`. Raises
    `UnreadableStudy`."""
    if not sessions:
        return ()
    rounds = await _others(study, sessions, pool)
    others = [other for other, _ in rounds]
    paths = [other for other in others if other.kind is StudyKind.PATH]
    accounts = {
        other.account(arm.name, sample, round_=first_round): other.name
        for other, first_round in rounds
        if other.kind is StudyKind.PATH
        for arm in other.arms
        for sample in range(other.samples)
    }
    read = list(accounts)[:CURVES_MAX]
    span = sessions[0], sessions[-1]
    worth = await worth_of(read, pool, *span)
    backtests = await pool.fetch(sql.backtests, *span, list(study.universe), CURVES_MAX)
    return [
        *await asyncio.to_thread(_of_paths, accounts, worth, sessions),
        *await asyncio.to_thread(lambda: [_of_backtest(row, sessions) for row in backtests]),
        *_of_picks((study, *paths), [it for it in others if it.kind is StudyKind.PICKS]),
    ]


async def _others(
    study: Study, sessions: Sequence[date], pool: Pool
) -> Sequence[tuple[Study, int]]:
    """The studies that have ended, the newest first, on one of the assets within the sessions, each
    with the round that a path's accounts are of. Raises `UnreadableStudy`: without one of them the
    study's luck would look smaller than it is."""
    rows = await pool.fetch(sql.others, study.name, STUDIES_READ_MAX)
    needed = f"the score of {study.name} counts what else the desk has tried; "
    known = ((study_in(row, needed), row["first_round"]) for row in rows)
    return [
        (it, first_round)
        for it, first_round in known
        if {*it.universe} & {*study.universe} and _reaches(it, sessions)
    ]


def _reaches(study: Study, sessions: Sequence[date]) -> bool:
    wish = study.dates
    listed = wish.sessions
    first, last = (listed[0], listed[-1]) if listed else (wish.first, wish.last)
    return first <= sessions[-1] and last >= sessions[0]  # type: ignore[operator]


def _of_paths(
    accounts: Mapping[str, str],
    worth: Mapping[str, Mapping[date, AccountWorth]],
    sessions: Sequence[date],
) -> Sequence[Tried]:
    """The accounts of other studies. One that was read, and has no close in between, has not lived
    then."""
    rows = []
    for account, source in accounts.items():
        of = worth.get(account)
        if of is not None and not of:
            continue
        known = of or {}
        grown = growth({day: known[day] for day in sessions}) if _has(known, sessions) else {}
        curve = tuple(float(value) for value in grown.values())
        rows.append(Tried(kind=ConfigurationKind.PATH, source=source, worth=curve))
    return rows


def _of_backtest(row: Record, sessions: Sequence[date]) -> Tried:
    days = [date.fromisoformat(day) for day in orjson.loads(row["sessions"] or b"[]")]
    equity = dict(zip(days, orjson.loads(row["equity"] or b"[]"), strict=True))
    curve = tuple(equity[day] for day in sessions) if _has(equity, sessions) else ()
    return Tried(kind=ConfigurationKind.STRATEGY, source=row["name"], worth=curve)


def _of_picks(paths: Sequence[Study], picks: Sequence[Study]) -> Iterator[Tried]:
    """Arms that were looked at without an account, each once, but for those that have one."""
    seen = {_asked(arm) for study in paths for arm in study.arms}
    for study in picks:
        for arm in study.arms:
            if _asked(arm) not in seen:
                seen.add(_asked(arm))
                yield Tried(kind=ConfigurationKind.PICKS, source=study.name)


def _asked(arm: StudyArm) -> str:
    """An arm but for its name."""
    return arm.model_dump_json(exclude={"name"})


def _has(known: Collection[date], sessions: Sequence[date]) -> bool:
    return all(day in known for day in sessions)
