"""Which cycle `last` is."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from contracts.cycle_query import CyclesPage, CyclesQuery, CycleView
from contracts.subjects.cycles import CYCLE, CYCLES
from services.cli.shell.newest import cycle_named, newest
from services.cli.shell.problem import CliProblem, ExitCode

AT = datetime(2012, 6, 29, 20, tzinfo=UTC)


def desk(*kinds: str) -> Any:
    """A desk whose cycles, the oldest first, are of these kinds."""
    views = [
        CycleView(cycle_id=UUID(int=n), kind=kind, accepted_at=AT + timedelta(minutes=n))
        for n, kind in enumerate(kinds, 1)
    ]

    async def ask(row: Any, query: Any) -> Any:
        if row is CYCLE:
            return next(view for view in views if str(view.cycle_id) == query.cycle_id)
        assert row is CYCLES
        assert isinstance(query, CyclesQuery)
        wanted = [view for view in views if query.kind in {None, view.kind}]
        return CyclesPage(cycles=tuple(reversed(wanted))[: query.limit])

    return SimpleNamespace(ask=ask)


@pytest.mark.parametrize(
    ("kinds", "number"),
    [
        (("exit", "decision", "report"), 2),
        (("decision", "report", "snapshot", "report"), 1),
        (("decision", "exit"), 2),
        (("decision", "strategy", "report"), 2),
        (("decision", "own_kind"), 2),
    ],
)
async def test_last_is_the_newest_cycle_that_decides_also_after_a_schedule_ended_with_a_report(
    kinds: tuple[str, ...], number: int
) -> None:
    client = desk(*kinds)
    assert await newest(client) == UUID(int=number)
    for name in ("last", "LAST", str(UUID(int=number))):
        assert (await cycle_named(client, name)).cycle_id == UUID(int=number)


async def test_where_nothing_was_decided_the_command_for_a_first_cycle_is_told() -> None:
    for client in (desk(), desk("report")):
        with pytest.raises(CliProblem) as problem:
            await newest(client)
        assert problem.value.code is ExitCode.NOT_FOUND
        assert problem.value.hint.startswith("deskbus ")
