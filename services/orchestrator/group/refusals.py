"""How many refused messages of one caller are kept: the thousandth says no more than the first."""

from collections.abc import Callable

from libs.telemetry import metrics

MINUTE_S = 60.0


class Refusals:
    """A share for each caller, full at first, that fills up again within a minute."""

    def __init__(self, per_minute_max: int, monotonic: Callable[[], float]) -> None:
        self._per_minute_max = per_minute_max
        self._monotonic = monotonic
        self._left: dict[str, tuple[float, float]] = {}

    def is_kept(self, caller: str) -> bool:
        """Whether this refusal is kept and told as an event; it is answered in any case."""
        now = self._monotonic()
        left, since = self._left.get(caller, (float(self._per_minute_max), now))
        left = min(self._per_minute_max, left + (now - since) * self._per_minute_max / MINUTE_S)
        kept = left >= 1
        self._left[caller] = (left - 1 if kept else left, now)
        if not kept:
            metrics.REFUSALS_NOT_KEPT.add()
        return kept
