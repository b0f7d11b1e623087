"""How fast each model endpoint may be asked, by all replicas of all services together.

A limit is a bucket: it fills at an even pace, and a call takes from it what it reserves. Capacity
and pace are chosen so that no minute holds more than the limit allows, also where some calls reach
the endpoint LATE_S later than they were let begin. A call whose tokens alone are more than the
capacity begins at a full bucket. What a call did not use of its tokens it gives back.

Pure: seconds count from when the rows were read, under the lock of the day's budget.
"""

from dataclasses import dataclass, field

from contracts.operation import Reserve

MINUTE_S = 60.0
LATE_S = 3.0
"""Between the word that a call may begin and its arrival: the first one loads the SDK."""
CAPACITY_SHARE = 0.25
"""Of a minute's limit: what may be asked at once after a rest. The pace gets the others."""
CLOSED_S_MAX = 3_600.0
"""The longest that an endpoint is left alone for one of its answers."""


@dataclass
class Bucket:
    """The room under one limit. In `full_in_s` it is full again; not limited where None."""

    per_minute: int | None = None
    full_in_s: float = 0.0

    def wait_s(self, wanted: int) -> float:
        """In how long there is room for so much."""
        if self.per_minute is None:
            return 0.0
        spare = self._capacity - min(wanted, self._capacity)
        return max(0.0, self.full_in_s - spare * self._unit_s)

    def take(self, wanted: int, in_s: float) -> None:
        """Take so much, in so many seconds."""
        if self.per_minute is not None:
            self.full_in_s = max(self.full_in_s, in_s) + wanted * self._unit_s

    def give_back(self, unused: int) -> None:
        """Return what was taken and not used."""
        if self.per_minute is not None:
            self.full_in_s -= unused * self._unit_s

    @property
    def _capacity(self) -> float:
        return max(1.0, CAPACITY_SHARE * (self.per_minute or 0))

    @property
    def _unit_s(self) -> float:
        """How long it takes to fill by one."""
        return (MINUTE_S + LATE_S) / ((self.per_minute or 0) - self._capacity)


@dataclass
class EndpointPace:
    """When one endpoint may be asked. `closed_s`: not before that, as it said itself."""

    provider: str
    calls: Bucket = field(default_factory=Bucket)
    tokens: Bucket = field(default_factory=Bucket)
    closed_s: float = 0.0
    changed: bool = False

    def wait_s(self, reserve: Reserve) -> float:
        """In how long these calls may begin."""
        return max(
            0.0,
            self.closed_s,
            self.calls.wait_s(reserve.calls),
            self.tokens.wait_s(reserve.tokens),
        )

    def take(self, reserve: Reserve, in_s: float) -> None:
        """Let these calls begin in so many seconds."""
        self.calls.take(reserve.calls, in_s)
        self.tokens.take(reserve.tokens, in_s)
        self.changed |= self._is_limited

    def give_back(self, tokens: int) -> None:
        """Count what the calls used, and no longer what they might have used."""
        self.tokens.give_back(tokens)
        self.changed |= self._is_limited

    def close(self, for_s: float) -> None:
        """The endpoint asked to be left alone for so long."""
        if for_s > max(self.closed_s, 0.0):
            self.closed_s = min(for_s, CLOSED_S_MAX)
            self.changed = True

    @property
    def _is_limited(self) -> bool:
        return self.calls.per_minute is not None or self.tokens.per_minute is not None

    def limits(self) -> str:
        """Its limits in words."""
        rates = [(self.calls.per_minute, "calls"), (self.tokens.per_minute, "tokens")]
        words = [f"{most:,} {what} a minute" for most, what in rates if most is not None]
        if self.closed_s > 0:
            words.append(f"its Retry-After of another {self.closed_s:.0f} s")
        return " and ".join(words)
