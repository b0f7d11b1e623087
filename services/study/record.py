"""Reads what a study left on record: its file, its cells, what their arms decided."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from uuid import UUID

import orjson
from pydantic import ValidationError

from contracts.cycle import DECISION
from contracts.stages import Substitute, fell_back
from contracts.study import Study, StudyStatus
from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries
from libs.quant.returns import AccountWorth, growth
from libs.runtime.errors import DeskError
from libs.study.statistics.record import AccountEquity, Decided, Probed

sql = Queries(Path(__file__).parent / "record.sql")

BATCH = 500
"""Cells whose contracts are read at a time."""
NAMES_MAX = 50
COMPLETED = "completed"


class UnreadableStudy(DeskError):
    """A later version wrote this study."""

    code = "unreadable"

    def __init__(self, name: str, needed: str = "") -> None:
        super().__init__(
            f"{needed}study {name} is on record, and this version of Deskbus cannot read it: a "
            "later one wrote it; run that one"
        )
        self.name = name


def study_in(row: Record, needed: str = "") -> Study:
    """The study's file in a row with its name. Raises `UnreadableStudy`."""
    try:
        return Study.model_validate_json(row["body"])
    except ValidationError:
        raise UnreadableStudy(row["name"], needed) from None


async def study_of(name: str, pool: Pool) -> tuple[Study, StudyStatus, int] | None:
    """The study's file as it was accepted, how it stands, and the first round that counts. Raises
    `UnreadableStudy`."""
    row = await pool.fetchrow(sql.study, name)
    if row is None:
        return None
    return study_in(row), StudyStatus(row["status"]), row["first_round"]


async def names(pool: Pool) -> tuple[str, ...]:
    """The names of studies, the newest first."""
    return tuple(row["name"] for row in await pool.fetch(sql.names, NAMES_MAX))


async def cells(
    name: str,
    pool: Pool,
    *,
    kind: str = DECISION,
    on: date | None = None,
    skip: int = 0,
    limit: int | None = None,
) -> Sequence[Record]:
    """The study's ended cycles of a kind in the order of their dates."""
    rows: Sequence[Record] = await pool.fetch(sql.cells, name, on, skip, limit, kind)
    return rows


async def decided(study: Study, ended: Sequence[Record], pool: Pool) -> Sequence[Decided]:
    """The decision of each arm in these cells."""
    rows: list[Decided] = []
    for first in range(0, len(ended), BATCH):
        batch = ended[first : first + BATCH]
        ids = [cell["cycle_id"] for cell in batch]
        bought = _by_arm(await pool.fetch(sql.decided, ids))
        spent = _by_arm(await pool.fetch(sql.spent, ids))
        for cell in batch:
            for arm in study.arms:
                key = (cell["cycle_id"], arm.name)
                rows.append(_decided(cell, arm.name, bought.get(key), spent.get(key)))
    return rows


async def probed(ended: Sequence[Record], pool: Pool) -> Sequence[Probed]:
    """The guesses that the arms' models have made in these probes."""
    by_id = {cell["cycle_id"]: cell for cell in ended}
    rows = await pool.fetch(sql.probed, list(by_id)) if by_id else []
    guessed = [
        Probed(
            arm=row["pipeline"],
            number=by_id[row["cycle_id"]]["number"],
            on=by_id[row["cycle_id"]]["as_of"],
            guesses=orjson.loads(row["guesses"]),
        )
        for row in rows
    ]
    return sorted(guessed, key=lambda one: (one.number, one.arm))


async def equity(study: Study, round_: int, pool: Pool) -> Sequence[AccountEquity]:
    """The accounts of a path in a round: what 1 has become by each close that is known."""
    accounts = {
        study.account(arm.name, sample, round_=round_): (arm.name, sample)
        for arm in study.arms
        for sample in range(study.samples)
    }
    closes = await worth_of(list(accounts), pool)
    rows = []
    for account, (arm, sample) in accounts.items():
        grown = growth(closes[account])
        worth = tuple(float(value) for value in grown.values())
        rows.append(AccountEquity(arm=arm, sample=sample, sessions=tuple(grown), worth=worth))
    return rows


async def worth_of(
    accounts: Sequence[str], pool: Pool, first: date = date.min, last: date = date.max
) -> Mapping[str, Mapping[date, AccountWorth]]:
    """By account: its worth at each close from `first` to `last` that is known."""
    closes: dict[str, dict[date, AccountWorth]] = {account: {} for account in accounts}
    for row in await pool.fetch(sql.worth, list(accounts), first, last):
        closes[row["account"]][row["session"]] = AccountWorth(row["equity"], row["paid_in"])
    return closes


def _by_arm(rows: Sequence[Record]) -> Mapping[tuple[UUID, str], Record]:
    return {(row["cycle_id"], row["pipeline"]): row for row in rows}


def _decided(cell: Record, arm: str, bought: Record | None, spent: Record | None) -> Decided:
    weights, stated = {}, {}
    listed = orjson.loads(bought["substitutes"] or b"[]") if bought is not None else []
    substitutes = tuple(map(Substitute.model_validate, listed))
    is_own = bought is not None and not fell_back(substitutes)
    if is_own and bought is not None and bought["equity"] > 0:
        amounts = orjson.loads(bought["bought"] or b"{}")
        worth = float(bought["equity"])
        weights = {asset: amount / worth for asset, amount in amounts.items() if amount > 0}
        stated = orjson.loads(bought["stated"] or b"{}")
    return Decided(
        arm=arm,
        number=cell["number"],
        sample=cell["sample"],
        on=cell["as_of"],
        ended=is_own,
        substitutes=substitutes,
        weights=weights,
        stated=stated,
        tokens=spent["tokens"] if spent else 0,
        cost_usd=_cost_usd(spent),
    )


def _cost_usd(spent: Record | None) -> float | None:
    """The cost of an arm's cell, 0 where nothing was spent; None where it is unknown."""
    if spent is None:
        return 0.0
    return None if spent["cost_usd"] is None else float(spent["cost_usd"])
