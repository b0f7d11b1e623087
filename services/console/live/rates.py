"""How fast counters grow, from readings that were taken anyway."""

import time
from collections import deque
from collections.abc import Callable, Mapping

WINDOW_S = 60.0
"""A rate is of about the last minute."""
OLD_S = 600.0
"""A reading from before that says nothing about now: nobody has looked in between."""
APART_S = 1.0
"""Readings that are closer together are not kept: a minute has some sixty."""


class Rates:
    """Rates of counters that only grow; each reading is one of all of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._readings: deque[tuple[float, Mapping[str, int]]] = deque()

    def read(self, counts: Mapping[str, int]) -> tuple[Mapping[str, float], float]:
        """Growth a minute of each counter since the oldest reading, and how long ago that was, in
        seconds. Nothing, and 0, at a first reading; a counter that began anew is left out."""
        now = self._clock()
        readings = self._readings
        while readings and (
            now - readings[0][0] > OLD_S or (len(readings) > 1 and now - readings[1][0] >= WINDOW_S)
        ):
            readings.popleft()
        at, before = readings[0] if readings else (now, {})
        past_s = now - at
        if not readings or now - readings[-1][0] >= APART_S:
            readings.append((now, dict(counts)))
        if past_s < APART_S:
            return {}, 0.0
        return {
            name: (count - before[name]) * 60 / past_s
            for name, count in counts.items()
            if name in before and count >= before[name]
        }, past_s
