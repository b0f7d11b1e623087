"""EDGAR's JSON as rows: every vintage by its filing, periods by their length."""

from datetime import UTC, date, datetime

import pytest

from libs.market.calendar import exchange_calendar
from libs.market.edgar.shapes import ciks_of, filings_of, older_of, reported_of
from libs.market.filings.reported import Filing, ReportedFact
from tests.fakes.edgar_live import AMENDED, CONCEPTS, FIRST, apple
from tests.fakes.edgar_server import Company, columns, row

REVENUE = "SalesRevenueNet"
SINCE = date(2000, 1, 1)
ACCESSION = "0000000000-10-000001"


def filings(company: Company) -> tuple[Filing, ...]:
    table = company.submissions()["filings"]["recent"]
    return filings_of("AAPL", [table], SINCE)


def facts(company: Company) -> tuple[ReportedFact, ...]:
    return reported_of("AAPL", {"facts": company.facts}, CONCEPTS)


def stated(start: str | None, end: str, filed: str = "2010-12-31") -> list[int]:
    company = Company(1, ["X"])
    company.states(REVENUE, 1, ACCESSION, end=end, filed=filed, start=start)
    return [fact.quarters for fact in facts(company)]


def test_every_vintage_stays_with_its_filing_whatever_frame_says() -> None:
    assert {(f.accession, f.value) for f in facts(apple())} == {(FIRST, 6.29), (AMENDED, 9.08)}


def test_a_filing_has_form_day_period_items_and_when_it_may_be_known() -> None:
    eight, first, amended = filings(apple())
    assert (eight.form, eight.items, eight.period_end) == ("8-K", ("2.02", "9.01"), None)
    assert (first.form, first.filed, first.items) == ("10-K", date(2009, 10, 27), ())
    assert first.period_end == date(2009, 9, 26)
    assert amended.form == "10-K/A"
    assert amended.known_at == datetime(2010, 1, 25, 21, 26, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end", "quarters"),
    [
        (None, "2010-03-31", [0]),
        ("2010-01-01", "2010-03-31", [1]),
        ("2009-12-27", "2010-03-20", [1]),  # 12 weeks
        ("2009-09-27", "2010-01-02", [1]),  # 14 weeks
        ("2010-01-01", "2010-06-30", [2]),
        ("2009-12-27", "2010-06-12", [2]),  # 24 weeks
        ("2009-09-27", "2010-06-26", [3]),
        ("2009-01-01", "2009-12-31", [4]),
        ("2005-09-25", "2006-09-30", [4]),  # 53 weeks
        ("2010-01-01", "2010-01-31", []),
        ("2010-01-31", "2010-05-22", [1]),  # 16 weeks: others of the year have 12
        ("2010-01-01", "2010-04-30", []),  # four months
        ("2008-01-01", "2009-12-31", []),
        ("2010-03-31", "2010-01-01", []),
    ],
)
def test_a_period_counts_as_the_quarters_that_it_is_long(
    start: str | None, end: str, quarters: list[int]
) -> None:
    assert stated(start, end) == quarters


def test_a_period_that_ends_after_its_filing_is_a_slip_and_left_out() -> None:
    assert stated(None, "2034-03-05", filed="2010-05-01") == []


def test_a_figure_that_a_filing_states_twice_is_one_and_two_numbers_are_two() -> None:
    company = Company(1, ["X"])
    shares = {"end": "2010-03-31", "filed": "2010-05-01", "unit": "shares"}
    for value in (900, 400):  # of two share classes, on one cover page
        company.states("CommonStockSharesOutstanding", value, ACCESSION, **shares)
    company.states(REVENUE, 5, ACCESSION, "2010-03-31", "2010-05-01")
    company.states(REVENUE, 5, ACCESSION, "2010-03-31", "2010-05-01", frame="CY2010Q1I")
    assert [fact.value for fact in facts(company)] == [400.0, 900.0, 5.0]


def test_the_date_of_an_event_is_no_period_and_no_period_ends_after_its_filing() -> None:
    rows = [
        row("0000000000-10-000001", "8-K", "2010-03-01", "", report="2010-02-26"),
        row("0000000000-10-000002", "10-Q", "2010-05-03", "", report="2010-06-30"),
        row("0000000000-10-000003", "10-Q", "2010-08-02", "", report="2010-06-30"),
    ]
    ends = [filing.period_end for filing in filings_of("X", [columns(rows)], SINCE)]
    assert ends == [None, None, date(2010, 6, 30)]


def test_a_filing_is_never_known_before_the_day_that_it_is_dated() -> None:
    rows = [row(ACCESSION, "10-Q", "2010-05-05", "2010-05-03T20:30:00.000Z")]
    (filing,) = filings_of("X", [columns(rows)], SINCE)
    assert filing.known_at == datetime(2010, 5, 5, 10, 0, tzinfo=UTC)


def test_other_units_concepts_and_taxonomies_are_left_out() -> None:
    company = Company(1, ["X"])
    company.states(REVENUE, 1, ACCESSION, "2010-03-31", "2010-05-01", unit="pure")
    company.states("Goodwill", 1, ACCESSION, "2010-03-31", "2010-05-01")
    company.states(REVENUE, 1, ACCESSION, "2010-03-31", "2010-05-01", taxonomy="ifrs-full")
    company.states(REVENUE, 2, ACCESSION, "2010-03-31", "2010-05-01", unit="EUR")
    assert [(f.unit, f.value) for f in facts(company)] == [("EUR", 2.0)]


def test_forms_of_others_and_rows_without_a_number_are_left_out() -> None:
    rows = [
        row(ACCESSION, "4", "2010-03-01", "2010-03-01T20:00:00.000Z"),
        row("", "8-K", "2010-03-01", "2010-03-01T20:00:00.000Z"),
        row("0000000000-10-000002", "8-K", "soon", "2010-03-01T20:00:00.000Z"),
        row("0000000000-10-000003", "8-K/A", "2010-03-01", "", items="5,7,Item 9"),
    ]
    (only,) = filings_of("X", [columns(rows)], SINCE)
    assert (only.accession, only.items) == ("0000000000-10-000003", ("5", "7"))
    assert only.known_at == exchange_calendar().close(date(2010, 3, 2))


def test_a_filing_that_two_tables_hold_is_one() -> None:
    table = apple().submissions()["filings"]["recent"]
    assert len(filings_of("AAPL", [table, table], SINCE)) == 3


def test_two_share_classes_are_one_company() -> None:
    page = {
        "0": {"cik_str": 1652044, "ticker": "GOOGL", "title": "Alphabet Inc."},
        "1": {"cik_str": 1652044, "ticker": "GOOG", "title": "Alphabet Inc."},
        "2": {"cik_str": "x", "ticker": "ODD", "title": "?"},
    }
    assert ciks_of(page) == {"GOOGL": 1652044, "GOOG": 1652044}


def test_a_file_of_older_filings_with_another_name_is_not_asked_for() -> None:
    files = [
        {"name": name, "filingFrom": "2001-01-01", "filingTo": "2002-01-01"}
        for name in ("CIK0000320193-submissions-001.json", "../../secret", "https://elsewhere/x")
    ]
    page = {"filings": {"recent": {}, "files": files}}
    assert [each.name for each in older_of(page)] == ["CIK0000320193-submissions-001.json"]
