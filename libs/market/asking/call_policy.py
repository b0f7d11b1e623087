"""How a service on the internet is asked with care: pace, backoff, and knowing when to stop.

Everything here is for threads and says only when and whether: the caller sleeps and calls.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

ATTEMPTS_MAX = 4
"""Tries of one question, the first included."""
BACKOFF_S = 0.5
"""What the wait before the second try is drawn from: 0 to this; doubled at each further try."""
BACKOFF_S_MAX = 8.0
BURST_MAX = 8.0
"""Requests that may go out at once after a rest."""
FAULTS_MAX = 5
"""Failed questions in a row after which the service counts as down."""
DOWN_S = 30.0
"""How long a service that is down is left alone before it is tried with one question."""
LIMITED_S = 60.0
"""The same after it said that there were too many requests, where it names no other time; doubled
each time it says so again."""
LIMITED_S_MAX = 900.0


def backoff_s(attempt: int, draw: Callable[[], float] = random.random) -> float:
    """The wait after the failed `attempt` (1, 2, ...): full jitter, `draw` gives 0 to 1."""
    return draw() * min(BACKOFF_S_MAX, BACKOFF_S * 2.0 ** (attempt - 1))


class TokenBucket:
    """A token bucket: at most `per_s` requests a second over time, BURST_MAX at once."""

    def __init__(self, per_s: float, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._clock = clock
        self._tokens = BURST_MAX
        self._at = clock()
        self._lock = threading.Lock()

    def take(self, requests: int) -> float:
        """Take so many requests' tokens; returns how many seconds to wait before they may go."""
        with self._lock:
            now = self._clock()
            self._tokens = min(BURST_MAX, self._tokens + (now - self._at) * self._per_s)
            self._at = now
            self._tokens -= requests
            return max(0.0, -self._tokens / self._per_s)

    def hold(self, wait_s: float) -> None:
        """Let nobody go for `wait_s`: one has just been told to slow down."""
        with self._lock:
            self._tokens = min(self._tokens, 0.0) - wait_s * self._per_s


@dataclass(frozen=True, slots=True)
class BreakerRefusal:
    """The breaker is open for `wait_s` more seconds, because of `why`."""

    wait_s: float
    why: str
    limited: bool


class Breaker:
    """Open after FAULTS_MAX faults in a row or one rate limit; then one question tries it.

    `limited_s` is the rest after the first rate limit.
    """

    def __init__(self, clock: Callable[[], float], limited_s: float = LIMITED_S) -> None:
        self._clock = clock
        self._limited_s = limited_s
        self._faults = 0
        self._limits = 0
        self._open_until: float | None = None
        self._why = ""
        self._limited = False
        self._lock = threading.Lock()

    def rest(self) -> BreakerRefusal | None:
        """The refusal that questions get now, without asking to be let through."""
        with self._lock:
            return self._refusal()

    def _refusal(self) -> BreakerRefusal | None:
        left = 0.0 if self._open_until is None else self._open_until - self._clock()
        return BreakerRefusal(left, self._why, self._limited) if left > 0 else None

    def admit(self) -> BreakerRefusal | None:
        """None where a question may go out now; the caller then tells how it ended."""
        with self._lock:
            refusal = self._refusal()
            if refusal is not None or self._open_until is None:
                return refusal
            # One question goes through; the others stay out until it has told its end.
            self._open_until = self._clock() + DOWN_S
            return None

    def succeeded(self) -> None:
        """The service answered, if only to say no."""
        with self._lock:
            self._faults = self._limits = 0
            self._open_until = None

    def failed(self, why: str, *, limited: bool, named_s: float | None = None) -> None:
        """A question failed for good; `limited` where the service said: too many requests, maybe
        for `named_s`."""
        with self._lock:
            self._faults += 1
            if limited and named_s is not None:
                rest_s = min(LIMITED_S_MAX, named_s)
            elif limited:
                self._limits += 1
                rest_s = min(LIMITED_S_MAX, self._limited_s * 2 ** (self._limits - 1))
            elif self._open_until is not None or self._faults >= FAULTS_MAX:
                rest_s = DOWN_S
            else:
                return
            self._open_until = self._clock() + rest_s
            self._why, self._limited = why, limited
