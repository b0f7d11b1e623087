"""When something is to be done, as people write it: cron, or relative to a session's open or close.

30 16 * * mon-fri      cron's five fields, in the exchange's own time
close+30m, open-1h15m  so long after or before a session opens or closes, on half days too
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

CRON_FIELDS = 5
OFFSET_MAX = timedelta(hours=12)
"""From a session's open or close: further away it would be another day's matter."""

_ANY_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 - cron's own fields have no zone
_AT_SESSION = re.compile(
    r"^(?P<edge>open|close)(?:(?P<sign>[+-])(?=\d)(?:(?P<hours>\d{1,2})h)?(?:(?P<minutes>\d{1,3})m)?)?$"
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields."""

    text: str

    def on(self, day: date, zone: ZoneInfo) -> Iterator[datetime]:
        """Its moments of that day in the zone's time, aware, in order.

        Where a clock is set forward, a moment that the day has not is the next one that it has; one
        that it has twice counts once.
        """
        # cronsim looks for moments after the one it is given.
        before = datetime.combine(day, time(), zone) - timedelta(seconds=1)
        for moment in CronSim(self.text, before):
            if moment.date() > day:
                return
            yield moment


@dataclass(frozen=True, slots=True)
class AtSession:
    """So long after (before: less than zero) a session opens or closes."""

    edge: Literal["open", "close"]
    offset: timedelta


When = Cron | AtSession


def parse(text: str) -> When:
    """Read `text`. Raises ValueError with a sentence that says what is wrong."""
    if match := _AT_SESSION.match(text.strip()):
        offset = timedelta(hours=int(match["hours"] or 0), minutes=int(match["minutes"] or 0))
        if offset > OFFSET_MAX:
            hours = int(OFFSET_MAX / timedelta(hours=1))
            raise ValueError(f"{text!r}: at most {hours} hours from the open or close")
        edge: Literal["open", "close"] = "open" if match["edge"] == "open" else "close"
        return AtSession(edge, -offset if match["sign"] == "-" else offset)
    fields = text.split()
    if len(fields) != CRON_FIELDS:
        raise ValueError(
            f"{text!r} is neither cron's five fields (minute hour day month weekday, such as "
            "'30 16 * * mon-fri') nor relative to a session ('open', 'close+30m', 'close-1h15m')"
        )
    try:
        next(CronSim(text, _ANY_DAY))
    except CronSimError as error:
        why = str(error).removeprefix("Bad ")
        raise ValueError(f"{text!r}: cron's field {why} is not valid") from error
    except StopIteration:
        raise ValueError(f"{text!r}: no day is ever like that") from None
    return Cron(text)
