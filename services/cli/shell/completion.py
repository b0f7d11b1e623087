"""Names and ids that the shell completes (`autocompletion=` of an option): from the settings, and
from the record of a running desk.

Whoever presses Tab waits: everything is loaded only then, and what cannot be had within
`PATIENCE_S` is left out. Nothing is printed: an error would stand in the middle of a command line.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contracts.subjects.subject import Answered, Asked, Subject

PATIENCE_S = 1.0


def _settings() -> Any:
    from services.cli.shell.running import load_settings  # noqa: PLC0415

    return load_settings()


def _asked(row: "Subject[Asked, Answered]", question: "Asked") -> "Answered":
    """The answer of the running desk to one question."""
    from libs.telemetry.logging import configure_logging  # noqa: PLC0415
    from services.cli.shell.running import desk_client  # noqa: PLC0415

    configure_logging("critical", "json")

    async def ask() -> "Answered":
        async with asyncio.timeout(PATIENCE_S), desk_client(_settings()) as client:
            return await client.ask(row, question)

    return asyncio.run(ask())


def _completes(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """A completion by these names; none where they cannot be had."""

    def complete(incomplete: str) -> list[str]:
        try:
            known = names()
        except Exception:  # noqa: BLE001 - whatever it is: a shell that asks must not see it
            return []
        before, comma, _ = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in known]

    return complete


def _cycles() -> Iterable[str]:
    from contracts.cycle_query import CyclesQuery  # noqa: PLC0415
    from contracts.subjects.cycles import CYCLES  # noqa: PLC0415

    views = _asked(CYCLES, CyclesQuery(limit=50)).cycles
    return ["last", *(str(view.cycle_id)[:8] for view in views)]


def _accounts() -> Iterable[str]:
    from contracts.performance import PerformanceQuery  # noqa: PLC0415
    from contracts.subjects.accounts import PERFORMANCE  # noqa: PLC0415

    return _asked(PERFORMANCE, PerformanceQuery(account="main", trips=0, points=2)).accounts


def _tickers() -> Iterable[str]:
    from libs.market.sources import tickers_of  # noqa: PLC0415

    return tickers_of(_settings())


def _jobs() -> Iterable[str]:
    return list(_settings().schedule.jobs)


cycles, accounts, tickers = _completes(_cycles), _completes(_accounts), _completes(_tickers)
jobs = _completes(_jobs)
