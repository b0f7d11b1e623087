"""Dates as people and programs write them.

A date is never converted before it is taken: a time-stamped one is the date on the wall clock of
its own zone where every time is the first of its day there. Other times are dates only where the
exchange's hours say so: a moment within a session, or its midnight in the exchange's zone.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Final

import polars as pl

from libs.files.table import FileTable

SessionOf = Callable[[datetime], date | None]
"""From a moment to the session that it belongs to; None where it belongs to none."""

WRITE: Final = "write dates as YYYY-MM-DD"
_PLAIN: Final = {
    r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$": "%Y-%m-%d",
    r"^[1-9][0-9]{3}/[0-9]{2}/[0-9]{2}$": "%Y/%m/%d",
    r"^[1-9][0-9]{7}$": "%Y%m%d",
    r"^[0-9]{2}\.[0-9]{2}\.[1-9][0-9]{3}$": "%d.%m.%Y",
}
"""Forms that leave nothing open: a column of one of them is read at once."""
_TIME: Final = (
    r"(?:[T ](?P<hour>\d{2}):?(?P<minute>\d{2})(?::?(?P<second>\d{2})(?:\.\d+)?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?)?"
)
_NUMBERS: Final = re.compile(
    r"(?P<year>\d{4})(?P<mark>[-/.]?)(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})" + _TIME, re.ASCII
)
_YEAR_LAST: Final = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second_>\d{1,2})(?P=mark)(?P<year>\d{4})" + _TIME,
    re.ASCII,
)
_WORDS: Final = re.compile(
    r"(?:(?P<word>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})"
    r"|(?P<day2>\d{1,2})[ -](?P<word2>[A-Za-z]{3,9})\.?[ -](?P<year2>\d{4}))",
    re.ASCII,
)
_SERIAL: Final = re.compile(r"[2-6]\d{4}(\.0+)?", re.ASCII)
"""The days of 1954 to 2091 as Excel counts them."""
_MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


class NoDate(Exception):
    """The text is no date; the message says why, `remedy` what to do, and `meant` which date it is
    in the other order of day and month."""

    def __init__(self, why: str, meant: date | None = None) -> None:
        super().__init__(why)
        self.meant = meant
        self.remedy = WRITE if meant is None else f"write {meant}"


@dataclass(frozen=True, slots=True)
class DateStamp:
    """A date as it stands, the time beside it, and its distance from UTC where that is said."""

    day: date
    at: time = time()
    zone: timezone | None = None


def dates(
    table: FileTable,
    column: str,
    session_of: SessionOf | None = None,
    *,
    month_first: bool | None = None,
) -> pl.Series:
    """The column as dates, null where empty. Raises BadFile for the first cell that is none.

    `month_first` says how `03/04/2024` is meant where most dates of the column do not say it.
    `session_of` decides about times that are no midnights.
    """
    cells = table.frame[column]
    kind = cells.dtype
    if kind in (pl.Date, pl.Null):
        days = cells.cast(pl.Date)
        odd = ~days.dt.year().is_between(1, 9998)
        if odd.any():
            raise table.fault(odd.fill_null(value=False).arg_max(), "no date", WRITE, column)
        return days
    if isinstance(kind, pl.Datetime):
        return _of_datetimes(table, column, session_of)
    if kind.is_integer():
        cells = cells.cast(pl.String)
    elif kind != pl.String:
        raise table.fault(0, "not a date", WRITE, column)
    for form, written in _PLAIN.items():
        if cells.str.contains(form).all():
            taken = cells.str.to_date(written, strict=False)
            if taken.null_count() == cells.null_count():
                return taken
    texts = cells.drop_nulls().unique(maintain_order=True).to_list()
    # What the dates themselves say counts more than what a vendor does.
    order = month_first_in(table, column)
    month_first = month_first if order is None else order
    by_text = _of_texts(table, column, texts, session_of, month_first)
    return cells.replace_strict(by_text, default=None, return_dtype=pl.Date)


def stamp_of(text: str, *, month_first: bool | None = None) -> DateStamp:
    """The date and time in a text. Raises NoDate."""
    if match := _NUMBERS.fullmatch(text):
        if not match["mark"] and len(match["month"]) + len(match["day"]) != 4:
            raise NoDate("not a date")
        parts = (match["year"], match["month"], match["day"])
    elif match := _YEAR_LAST.fullmatch(text):
        first, second = match["first"], match["second_"]
        if match["mark"] != "." and month_first is None:
            raise NoDate("could be a day and a month or a month and a day")
        is_month_first = match["mark"] != "." and month_first
        month, day = (first, second) if is_month_first else (second, first)
        parts = (match["year"], month, day)
    elif match := _WORDS.fullmatch(text):
        word = (match["word"] or match["word2"]).casefold()
        months = [n for n, name in enumerate(_MONTHS, 1) if name == word or name[:3] == word]
        if not months and word != "sept":
            raise NoDate("not a date")
        day = match["day"] or match["day2"]
        parts = (match["year"] or match["year2"], str(months[0] if months else 9), day)
    elif _SERIAL.fullmatch(text):
        raise NoDate("the number of a day, as Excel counts, and it counts in two ways")
    else:
        raise NoDate("not a date")
    try:
        year, month, day = (int(part) for part in parts)
        if match.re is _YEAR_LAST and month > 12 >= day:
            order = "month" if is_month_first else "day"
            why = f"dates of this file are read {order} first, and there is no month {month}"
            raise NoDate(why, date(year, day, month))
        taken = date(year, month, day)
        if match.re is _WORDS or match["hour"] is None:
            return DateStamp(taken)
        at = time(int(match["hour"]), int(match["minute"]), int(match["second"] or 0))
    except ValueError:
        raise NoDate("no date of the calendar") from None
    return DateStamp(taken, at, _zone(match["zone"]))


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in {"Z", "UTC"}:
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    distance = timedelta(hours=hours, minutes=minutes)
    try:
        return timezone(-distance if text[0] == "-" else distance)
    except ValueError:
        raise NoDate("no time of the world") from None


def _of_texts(
    table: FileTable,
    column: str,
    texts: Sequence[str],
    session_of: SessionOf | None,
    month_first: bool | None,
) -> dict[str, date]:
    def fault(text: str, why: str, remedy: str = WRITE) -> Exception:
        row = int(
            (table.frame[column].cast(pl.String) == text).fill_null(value=False).arg_max() or 0
        )
        return table.fault(row, why, remedy, column)

    stamps: dict[str, DateStamp] = {}
    for text in texts:
        try:
            stamps[text] = stamp_of(text, month_first=month_first)
        except NoDate as error:
            raise fault(text, str(error), error.remedy) from None
    if all(stamp.at == time() for stamp in stamps.values()):
        return {text: stamp.day for text, stamp in stamps.items()}
    taken = {}
    for text, stamp in stamps.items():
        moment = datetime.combine(stamp.day, stamp.at, stamp.zone or UTC)
        day = None if stamp.zone is None or session_of is None else session_of(moment)
        if day is None:
            raise fault(text, _no_session(has_zone=stamp.zone is not None))
        taken[text] = day
    return taken


def months_first(texts: Iterable[str] | Mapping[str, int]) -> bool | None:
    """Whether months come first in most dates like 03/15/2024; None where these texts, each as
    often as it stands there, do not say."""
    votes = 0
    for text, count in Counter(texts).items():
        if match := _YEAR_LAST.fullmatch(text):
            votes += count * ((int(match["second_"]) > 12) - (int(match["first"]) > 12))
    return votes > 0 if votes else None


def month_first_in(table: FileTable, column: str) -> bool | None:
    """Whether months come first in most dates of a column, as its file has it."""
    cells = (table.frame if table.whole is None else table.whole)[column]
    if cells.dtype != pl.String:
        return None
    return months_first(dict(cells.drop_nulls().value_counts().iter_rows()))


def year_last(texts: Iterable[str]) -> str:
    """The first date like 03/04/2024, which is read by the order of day and month; "" for none."""
    matches = (_YEAR_LAST.fullmatch(text) for text in texts)
    return next((match[0] for match in matches if match and match["mark"] != "."), "")


def _of_datetimes(table: FileTable, column: str, session_of: SessionOf | None) -> pl.Series:
    cells = table.frame[column].dt.cast_time_unit("us")
    zone = cells.dtype.time_zone if isinstance(cells.dtype, pl.Datetime) else None
    # The first moment of a day: in some zones there is a day a year without midnight.
    before = cells.dt.offset_by("-1us")
    days = cells.dt.date()
    is_first = (before.dt.date() != days) | cells.is_null()
    if is_first.all():
        return days
    moments = cells.to_list()
    taken: list[date | None] = []
    for row, moment in enumerate(moments):
        day = None if zone is None or session_of is None or moment is None else session_of(moment)
        if day is None and moment is not None:
            raise table.fault(row, _no_session(has_zone=zone is not None), WRITE, column)
        taken.append(day)
    return pl.Series(column, taken, dtype=pl.Date)


def _no_session(*, has_zone: bool) -> str:
    if has_zone:
        return "a time that is no midnight and lies in no session of the exchange"
    return "a time without a zone where a date is asked for"
