"""What must hold after any chaos, counted from the tables."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from contracts.audit import EventType
from libs.runtime import ids
from tests.chaos.load import Asked, Heard
from tests.fakes.paid_model import Seen

SAID = ("step", "code", "message", "name", "index", "status", "reason", "usage")
"""Event data that is the same in every run; durations are not."""


@dataclass(frozen=True)
class Story:
    """One cycle without its ids and times: two runs of the same request tell the same."""

    status: str
    reason: str
    operations: tuple[tuple[str, ...], ...]
    events: tuple[tuple[str, ...], ...]
    journal: tuple[tuple[str, ...], ...]
    effects: tuple[str, ...]


class Tables:
    """The rows of some cycles, read once."""

    def __init__(self, rows: Mapping[str, Sequence[asyncpg.Record]]) -> None:
        self.cycles = {row["cycle_id"]: row for row in rows["cycles"]}
        self.operations = _by_cycle(rows["operations"])
        self.events = _by_cycle(rows["events"])
        self.journal = _by_cycle(rows["journal"])
        self.effects = Counter(row["key"] for row in rows["effects"])
        self._labels = {
            **{
                row["op_id"]: f"{row['pipeline']}/{row['state']}/{row['step']}/{row['attempt']}"
                for row in rows["operations"]
            },
            **{
                ids.pipeline_id(cycle_id, name): name
                for cycle_id in self.cycles
                for name in ("shared", "alpha", "beta")
            },
            **dict.fromkeys(self.cycles, "cycle"),
        }

    @classmethod
    async def read(
        cls, db: "asyncpg.Connection[asyncpg.Record]", cycle_ids: Sequence[UUID]
    ) -> "Tables":
        """Everything about these cycles."""
        of_cycles = "where cycle_id = any($1::uuid[])"
        return cls(
            {
                "cycles": await db.fetch(f"select * from cycles {of_cycles}", cycle_ids),
                "operations": await db.fetch(f"select * from operations {of_cycles}", cycle_ids),
                "events": await db.fetch(
                    f"select * from state_events {of_cycles} order by xid, id", cycle_ids
                ),
                "journal": await db.fetch(
                    "select j.*, o.cycle_id from journal j join operations o using (op_id)"
                    f" {of_cycles}",
                    cycle_ids,
                ),
                "effects": await db.fetch(
                    "select key from chaos.effects where split_part(key, '/', 1) = any($1::text[])",
                    [str(cycle_id) for cycle_id in cycle_ids],
                ),
            }
        )

    def story(self, cycle_id: UUID) -> Story:
        """What happened in one cycle."""
        cycle = self.cycles[cycle_id]
        pipelines = ("alpha", "beta")
        return Story(
            status=cycle["status"],
            reason=cycle["reason"] or "",
            operations=tuple(sorted(map(self._operation, self.operations[cycle_id]))),
            events=tuple(sorted(self._events(self.events[cycle_id]))),
            journal=tuple(sorted(map(self._entry, self.journal[cycle_id]))),
            effects=tuple(p for p in pipelines for _ in range(self.effects[f"{cycle_id}/{p}"])),
        )

    def _operation(self, row: asyncpg.Record) -> tuple[str, ...]:
        code = orjson.loads(row["failure"])["code"] if row["failure"] else ""
        expected = ids.operation_id(
            row["cycle_id"], row["pipeline"], row["state"], row["step"], row["attempt"]
        )
        if row["op_id"] != expected:
            raise AssertionError(f"{row['op_id']} is not the id of {self._labels[row['op_id']]}")
        return (self._labels[row["op_id"]], row["status"], code, row["service"])

    def _events(self, rows: Sequence[asyncpg.Record]) -> list[tuple[str, ...]]:
        """Each event; that a call begins once a call, since what was in flight at a fault begins
        again, on record each time."""
        begun = {self._event(row) for row in rows if row["type"] == EventType.LLM_REQUESTED}
        others = [self._event(row) for row in rows if row["type"] != EventType.LLM_REQUESTED]
        return [*begun, *others]

    def _event(self, row: asyncpg.Record) -> tuple[str, ...]:
        data = orjson.loads(row["data"])
        said = {key: data[key] for key in SAID if key in data}
        # The number of a beginning holds the epoch, of which a fault makes more.
        number = data["index"] if row["type"] == EventType.LLM_REQUESTED else row["seq"]
        return (
            self._labels.get(row["op_id"], "?"),
            f"{number:05}",
            row["type"],
            str(row["pipeline"]),
            str(row["state"]),
            orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode(),
        )

    def _entry(self, row: asyncpg.Record) -> tuple[str, ...]:
        entry = orjson.loads(row["entry"])
        return (self._labels[row["op_id"]], f"{row['index']:05}", entry["kind"], entry["name"])


def _by_cycle(rows: Sequence[asyncpg.Record]) -> dict[UUID, list[asyncpg.Record]]:
    found: dict[UUID, list[asyncpg.Record]] = defaultdict(list)
    for row in rows:
        found[row["cycle_id"]].append(row)
    return found


def stories_differ(
    tables: Tables, asked: Sequence[Asked], expected: Mapping[str, Story]
) -> list[str]:
    """Every cycle whose story is not that of the fault-free run, and in what."""
    return [
        f"{each.cycle_id} ({each.label}): {difference}"
        for each in asked
        for difference in _differences(tables.story(each.cycle_id), expected[each.label])
    ]


def _differences(found: Story, expected: Story) -> list[str]:
    differences = [
        f"{name} {getattr(found, name)!r}, not {getattr(expected, name)!r}"
        for name in ("status", "reason")
        if getattr(found, name) != getattr(expected, name)
    ]
    for name in ("operations", "events", "journal", "effects"):
        has, owes = Counter(getattr(found, name)), Counter(getattr(expected, name))
        if has != owes:
            differences.append(f"{name}: more {list(has - owes)}, missing {list(owes - has)}")
    return differences


def calls_repeated_after_record(tables: Tables, calls: Sequence[Seen]) -> list[str]:
    """Paid calls that were begun although their reply was on record already."""
    recorded = {
        (row["op_id"], row["index"]): row["recorded_at"].timestamp()
        for rows in tables.journal.values()
        for row in rows
    }
    return [
        f"{call.op_id}/{call.index} by pid {call.pid}, {call.asked_at - recorded[key]:.3f} s late"
        for call in calls
        if call.what == "begin"
        and (key := (call.op_id, call.index)) in recorded
        and call.asked_at > recorded[key]
    ]


def calls_made(tables: Tables, calls: Sequence[Seen]) -> Counter[tuple[UUID, int]]:
    """How often each paid call of these cycles was begun."""
    known = {row["op_id"] for rows in tables.operations.values() for row in rows}
    return Counter((c.op_id, c.index) for c in calls if c.what == "begin" and c.op_id in known)


def wrongly_heard(tables: Tables, heard: Heard, asked: Sequence[Asked]) -> list[str]:
    """Differences between what a subscriber has (gaps filled) and the table, rank for rank."""
    problems = [f"told twice, differently: {pair}" for pair in heard.contradictions]
    for each in asked:
        rows = tables.events[each.cycle_id]
        owed = {
            ids.event_id(row["op_id"], row["seq"]): (rank, row["type"])
            for rank, row in enumerate(rows, start=1)
        }
        has = {
            event.event_id: (event.sequence, event.type.value)
            for event in heard.events.values()
            if event.cycle_id == each.cycle_id
        }
        if has != owed:
            problems.append(
                f"{each.cycle_id}: heard only {has.items() - owed.items()}, "
                f"not heard {owed.items() - has.items()}"
            )
    return problems


async def relay_lag(db: "asyncpg.Connection[asyncpg.Record]") -> int:
    """Events that the relay has not published."""
    lag: int = await db.fetchval(
        "select count(*) from state_events e, relay_cursor c where (e.xid, e.id) > (c.xid, c.id)"
    )
    return lag


async def money_left_over(db: "asyncpg.Connection[asyncpg.Record]") -> dict[str, Any]:
    """Sums that must be zero once nothing runs: held-back money, and spending nobody booked."""
    row = await db.fetchrow(
        """
        select (select coalesce(sum(tokens_reserved), 0) from operations) as operations_reserved,
               (select coalesce(sum(tokens_reserved), 0) from cycles) as cycles_reserved,
               (select coalesce(sum(tokens_reserved), 0) from day_budgets) as days_reserved,
               (select coalesce(sum(tokens_spent), 0) from cycles)
                 - (select coalesce(sum(tokens), 0) from operations) as cycles_minus_operations,
               (select coalesce(sum(tokens_spent), 0) from day_budgets)
                 - (select coalesce(sum(tokens), 0) from operations) as days_minus_operations
        """
    )
    return {name: int(value) for name, value in dict(row).items() if value}
