"""Questions to a source on the internet: with pace, retries, a breaker and a memory.

One a process and source: pace, breaker and memory only help when all questions share them. They run
in a few daemon threads, each under a time limit for whoever waits. An answer is kept with the
moment it was given; whoever asks decides by that moment what it may still be used for.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog

from libs.market.asking.call_policy import (
    ATTEMPTS_MAX,
    LIMITED_S,
    Breaker,
    TokenBucket,
    backoff_s,
)
from libs.market.asking.kept_answers import AnswerCache, KeptAnswer
from libs.market.asking.shared_pace import SharedPace
from libs.market.errors import MarketError, RateLimited, SourceUnavailable
from libs.telemetry import metrics

log = structlog.get_logger(__name__)

THREADS = 4
PENDING_MAX = 2_000
"""Questions that may wait for a thread."""
ANSWER_S_MAX = 90.0
"""How long one question may take, with its retries and its wait for a thread. After that nobody
waits for it, and it is not tried again."""

T = TypeVar("T")


Paced = TokenBucket | SharedPace
"""Says when the next requests may go out."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Timing:
    """How time passes for a source: `now` gives aware UTC, `sleep` waits seconds, and `clock`
    counts them."""

    now: Callable[[], datetime] = _utc_now
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


REAL_TIME = Timing()


class Workers:
    """A few daemon threads: a question that hangs must not keep the process from ending."""

    def __init__(self, source: str, threads: int) -> None:
        self._jobs: queue.Queue[tuple[Future[Any], Callable[[], Any]] | None]
        self._jobs = queue.Queue(PENDING_MAX)
        self._threads = threads
        for number in range(threads):
            threading.Thread(target=self._work, name=f"{source}-{number}", daemon=True).start()

    def submit(self, what: str, job: Callable[[], T]) -> Future[T]:
        """Run `job` in a thread when one is free. Raises SourceUnavailable where too many wait."""
        future: Future[T] = Future()
        try:
            self._jobs.put_nowait((future, job))
        except queue.Full:
            raise SourceUnavailable(what, f"{PENDING_MAX} questions wait already") from None
        return future

    def close(self) -> None:
        """End each thread, and with it its connections, once the questions before are answered."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (waiting := self._jobs.get()) is not None:
            future, job = waiting
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001 - handed to whoever waits, whatever it is
                future.set_exception(error)


class SourceQuestions:
    """The way in to one source.

    `name` is the source's for people. `costs` are the HTTP requests of a question by its kind, the
    first part of its key; one that is not named costs one. A source that says "too many requests"
    is left alone for `limited_s`, doubled each time it says so again, or for as long as it names
    (`RateLimited.wait_s`); with `tries_when_limited` it is tried again shortly before that.
    """

    def __init__(
        self,
        name: str,
        pace: Paced,
        timing: Timing,
        costs: Mapping[str, int] | None = None,
        *,
        limited_s: float = LIMITED_S,
        tries_when_limited: bool = True,
    ) -> None:
        self.timing = timing
        self._name = name
        self._pace = pace
        self._costs = costs or {}
        self._limited_s = limited_s
        self._tries_when_limited = tries_when_limited
        self._breaker = Breaker(timing.clock, limited_s)
        self._kept = AnswerCache()
        self._workers = Workers(name.lower(), THREADS)
        self._asking: dict[Hashable, Future[KeptAnswer]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let go of threads and connections; ask nothing afterwards."""
        self._workers.close()

    def resting_s(self) -> float | None:
        """The seconds for which the source is left alone after a rate limit or faults, if it is."""
        refusal = self._breaker.rest()
        return None if refusal is None else refusal.wait_s

    def kept(self, key: tuple[Hashable, ...]) -> KeptAnswer | None:
        """The answer that is remembered, if it is not too old."""
        return self._kept.get(key, self.timing.now())

    def remember(self, key: tuple[Hashable, ...], answer: KeptAnswer) -> None:
        """Keep what was made of other answers, as if it had been asked for under `key`."""
        self._kept.put(key, answer)

    async def ask(
        self,
        key: tuple[Hashable, ...],
        load: Callable[[], tuple[T, int]],
        covers: Callable[[KeptAnswer], bool] = lambda _: True,
    ) -> KeptAnswer:
        """The remembered answer where it `covers` the question; else what `load` brings, with its
        size in bytes. Raises MarketError: the source's refusal, or that it does not answer.
        """
        cached = self.kept(key)
        if cached is not None and covers(cached):
            metrics.MARKET_CALLS.add(str(key[0]), "kept")
            if cached.refused is not None:
                raise cached.refused.with_traceback(None)
            return cached
        what = " ".join(str(part) for part in key if part)
        with self._lock:
            asking = self._asking.get(key)
            if asking is None:
                job = self._job(key, what, load)
                asking = self._asking[key] = self._workers.submit(what, job)
                asking.add_done_callback(lambda _: self._asking.pop(key, None))
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                answer = await _result(asking)
        except TimeoutError:
            raise SourceUnavailable(what, f"no answer within {ANSWER_S_MAX:g} s") from None
        if answer.refused is not None:
            raise answer.refused.with_traceback(None)
        return answer

    def _job(
        self, key: tuple[Hashable, ...], what: str, load: Callable[[], tuple[T, int]]
    ) -> Callable[[], KeptAnswer]:
        def job() -> KeptAnswer:
            value, size_bytes, refused = None, 200, None
            # Before the question: what comes in meanwhile is not claimed to be complete.
            at = self.timing.now()
            try:
                value, size_bytes = self._patiently(str(key[0]), what, load)
                metrics.MARKET_CALLS.add(str(key[0]), "ok")
            except SourceUnavailable:
                metrics.MARKET_CALLS.add(str(key[0]), "unavailable")
                raise
            except MarketError as error:
                metrics.MARKET_CALLS.add(str(key[0]), "none")
                refused = error
            finally:
                metrics.MARKET_RESTS.set(self.resting_s() or 0.0, self._name.lower())
            answer = KeptAnswer(at, value, refused, size_bytes)
            self._kept.put(key, answer)
            return answer

        return job

    def _patiently(self, kind: str, what: str, load: Callable[[], tuple[T, int]]) -> tuple[T, int]:
        """Ask up to ATTEMPTS_MAX times. Raises what the last try raised."""
        self._admit(what)
        ends = self.timing.clock() + ANSWER_S_MAX
        for attempt in range(1, ATTEMPTS_MAX + 1):
            self.timing.sleep(self._pace.take(self._costs.get(kind, 1)))
            try:
                loaded = load()
            except SourceUnavailable as error:
                limited = isinstance(error, RateLimited)
                named_s = error.wait_s if isinstance(error, RateLimited) else None
                is_last = (limited and not self._tries_when_limited) or self.timing.clock() >= ends
                wait_s = (named_s or self._limited_s) if is_last else backoff_s(attempt)
                log.warning(
                    "market.failed",
                    source=self._name,
                    what=what,
                    attempt=attempt,
                    why=error.message[:200],
                )
                if limited and (is_last or attempt < ATTEMPTS_MAX):
                    self._pace.hold(wait_s)
                if is_last or attempt == ATTEMPTS_MAX:
                    why = error.why if isinstance(error, RateLimited) else error.message
                    self._breaker.failed(why, limited=limited, named_s=named_s)
                    raise
                self.timing.sleep(wait_s)
            except MarketError:
                self._breaker.succeeded()
                raise
            else:
                self._breaker.succeeded()
                return loaded
        raise AssertionError("the last attempt returned or raised")

    def _admit(self, what: str) -> None:
        refusal = self._breaker.admit()
        if refusal is None:
            return
        if refusal.limited:
            raise RateLimited(what, refusal.wait_s, refusal.why)
        why = f"{self._name} is down, it is tried again in {refusal.wait_s:.0f} s ({refusal.why})"
        raise SourceUnavailable(what, why)


async def _result(asking: Future[T]) -> T:
    """Wait for a thread's answer. Who stops waiting does not stop it: others may wait too."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: Future[T]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(done.set)

    asking.add_done_callback(tell)
    await done.wait()
    return asking.result()
