"""Readiness of this process, and figures read only when asked.

Parts register a check or a sample for as long as they live: `with checked(...)`, `with
sampled(...)`. In a desk of one process all parts are in the same register; each is asked in the
loop that it lives in, as what it asks (a connection, a pool) may be used in no other.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from libs.telemetry.metric import Gauge

WATCH_TIMEOUT_S = 1.5
"""How long one check or sample may take; then it has failed. All of them are asked at once, so the
process answers within two seconds."""
FRESH_S = 0.5
"""Whoever asks more often gets the same answers: a check may cost a commit."""
GIVEN_UP_S = 15.0
"""A check that still hangs after so long is asked anew beside it."""

Check = Callable[[], Awaitable[str]]
"""Gives what is wrong; empty where nothing is."""

log = structlog.get_logger()


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@dataclass(eq=False)
class _Watched:
    name: str
    read: Callable[[], Awaitable[object]]
    shows: "Sequence[Gauge]" = ()
    loop: asyncio.AbstractEventLoop | None = field(default_factory=_loop)
    asking: "asyncio.Task[object] | None" = None
    asked_at: float = 0.0

    async def ask(self, fresh_s: float = 0.0) -> object:
        """The answer within WATCH_TIMEOUT_S, or the last one where that is as fresh. Raises
        TimeoutError, and what the check raises.

        What hangs is not waited for: to cancel a query of a frozen server takes as long as that is
        frozen. While it hangs it is asked no second time.
        """
        now, task = time.monotonic(), self.asking
        is_ours = task is not None and task.get_loop() is asyncio.get_running_loop()
        is_over = task is None or (task.done() and now - self.asked_at >= fresh_s)
        if not is_ours or is_over or now - self.asked_at > GIVEN_UP_S:
            task = self.asking = asyncio.create_task(self._ask_in_its_loop())
            task.add_done_callback(_seen)
            self.asked_at = now
        assert task is not None  # noqa: S101 - for the type checker
        await asyncio.wait({task}, timeout=WATCH_TIMEOUT_S)
        if not task.done() or task.cancelled():
            task.cancel()
            raise TimeoutError
        return task.result()

    async def _ask_in_its_loop(self) -> object:
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


def _seen(task: "asyncio.Task[object]") -> None:
    if not task.cancelled():
        task.exception()  # or asyncio would log what nobody waited for


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
    await asyncio.gather(problems(), *(_read(sampled_figure) for sampled_figure in _samples))


async def _problem_of(watched: _Watched) -> str:
    try:
        return str(await watched.ask(FRESH_S))
    except TimeoutError:
        return f"no answer within {WATCH_TIMEOUT_S:g} s"
    except Exception as error:  # noqa: BLE001 - whatever is wrong, that is the answer
        return f"{type(error).__name__}: {error}"[:200]


async def _read(watched: _Watched) -> None:
    from libs.telemetry import metrics  # noqa: PLC0415

    try:
        await watched.ask()
    except Exception as error:  # noqa: BLE001 - a figure that cannot be read must not hide others
        log.warning("watch.sample_failed", sample=watched.name, error=f"{type(error).__name__}")
        metrics.SAMPLES_FAILED.add(watched.name)
        for gauge in watched.shows:
            gauge.replace({})
