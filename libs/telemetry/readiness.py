"""Readiness of this process, and figures read only when asked.

Parts register a check or a sample for as long as they live: `with checked(...)`, `with
sampled(...)`. In a desk of one process all parts are in the same register; each is asked in the
loop that it lives in, as what it asks (a connection, a pool) may be used in no other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from libs.telemetry.metric import Gauge

WATCH_TIMEOUT_S = 2.0
"""How long one check or sample may take; then it has failed."""

Check = Callable[[], Awaitable[str]]
"""Gives what is wrong; empty where nothing is."""

log = structlog.get_logger()


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@dataclass(frozen=True, eq=False)
class _Watched:
    name: str
    read: Callable[[], Awaitable[object]]
    shows: "Sequence[Gauge]" = ()
    loop: asyncio.AbstractEventLoop | None = field(default_factory=_loop)

    async def ask(self) -> object:
        """Read it in its own loop; where it was registered outside of any, in this one."""
        if self.loop is None or self.loop is asyncio.get_running_loop():
            return await self.read()
        answer = asyncio.run_coroutine_threadsafe(self._ask(), self.loop)
        return await asyncio.wrap_future(answer)

    async def _ask(self) -> object:
        return await self.read()


_checks: list[_Watched] = []
_samples: list[_Watched] = []


@contextmanager
def checked(name: str, check: Check) -> Iterator[None]:
    """The process is ready only while this check passes, as long as the block runs."""
    with _registered(_checks, _Watched(name, check)):
        yield


@contextmanager
def sampled(
    name: str, read: Callable[[], Awaitable[None]], shows: "Sequence[Gauge]"
) -> Iterator[None]:
    """`read` sets these gauges at each scrape; where it fails they show nothing."""
    with _registered(_samples, _Watched(name, read, shows)):
        yield


@contextmanager
def _registered(among: list[_Watched], watched: _Watched) -> Iterator[None]:
    among.append(watched)
    try:
        yield
    finally:
        among.remove(watched)


async def problems() -> Mapping[str, str]:
    """The problem that each failed check found; empty where the process can do its work."""
    from libs.telemetry import metrics  # noqa: PLC0415 - commands that watch nothing start sooner

    checks = list(_checks)
    answers = await asyncio.gather(*(_problem_of(check) for check in checks))
    wrong_by_name = dict(zip((check.name for check in checks), answers, strict=True))
    metrics.READY.replace({(name,): float(not wrong) for name, wrong in wrong_by_name.items()})
    return {name: wrong for name, wrong in wrong_by_name.items() if wrong}


async def sample() -> None:
    """Bring all sampled figures up to date."""
    await problems()
    await asyncio.gather(*(_read(sampled_figure) for sampled_figure in _samples))


async def _problem_of(watched: _Watched) -> str:
    try:
        async with asyncio.timeout(WATCH_TIMEOUT_S):
            return str(await watched.ask())
    except TimeoutError:
        return f"no answer within {WATCH_TIMEOUT_S:g} s"
    except Exception as error:  # noqa: BLE001 - whatever is wrong, that is the answer
        return f"{type(error).__name__}: {error}"[:200]


async def _read(watched: _Watched) -> None:
    from libs.telemetry import metrics  # noqa: PLC0415

    try:
        async with asyncio.timeout(WATCH_TIMEOUT_S):
            await watched.ask()
    except Exception as error:  # noqa: BLE001 - a figure that cannot be read must not hide others
        log.warning("watch.sample_failed", sample=watched.name, error=f"{type(error).__name__}")
        metrics.SAMPLES_FAILED.add(watched.name)
        for gauge in watched.shows:
            gauge.replace({})
