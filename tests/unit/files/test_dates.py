"""Dates as people and programs write them; a date is taken, never converted."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from libs.files.dates import dates
from libs.files.finding import BadFile
from libs.files.table import FileTable
from libs.market.calendar import exchange_calendar
from libs.market.replay.files import read_bars

DAY = date(2024, 3, 4)


def of(*texts: str) -> FileTable:
    return FileTable(Path("a.csv"), pl.DataFrame({"date": texts}), b"date\n" + b"x\n" * len(texts))


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-04",
        "2024/03/04",
        "2024-3-4",
        "20240304",
        "20240304 00:00",
        "2024-03-04 00:00:00-05:00",
        "2024-03-04T00:00:00+01:00",
        "2024-03-04T00:00:00Z",
        "2024-03-04 00:00:00",
        "04.03.2024",
        "4.3.2024",
        "Mar 4, 2024",
        "March 4 2024",
        "4 Mar 2024",
        "04-Mar-2024",
    ],
)
def test_a_date_is_read_as_it_stands(text: str) -> None:
    assert dates(of(text), "date").to_list() == [DAY]


def test_the_column_says_whether_months_come_first() -> None:
    assert dates(of("03/04/2024", "03/15/2024"), "date")[0] == DAY
    assert dates(of("04/03/2024", "15/03/2024"), "date")[0] == DAY
    assert dates(of("03/04/2024"), "date", month_first=True)[0] == DAY
    with pytest.raises(BadFile, match="could be a day and a month or a month and a day"):
        dates(of("03/04/2024"), "date")
    with pytest.raises(BadFile, match="could be"):
        dates(of("15/03/2024", "03/15/2024"), "date")


@pytest.mark.parametrize(
    ("texts", "line", "odd"),
    [
        (("03/04/2024", "03/15/2024", "03/18/2024", "19/03/2024"), 5, "19/03/2024"),
        (("04/03/2024", "03/15/2024", "18/03/2024", "19/03/2024"), 3, "03/15/2024"),
        (("03/15/2024", "18/03/2024", "18/03/2024"), 2, "03/15/2024"),
        (("04-03-2024", "03-15-2024", "18-03-2024", "19-03-2024"), 3, "03-15-2024"),
    ],
)
def test_a_date_in_another_order_than_most_is_named_with_what_would_be_right(
    texts: Sequence[str], line: int, odd: str
) -> None:
    with pytest.raises(BadFile) as caught:
        dates(of(*texts), "date")
    finding = caught.value.finding
    assert (finding.line, finding.column, finding.value) == (line, "date", odd)
    right = "2024-03-19" if line == 5 else "2024-03-15"
    assert finding.remedy == f"write {right}"
    assert "dates of this file are read" in finding.what


@pytest.mark.parametrize("text", ["2024-02-30", "13/13/2024", "soon", "2024-W10-1", "03/04/24"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(BadFile, match=r"a\.csv, line 2: date is"):
        dates(of(text), "date")


def test_a_time_that_is_no_midnight_needs_a_zone_and_a_session() -> None:
    with pytest.raises(BadFile, match="without a zone"):
        dates(of("2024-03-04 16:00:00"), "date")
    with pytest.raises(BadFile, match="lies in no session"):
        dates(of("2024-03-04T16:00:00Z"), "date")


def bars(path: Path, stamps: pl.Series) -> Path:
    price = [10.0] * len(stamps)
    columns = dict.fromkeys(("open", "high", "low", "close", "volume"), price)
    pl.DataFrame({"date": stamps, **columns}).write_parquet(path)
    return path


def moments(first: datetime, zone: str | None) -> pl.Series:
    rows = [first + timedelta(days=n) for n in range(4)]
    naive = pl.Series("date", [row.replace(tzinfo=None) for row in rows])
    return naive if zone is None else naive.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


@pytest.mark.parametrize(
    ("first", "zone"),
    [
        (datetime(2024, 3, 3, 23, tzinfo=UTC), "Europe/Berlin"),
        (datetime(2024, 3, 3, 16, tzinfo=UTC), "Asia/Hong_Kong"),
        (datetime(2024, 3, 4, 5, tzinfo=UTC), "America/New_York"),
        (datetime(2024, 3, 4, tzinfo=UTC), "UTC"),
        (datetime(2024, 3, 4, tzinfo=UTC), None),
        (datetime(2024, 3, 4, 21, tzinfo=UTC), "UTC"),  # New York's close
        (datetime(2024, 3, 4, 5, tzinfo=UTC), "UTC"),  # midnight in New York
    ],
)
def test_midnights_and_moments_of_sessions_are_dates(
    tmp_path: Path, first: datetime, zone: str | None
) -> None:
    path = bars(tmp_path / "A.parquet", moments(first, zone))
    frame = read_bars(path, exchange_calendar())
    assert frame["date"].to_list() == [DAY + timedelta(days=n) for n in range(4)]


def test_other_times_are_refused(tmp_path: Path) -> None:
    path = bars(tmp_path / "A.parquet", moments(datetime(2024, 3, 4, 23, tzinfo=UTC), "UTC"))
    with pytest.raises(BadFile, match=r"row 1: date is .* lies in no session"):
        read_bars(path, exchange_calendar())
