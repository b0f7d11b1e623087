"""How many refused messages of one caller are kept: the thousandth says no more than the first."""

from collections.abc import Callable

from libs.telemetry import metrics

MINUTE_S = 60.0


class CallerShares:
    """A share for each caller, full at first, that fills up again within a minute."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._left: dict[str, tuple[float, float]] = {}

    def takes(self, caller: str, per_minute_max: int) -> bool:
        """Whether something was left of the caller's share, of which one is taken then."""
        now = self._monotonic()
        left, since = self._left.get(caller, (float(per_minute_max), now))
        left = min(per_minute_max, left + (now - since) * per_minute_max / MINUTE_S)
        taken = left >= 1
        self._left[caller] = (left - 1 if taken else left, now)
        return taken


class Refusals:
    """The refused messages that are kept, of each caller so many a minute."""

    def __init__(self, per_minute_max: int, monotonic: Callable[[], float]) -> None:
        self._per_minute_max = per_minute_max
        self._shares = CallerShares(monotonic)

    def is_kept(self, caller: str) -> bool:
        """Whether this refusal is kept and told as an event; it is answered in any case."""
        kept = self._shares.takes(caller, self._per_minute_max)
        if not kept:
            metrics.REFUSALS_NOT_KEPT.add()
        return kept
