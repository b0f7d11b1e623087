"""A cycle has the same rows however its words travelled, but for ids and times."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest

from libs.bus.local import LocalBus
from libs.runtime.journal import Journal
from tests.integration.desk.caller import Caller, account_of, wish
from tests.integration.desk.conftest import Desk

ROWS = {
    "cycles": "select * from cycles where cycle_id = $1",
    "operations": "select * from operations where cycle_id = $1",
    "journal": """
        select o.step as of_step, j.* from journal j join operations o using (op_id)
        where o.cycle_id = $1
    """,
    "state_events": """
        select o.step as of_step, e.* from state_events e left join operations o using (op_id)
        where e.cycle_id = $1
    """,
    "orders": "select * from orders where cycle_id = $1",
}
IDS_AND_TIMES = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"\b[0-9a-f]{16,64}\b", "<hash>"),
    (r'\\*"(duration_ms|wait_s)\\*": ?[0-9.e-]+', "<lasted>"),
    # Of texts with ids and times in them.
    (r'\\*"bytes\\*": ?[0-9]+|a message of [0-9,]+ bytes', "<size>"),
    (r'\\*"seed\\*": ?[0-9]+', "<seed>"),  # of the operation's id
)
HASH_BYTES = 32
OWN = {"id", "xid"}
"""Columns that count what the database did; a cycle that is written in fewer parts has fewer."""

OF_CYCLE_STATE = {"state"}
"""Its objects are read by name: of two steps side by side, either may be the first to end."""


async def never(*_: object) -> None:
    """Nobody here answers."""


@contextmanager
def as_it_is(_: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside the process, free calls with the result."""
    yield


@contextmanager
def free_calls_alone(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside the process; a record of its own for the last free calls, before the result."""
    rest, alone = Journal.rest, list[int]()

    async def recorded(journal: Journal) -> Any:
        entries = await rest(journal)
        if entries:
            alone.append(len(entries))
            await journal._record(entries, None, None)
        return []

    patch.setattr(Journal, "rest", recorded)
    yield
    assert alone, "no call was recorded by itself"


@contextmanager
def claims_asked_for(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside the process; each claim asked for, as where no worker was known to be free."""
    patch.setattr(LocalBus, "free_workers", lambda *_: 0)
    yield


@contextmanager
def over_the_wire(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every command, claim, record and result over NATS."""
    patch.setattr(LocalBus, "ask", never)
    patch.setattr(LocalBus, "hand_over", lambda *_: False)
    patch.setattr(LocalBus, "free_workers", lambda *_: 0)
    yield


def as_text(name: str, value: object) -> str:
    """A column's value; of bytes that are no text but a hash, which has ids in it, their number."""
    if not isinstance(value, bytes):
        return str(value)
    if name in OF_CYCLE_STATE:
        return json.dumps(json.loads(value), sort_keys=True)
    return f"{len(value)} bytes" if len(value) == HASH_BYTES else value.decode()


def plain(row: Mapping[str, Any], own: tuple[str, ...]) -> str:
    """A row as text, without ids, times and what the cycle itself is called."""
    shown = {name: as_text(name, value) for name, value in row.items() if name not in OWN}
    text = json.dumps(shown, sort_keys=True)
    for name in own:
        text = text.replace(name, "<own>")
    for pattern, word in IDS_AND_TIMES:
        text = re.sub(pattern, word, text)
    return text


async def rows_of(
    db: "asyncpg.Connection[asyncpg.Record]", cycle_id: str, own: tuple[str, ...]
) -> dict[str, list[str]]:
    return {
        table: sorted(plain(dict(row), own) for row in await db.fetch(statement, cycle_id))
        for table, statement in ROWS.items()
    }


@pytest.mark.parametrize(
    "way", [free_calls_alone, claims_asked_for, over_the_wire], ids=lambda way: way.__name__
)
async def test_a_decision_cycle_has_the_same_rows_either_way_but_for_ids_and_times(
    desk: Desk, user: Caller, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    found = []
    for travel in (as_it_is, way):
        body = wish()
        with monkeypatch.context() as patch, travel(patch):
            view = await user.run(body)
        assert view["status"] == "completed"
        async with desk.postgres() as db:
            own = (account_of(body), body["idempotency_key"])
            found.append(await rows_of(db, view["cycle_id"], own))

    assert {table: len(rows) for table, rows in found[0].items() if not rows} == {}
    for table, rows in found[0].items():
        assert rows == found[1][table], table
