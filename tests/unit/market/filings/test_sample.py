"""The figures that come with the desk: what each ticker's answer is, and where the holes are."""

import csv
import shutil
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libs.market.calendar import exchange_calendar
from libs.market.errors import BadReplayData
from libs.market.facts import dated_events
from libs.market.replay.layout import SAMPLE_DIR
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.market.source import Fundamentals

LAST = date(2010, 5, 6)
"""The session after the newest filing."""


async def figures(market: ReplayMarket, ticker: str, as_of: date) -> Fundamentals:
    found = await market.fundamentals(ticker, as_of)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("as_of", "eps"),
    [
        (date(2009, 10, 28), 6.29),
        (date(2009, 12, 31), 6.29),
        (date(2010, 1, 25), 6.29),
        (date(2010, 1, 26), 9.08),
        (LAST, 9.08),
    ],
)
async def test_apples_fiscal_2009_is_restated_on_the_day_after_its_filing(
    bundled: ReplayMarket, as_of: date, eps: float
) -> None:
    found = await figures(bundled, "AAPL", as_of)
    assert found.eps_fiscal_year == eps
    assert (await bundled.fundamentals("AAPL", date(2009, 10, 27))).eps_fiscal_year is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("ticker", "eps_ttm", "margin", "growth"),
    [
        ("AAPL", 9.08 + 7.00 - 4.29, 21.15, 66.5),
        ("GOOG", 20.41 + 6.06 - 4.49, 28.30, 37.4),
        # Its filings state no profit here: growth is that of earnings per share.
        ("IBM", 10.01 + 1.97 - 1.70, None, 15.9),
        # Its year is not in the sample.
        ("MSFT", None, None, 23.6),
    ],
)
async def test_the_trailing_years_after_the_newest_filing(
    bundled: ReplayMarket,
    ticker: str,
    eps_ttm: float | None,
    margin: float | None,
    growth: float,
) -> None:
    found = await figures(bundled, ticker, LAST)
    assert found.eps_ttm == pytest.approx(eps_ttm)
    assert found.profit_margin_pct == pytest.approx(margin, abs=0.01)
    assert found.profit_growth_pct == pytest.approx(growth, abs=0.1)
    assert ("eps_ttm" in found.absent) == (eps_ttm is None)


async def test_what_the_sample_lacks_is_told(bundled: ReplayMarket) -> None:
    found = await figures(bundled, "MSFT", LAST)
    assert found.absent["eps_ttm"].startswith(
        "no trailing year: no earnings per share for the year"
    )
    assert found.notes == (
        "the 10-Q on the period to 2009-09-30, due by 2009-11-16, is not here",
        "the 10-K on the period to 2009-06-30, due by 2009-09-28, is not here",
        "the 10-Q on the period to 2009-03-31, due by 2009-05-15, is not here",
        "the newest known filing is the 10-Q of 2010-04-22, 14 days old",
    )


async def test_before_the_sample_nothing_is_known_and_long_after_it_all_is_old(
    bundled: ReplayMarket,
) -> None:
    assert await bundled.fundamentals("IBM", date(2009, 7, 27)) is None
    assert await bundled.filings("IBM", date(2009, 7, 27)) == ()
    assert await bundled.fundamentals("FB", date(2012, 6, 29)) is None
    found = await figures(bundled, "IBM", date(2012, 6, 29))
    assert (found.eps_ttm, found.eps_fiscal_year) == (None, 10.01)
    assert found.notes[0] == "the newest known period ended 2010-03-31, 821 days ago"
    assert found.notes[-1] == "the newest known filing is the 10-Q of 2010-04-27, 794 days old"


async def test_filings_are_dated_events(bundled: ReplayMarket) -> None:
    events = await dated_events(bundled, "AAPL", date(2010, 1, 26))
    assert {event.line for event in events} == {
        "filing of 2010-01-25: 10-K/A: amended annual report on the period to 2009-09-30",
        "filing of 2010-01-25: 10-Q: quarterly report on the period to 2009-12-31",
    }
    assert await dated_events(bundled, "AAPL", date(2010, 1, 25)) == ()


def rows(name: str) -> list[dict[str, str]]:
    with (SAMPLE_DIR / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def written(path: Path, table: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of one ticker's prices with the sample's files."""
    folder = tmp_path_factory.mktemp("own")
    days = exchange_calendar().sessions(date(2009, 7, 1), date(2010, 6, 30))
    bars = [
        dict.fromkeys(("open", "high", "low", "close"), "200") | {"date": str(day), "volume": "1"}
        for day in days
    ]
    written(folder / "AAPL.csv", bars)
    for name in ("filings.csv", "reported.csv"):
        shutil.copy(SAMPLE_DIR / name, folder)
    return folder


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(
    as_of=st.dates(date(2009, 7, 20), date(2010, 6, 20)).map(
        exchange_calendar().session_on_or_before
    )
)
async def test_the_same_is_answered_where_later_filings_do_not_exist(
    own: Path, tmp_path_factory: pytest.TempPathFactory, as_of: date
) -> None:
    full = ReplayMarket(ReplayStore(own))
    known = {filing.accession for filing in await full.filings("AAPL", as_of)}
    cut = tmp_path_factory.mktemp("cut")
    shutil.copy(own / "AAPL.csv", cut)
    for name in ("filings.csv", "reported.csv"):
        table = rows(name)
        kept = [row for row in table if row["accession"] in known]
        written(cut / name, kept) if kept else (cut / name).write_text(",".join(table[0]) + "\n")
    then = ReplayMarket(ReplayStore(cut))
    assert await then.fundamentals("AAPL", as_of) == await full.fundamentals("AAPL", as_of)
    assert await then.filings("AAPL", as_of) == await full.filings("AAPL", as_of)


FILED = {
    "ticker": "AAPL",
    "accession": "0000000001-10-000001",
    "form": "10-Q",
    "filed": "2010-01-25",
    "period_end": "2009-12-31",
    "known_at": "",
}
FACT = {
    "ticker": "AAPL",
    "accession": FILED["accession"],
    "concept": "EarningsPerShareDiluted",
    "period_end": "2009-12-31",
    "quarters": "1",
    "unit": "USD/shares",
    "value": "3.67",
}


def directory(own: Path, folder: Path, filed: list[Any] | None, facts: list[Any]) -> ReplayMarket:
    shutil.copy(own / "AAPL.csv", folder)
    if filed is not None:
        written(folder / "filings.csv", filed)
    if facts:
        written(folder / "reported.csv", facts)
    return ReplayMarket(ReplayStore(folder))


async def test_a_filing_without_a_time_is_known_at_the_close_of_the_session_after(
    own: Path, tmp_path: Path
) -> None:
    market = directory(own, tmp_path, [FILED], [FACT])
    assert await market.fundamentals("AAPL", date(2010, 1, 25)) is None
    assert (await figures(market, "AAPL", date(2010, 1, 26))).filed == date(2010, 1, 25)


async def test_where_both_files_have_figures_those_of_filings_count(
    own: Path, tmp_path: Path
) -> None:
    table = [
        {"ticker": "AAPL", "period_end": "2009-12-31", "known_at": "2010-01-04", "eps_ttm": "1"}
    ]
    written(tmp_path / "fundamentals.csv", table)
    market = directory(own, tmp_path, [FILED], [FACT])
    assert (await figures(market, "AAPL", date(2010, 1, 25))).eps_ttm == 1
    assert (await figures(market, "AAPL", date(2010, 1, 26))).eps_ttm is None


@pytest.mark.parametrize(
    ("filed", "fact", "what"),
    [
        ({"filed": "soon"}, {}, "line 2: filed is 'soon': not a date"),
        ({"period_end": "2010-03-31"}, {}, "line 2: it was filed before its period ended"),
        ({"known_at": "2010-01-24"}, {}, "line 2: the filing is known before it was filed"),
        ({}, {"quarters": "5"}, "line 2: quarters must be"),
        ({}, {"unit": "dollars"}, "line 2: unit must be a currency"),
        ({}, {"value": "much"}, "line 2: value is 'much': not a number"),
        ({}, {"accession": "other"}, "1 figures of filings that filings.csv does not have"),
        (None, {}, "no filings.csv in the same folder"),
    ],
)
async def test_a_bad_row_refuses_the_file_and_says_what_to_do(
    own: Path,
    tmp_path: Path,
    filed: Mapping[str, str] | None,
    fact: Mapping[str, str],
    what: str,
) -> None:
    told = None if filed is None else [FILED | filed]
    market = directory(own, tmp_path, told, [FACT | fact])
    with pytest.raises(BadReplayData, match=what):
        await market.fundamentals("AAPL", date(2010, 2, 1))


async def test_a_filing_that_comes_twice_is_refused(own: Path, tmp_path: Path) -> None:
    market = directory(own, tmp_path, [FILED, FILED], [])
    with pytest.raises(BadReplayData, match="the filing appears twice"):
        await market.filings("AAPL", date(2010, 2, 1))


def test_every_known_at_of_the_sample_is_its_acceptance() -> None:
    times = [row["known_at"] for row in rows("filings.csv")]
    assert times.count("") == 1
    assert all(datetime.fromisoformat(text).utcoffset() for text in times if text)
    assert len(times) == 13
