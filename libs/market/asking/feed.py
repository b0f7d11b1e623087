"""What the feeds of live sources have in common: their questions, and what was known when.

One feed a process and source, since its questions share pace, breaker and memory.
"""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import TypeVar

import polars as pl

from libs.market.asking.questions import SourceQuestions
from libs.market.calendar import ExchangeCalendar, exchange_calendar
from libs.market.errors import BadVendorData, NothingTraded
from libs.market.source import require_session

HISTORY_DAYS = 1_100
"""Days of prices before as_of that are asked for at once: three years."""

T = TypeVar("T")


class SourceFeed:
    """The questions to a source of that `name`, about New York's sessions. A session can be asked
    about from `settled_after` its close."""

    def __init__(self, name: str, questions: SourceQuestions, settled_after: timedelta) -> None:
        self.name = name
        self.now = questions.timing.now
        self.calendar: ExchangeCalendar = exchange_calendar()
        self._questions = questions
        self.settled_after = settled_after

    def close(self) -> None:
        """Let go of threads and connections; ask nothing afterwards."""
        self._questions.close()

    def resting_s(self) -> float | None:
        """The seconds for which the source is left alone after a rate limit or faults, if it is."""
        return self._questions.resting_s()

    def settled(self) -> date:
        """The newest session that can be asked about."""
        return self.calendar.last_closed(self.now() - self.settled_after)

    def require_settled(self, as_of: date) -> None:
        """Raise NotASession, and NothingTraded where as_of cannot be asked about yet."""
        require_session(self.calendar, as_of)
        if as_of > self.settled():
            since = self.calendar.close(as_of) + self.settled_after
            raise NothingTraded(
                f"{as_of} cannot be read in source {self.name} before {since.isoformat()}; use "
                f"{self.settled()} or an earlier session"
            )

    def night_of(self, seen_at: datetime) -> date | None:
        """The session whose close undated things seen at `seen_at` count for; None in trading."""
        session = self.calendar.last_closed(seen_at)
        is_open = seen_at >= self.calendar.open(self.calendar.next_session(session))
        return None if is_open else session


def shaped(what: str, shape: Callable[[], T]) -> T:
    """Apply `shape` to an answer. Raises BadVendorData where the answer has another shape."""
    try:
        return shape()
    except (KeyError, TypeError, AttributeError, ValueError, pl.exceptions.PolarsError) as error:
        why = f"{type(error).__name__} {str(error)[:80]}"
        raise BadVendorData(what, why, "Deskbus") from error
