"""Names and ids that the shell completes: from the settings, and from the record of a running desk.

Whoever presses Tab waits: everything is loaded only then, and what cannot be had within
`PATIENCE_S` is left out. Nothing is ever printed: an error in the middle of a command line would
only be in the way.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contracts.subjects.subject import Answered, Asked, Subject

PATIENCE_S = 1.0
COMPLETED_MAX = 200
KINDS = ("decision", "exit")

Names = Iterable[str]


def complete(_ctx: Any, param: Any, incomplete: str) -> list[str]:
    """The names that a value may have, as far as they are known here."""
    try:
        names = COMPLETED[param.name]()
    except Exception:  # noqa: BLE001 - whatever it is: a shell that asks must not see it
        return []
    typed, comma, last = incomplete.rpartition(",")
    wanted = last.casefold()
    matches = sorted({name for name in names if name.casefold().startswith(wanted)})
    return [f"{typed}{comma}{name}" for name in matches[:COMPLETED_MAX]]


def _settings() -> Any:
    from services.cli.shell.running import load_settings  # noqa: PLC0415

    return load_settings()


def _asked(row: "Subject[Asked, Answered]", question: "Asked") -> "Answered":
    """The answer of the running desk to one question."""
    from libs.telemetry.logging import configure_logging  # noqa: PLC0415
    from services.cli.shell.running import desk_client  # noqa: PLC0415

    configure_logging("error", "json", _Nowhere())

    async def ask() -> "Answered":
        async with asyncio.timeout(PATIENCE_S), desk_client(_settings()) as client:
            return await client.ask(row, question)

    return asyncio.run(ask())


class _Nowhere:
    """A log that nobody reads."""

    def write(self, text: str) -> int:
        """Take a text, and drop it."""
        return len(text)

    def flush(self) -> None:
        """Nothing is kept."""


def _short(identifier: object) -> str:
    return str(identifier)[:8]


def _cycles() -> Names:
    from contracts.cycle_query import CyclesQuery  # noqa: PLC0415
    from contracts.subjects.cycles import CYCLES  # noqa: PLC0415

    ids = (_short(view.cycle_id) for view in _asked(CYCLES, CyclesQuery(limit=50)).cycles)
    return ["last", *ids]


def _operations() -> Names:
    from contracts.operation import OperationsQuery  # noqa: PLC0415
    from contracts.subjects.operations import OPERATIONS  # noqa: PLC0415

    page = _asked(OPERATIONS, OperationsQuery(limit=100))
    return [_short(node.op_id) for node in page.operations]


def _accounts() -> Names:
    from contracts.performance import PerformanceQuery  # noqa: PLC0415
    from contracts.subjects.accounts import PERFORMANCE  # noqa: PLC0415

    view = _asked(PERFORMANCE, PerformanceQuery(account="main", trips=0, points=2))
    return view.accounts or ("main",)


def _strategies() -> Names:
    from contracts.strategy_query import StrategiesQuery  # noqa: PLC0415
    from contracts.subjects.strategies import STRATEGIES  # noqa: PLC0415

    return [view.name for view in _asked(STRATEGIES, StrategiesQuery()).strategies]


def _studies() -> Names:
    from contracts.study import StudiesQuery  # noqa: PLC0415
    from contracts.subjects.studies import STUDIES  # noqa: PLC0415

    return [view.study.name for view in _asked(STUDIES, StudiesQuery()).studies]


def _tickers() -> Names:
    from libs.market.sources import tickers_of  # noqa: PLC0415

    return tickers_of(_settings())


def _jobs() -> Names:
    return tuple(_settings().schedule.jobs)


def _providers() -> Names:
    from libs.runtime.model_settings import provider_names  # noqa: PLC0415

    settings = _settings()
    return provider_names(settings.providers, demo=settings.demo)


def _channels() -> Names:
    return tuple(_settings().notify.channels)


def _event_types() -> Names:
    from contracts.audit import EventType  # noqa: PLC0415

    return [kind.value for kind in EventType]


def _services() -> Sequence[str]:
    from contracts.subjects.subject import BACKBONE, SERVICES  # noqa: PLC0415
    from services.cli.shell.running import SERVERS  # noqa: PLC0415

    return (*BACKBONE, *SERVICES, *SERVERS)


COMPLETED: Mapping[str, Callable[[], Names]] = {
    "kind": lambda: KINDS,
    "cycle": _cycles,
    "cycle_id": _cycles,
    "op_id": _operations,
    "account": _accounts,
    "ticker": _tickers,
    "universe": _tickers,
    "evidence_of": _tickers,
    "benchmark": _tickers,
    "job": _jobs,
    "name": _strategies,
    "names": _strategies,
    "study_name": _studies,
    "provider": _providers,
    "channel": _channels,
    "pattern": _event_types,
    "service": _services,
}
"""By the name of the option or argument."""
