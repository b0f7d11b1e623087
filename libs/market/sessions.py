"""The sessions that a source can be asked about, and what is wrong with a date that is none."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date

from libs.market.calendar import DayKind, ExchangeCalendar
from libs.market.errors import NotASession, OutsideData

LatestSession = Callable[[], Awaitable[date]]
"""Gives the newest session of a source."""


@dataclass(frozen=True, slots=True)
class SessionSpan:
    """The first and the last session of a source; `first` None where nobody knows how far back."""

    first: date | None
    last: date


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of one source. `span` may read all of recorded data at the first question."""

    source: str
    calendar: ExchangeCalendar
    span: Callable[[], Awaitable[SessionSpan]]

    async def latest(self) -> date:
        """The newest session: what a request without a date means."""
        return (await self.span()).last

    async def require(self, day: date) -> None:
        """Raise OutsideData or NotASession, each with the nearest session that can be asked."""
        span = await self.span()
        if day > span.last:
            raise OutsideData(day, self.source, span.first, span.last, span.last)
        if span.first is not None and day < span.first:
            raise OutsideData(day, self.source, span.first, span.last, span.first)
        kind = self.calendar.kind(day)
        if kind is DayKind.OUTSIDE:
            raise OutsideData(day, self.source, self.calendar.first, span.last, span.last)
        if kind is not DayKind.SESSION:
            before, after = self.calendar.previous_session(day), self.calendar.next_session(day)
            raise NotASession(day, kind.value, self.calendar.exchange, before, after)
