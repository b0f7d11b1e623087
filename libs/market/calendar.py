"""Exchange sessions: which days trade, and when a session opens and closes.

A date means that session's close. The New York calendar is read from `xnys.csv`, because importing
exchange_calendars costs about 3 s and 45 MB (it pulls in pandas); other exchanges and years outside
the table are computed by exchange_calendars when they are asked for.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from libs.market.errors import MarketError, UnknownExchange

DEFAULT_EXCHANGE = "XNYS"
TABLE_PATH = Path(__file__).with_name("xnys.csv")
TABLE_FIRST = date(1990, 1, 1)
TABLE_LAST = date(2030, 12, 31)
CALENDARS_CACHED_MAX = 8
SAME_SESSIONS = {"XSHE": "XSHG", "XNSE": "XBOM", "XKOS": "XKRX", "ROCO": "XTAI"}
"""Exchanges that exchange_calendars does not name, and one with the same sessions."""

SATURDAY_AND_SUNDAY = frozenset({5, 6})
WITHOUT_CLOSE = frozenset({"24/5", "24/7"})
"""Calendars of markets that never close, under any of their names."""

_ONE_DAY = timedelta(days=1)


class DayKind(StrEnum):
    """The kind of a date at an exchange."""

    SESSION = "session"
    WEEKEND = "weekend"
    HOLIDAY = "holiday"
    OUTSIDE = "outside the calendar"


class OutsideCalendar(MarketError):
    """The date is outside the years of the calendar."""

    code = "outside_calendar"

    def __init__(self, exchange: str, day: date, first: date, last: date) -> None:
        super().__init__(
            f"{day} lies outside the {exchange} calendar ({first} to {last}); use a date inside it"
        )


@dataclass(frozen=True, slots=True)
class ExchangeCalendar:
    """The sessions of one exchange between `first` and `last`, both included.

    `weekend` are the days of the week without sessions (Monday is 0), `closed` other days without,
    and `extra` sessions at a weekend. `early_close` and `other_open` hold the local times of the
    sessions that do not close at `closes_at` or open at `opens_at`. Breaks for lunch are no part of
    it: prices are daily. `opens_days` is -1 where a session opens the evening before.
    """

    exchange: str
    zone: ZoneInfo
    first: date
    last: date
    closed: frozenset[date]
    early_close: Mapping[date, time]
    opens_at: time = time(9, 30)
    closes_at: time = time(16, 0)
    weekend: frozenset[int] = SATURDAY_AND_SUNDAY
    extra: frozenset[date] = frozenset()
    other_open: Mapping[date, time] = field(default_factory=dict)
    opens_days: int = 0

    def kind(self, day: date) -> DayKind:
        """Say what `day` is; never raises."""
        if not self.first <= day <= self.last:
            return DayKind.OUTSIDE
        if day.weekday() in self.weekend and day not in self.extra:
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
        opens_at = self.other_open.get(session, self.opens_at)
        return self._at(session, opens_at) + self.opens_days * _ONE_DAY

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
    """The calendar of `exchange` (an ISO 10383 code such as XNYS) from `first` to `last`, or from
    the first and to the last year that it is known for. Raises UnknownExchange."""
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

    It begins later than `first` and ends before `last` where the exchange's sessions are not known
    for so long. UnknownExchange where the code is unknown or its market never closes.
    """
    import exchange_calendars as known  # noqa: PLC0415 - pulls in pandas: 3 s and 45 MB, rarely needed

    try:
        name = known.resolve_alias(SAME_SESSIONS.get(exchange, exchange))
        if name in WITHOUT_CLOSE:
            raise UnknownExchange(exchange, "it never closes, and a decision is of a close")
        kind = type(known.get_calendar(name))
        first = max(first, _day(kind.bound_min()) or first)
        last = min(last, _day(kind.bound_max()) or last)
        source = known.get_calendar(name, start=first.isoformat(), end=last.isoformat())
    except (known.errors.CalendarError, LookupError, ValueError, NotImplementedError) as error:
        raise UnknownExchange(exchange, _brief(error)) from error
    zone = ZoneInfo(str(source.tz))
    closes, opens = _local(source.closes, zone), _local(source.opens, zone)
    (usual_close, _), (usual_open, _) = (
        Counter(times.values()).most_common(1)[0] for times in (closes, opens)
    )
    weekend = frozenset(n for n, trades in enumerate(source.weekmask) if trades == "0")
    days = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return ExchangeCalendar(
        exchange=exchange,
        zone=zone,
        first=first,
        last=last,
        closed=frozenset(d for d in days if d.weekday() not in weekend and d not in closes),
        early_close={day: at for day, at in closes.items() if at != usual_close},
        opens_at=usual_open,
        closes_at=usual_close,
        weekend=weekend,
        extra=frozenset(day for day in closes if day.weekday() in weekend),
        other_open={day: at for day, at in opens.items() if at != usual_open},
        opens_days=source.open_offset,
    )


def _local(moments: Any, zone: ZoneInfo) -> Mapping[date, time]:
    """The local times of a pandas series of UTC moments by session."""
    return dict(zip(moments.index.date, moments.dt.tz_convert(str(zone)).dt.time, strict=True))


def _day(moment: Any) -> date | None:
    return None if moment is None else date(moment.year, moment.month, moment.day)


def _brief(error: Exception) -> str:
    """An error's beginning: some list every day."""
    return str(error).partition("[")[0].strip()[:160] or type(error).__name__


def table_lines(calendar: ExchangeCalendar) -> list[str]:
    """The lines of `xnys.csv` for a computed calendar: how the table is made and checked."""
    closed = dict.fromkeys(calendar.closed, "closed")
    early = {day: at.isoformat("minutes") for day, at in calendar.early_close.items()}
    return [f"{day.isoformat()},{what}" for day, what in sorted({**closed, **early}.items())]
