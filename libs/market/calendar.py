"""Exchange sessions: which days trade, and when a session opens and closes.

A date means that session's close. The New York calendar is read from `xnys.csv`, because importing
exchange_calendars costs about 3 s and 45 MB (it pulls in pandas); other exchanges and years outside
the table are computed by exchange_calendars when they are asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

from libs.market.errors import MarketError, UnknownExchange

DEFAULT_EXCHANGE = "XNYS"
TABLE_PATH = Path(__file__).with_name("xnys.csv")
TABLE_FIRST = date(1990, 1, 1)
TABLE_LAST = date(2030, 12, 31)
CALENDARS_CACHED_MAX = 8

_ONE_DAY = timedelta(days=1)


class DayKind(StrEnum):
    """The kind of a date at an exchange."""

    SESSION = "session"
    WEEKEND = "weekend"
    HOLIDAY = "holiday"
    OUTSIDE = "outside the calendar"


class OutsideCalendar(MarketError):
    """A date before or after the years that a calendar covers."""

    code = "outside_calendar"

    def __init__(self, exchange: str, day: date, first: date, last: date) -> None:
        super().__init__(
            f"{day} lies outside the {exchange} calendar ({first} to {last}); use a date inside it"
        )


@dataclass(frozen=True, slots=True)
class ExchangeCalendar:
    """The sessions of one exchange between `first` and `last`, both included.

    `closed` holds the weekdays without a session, `early_close` the local closing time of the
    sessions that end before `closes_at`.
    """

    exchange: str
    zone: ZoneInfo
    first: date
    last: date
    closed: frozenset[date]
    early_close: Mapping[date, time]
    opens_at: time = time(9, 30)
    closes_at: time = time(16, 0)

    def kind(self, day: date) -> DayKind:
        """Say what `day` is; never raises."""
        if not self.first <= day <= self.last:
            return DayKind.OUTSIDE
        if day.weekday() >= 5:
            return DayKind.WEEKEND
        return DayKind.HOLIDAY if day in self.closed else DayKind.SESSION

    def is_session(self, day: date) -> bool:
        """True where the exchange trades on `day`."""
        return self.kind(day) is DayKind.SESSION

    def next_session(self, day: date) -> date:
        """The first session after `day`; OutsideCalendar at the end of the calendar."""
        return self._step(day, _ONE_DAY)

    def previous_session(self, day: date) -> date:
        """The last session before `day`; OutsideCalendar at the start of the calendar."""
        return self._step(day, -_ONE_DAY)

    def session_on_or_after(self, day: date) -> date:
        """`day` where it is a session, else the next one."""
        return self.next_session(day - _ONE_DAY)

    def session_on_or_before(self, day: date) -> date:
        """`day` where it is a session, else the one before."""
        return self.previous_session(day + _ONE_DAY)

    def sessions(self, first: date, last: date) -> tuple[date, ...]:
        """All sessions from `first` to `last`, both included."""
        days = (first + timedelta(days=n) for n in range((last - first).days + 1))
        return tuple(day for day in days if self.is_session(day))

    def close(self, session: date) -> datetime:
        """The moment `session` closes, in UTC; OutsideCalendar where it is not a session."""
        return self._at(session, self.early_close.get(session, self.closes_at))

    def open(self, session: date) -> datetime:
        """The moment `session` opens, in UTC; OutsideCalendar where it is not a session."""
        return self._at(session, self.opens_at)

    def last_closed(self, moment: datetime) -> date:
        """The newest session that has closed at `moment` (aware)."""
        day = self.session_on_or_before(moment.astimezone(self.zone).date())
        return day if self.close(day) <= moment else self.previous_session(day)

    def _step(self, day: date, step: timedelta) -> date:
        session = day + step
        while not self.is_session(session):
            if self.kind(session) is DayKind.OUTSIDE:
                raise OutsideCalendar(self.exchange, session, self.first, self.last)
            session += step
        return session

    def _at(self, session: date, local: time) -> datetime:
        if not self.is_session(session):
            raise OutsideCalendar(self.exchange, session, self.first, self.last)
        return datetime.combine(session, local, tzinfo=self.zone).astimezone(UTC)


@lru_cache(maxsize=CALENDARS_CACHED_MAX)
def exchange_calendar(
    exchange: str = DEFAULT_EXCHANGE, first: date = TABLE_FIRST, last: date = TABLE_LAST
) -> ExchangeCalendar:
    """The calendar of `exchange` (an ISO 10383 code such as XNYS) that covers `first` to `last`."""
    if exchange == DEFAULT_EXCHANGE and first >= TABLE_FIRST and last <= TABLE_LAST:
        return _from_table()
    return computed_calendar(exchange, first, last)


@lru_cache(maxsize=1)
def _from_table() -> ExchangeCalendar:
    closed: set[date] = set()
    early: dict[date, time] = {}
    for line in TABLE_PATH.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        day, closes = line.split(",")
        if closes == "closed":
            closed.add(date.fromisoformat(day))
        else:
            early[date.fromisoformat(day)] = time.fromisoformat(closes)
    zone = ZoneInfo("America/New_York")
    return ExchangeCalendar(
        DEFAULT_EXCHANGE, zone, TABLE_FIRST, TABLE_LAST, frozenset(closed), early
    )


def computed_calendar(exchange: str, first: date, last: date) -> ExchangeCalendar:
    """The same calendar computed by exchange_calendars: slow to import, any exchange, any year.

    UnknownExchange where exchange_calendars does not know the code or those years of it.
    """
    import exchange_calendars  # noqa: PLC0415 - pulls in pandas: 3 s and 45 MB, rarely needed

    try:
        source = exchange_calendars.get_calendar(
            exchange, start=first.isoformat(), end=last.isoformat()
        )
    except (exchange_calendars.errors.CalendarError, ValueError) as error:
        raise UnknownExchange(exchange, str(error)[:160]) from error
    zone = ZoneInfo(str(source.tz))
    closes = {
        day.date(): moment.tz_convert(str(zone)).time() for day, moment in source.closes.items()
    }
    usual_close = source.close_times[-1][1]
    return ExchangeCalendar(
        exchange=exchange,
        zone=zone,
        first=first,
        last=last,
        closed=frozenset(_weekdays(first, last) - closes.keys()),
        early_close={day: at for day, at in closes.items() if at != usual_close},
        opens_at=source.open_times[-1][1],
        closes_at=usual_close,
    )


def _weekdays(first: date, last: date) -> set[date]:
    days = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return {day for day in days if day.weekday() < 5}


def table_lines(calendar: ExchangeCalendar) -> list[str]:
    """The lines of `xnys.csv` for a computed calendar: how the table is made and checked."""
    closed = dict.fromkeys(calendar.closed, "closed")
    early = {day: at.isoformat("minutes") for day, at in calendar.early_close.items()}
    return [f"{day.isoformat()},{what}" for day, what in sorted({**closed, **early}.items())]
