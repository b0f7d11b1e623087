"""Fundamentals from made-up filings: one company, told filing by filing."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.market.filings.due import missing_reports
from libs.market.filings.reported import Filing, ReportedFact
from libs.market.filings.vintages import Vintages, month_end, quarters_before
from libs.market.fundamentals import STALE_DAYS, fundamentals_of
from libs.market.source import Fundamentals

EPS, PROFIT, REVENUE = "EarningsPerShareDiluted", "NetIncomeLoss", "Revenues"
PER_SHARE = {EPS, "CommonStockDividendsPerShareDeclared"}
COUNTS = {"EntityCommonStockSharesOutstanding"}
YEAR, Q1, HALF = date(2019, 12, 31), date(2020, 3, 31), date(2020, 6, 30)
Said = tuple[str, date, int, float]


class Company:
    """What was filed so far."""

    def __init__(self) -> None:
        self.filings: list[Filing] = []
        self.facts: list[ReportedFact] = []

    def file(
        self, form: str, end: date, filed: date, *said: Said, known: datetime | None = None
    ) -> "Company":
        accession = f"0000000001-{filed:%y}-{len(self.filings):06}"
        at = known or datetime.combine(filed, datetime.min.time(), tzinfo=UTC).replace(hour=18)
        self.filings.append(Filing("ACME", accession, form, filed, at, end))
        for concept, period_end, quarters, value in said:
            unit = "USD/shares" if concept in PER_SHARE else "USD"
            unit = "shares" if concept in COUNTS else unit
            self.facts.append(
                ReportedFact("ACME", accession, concept, period_end, quarters, unit, value)
            )
        return self

    def on(self, as_of: date, splits: Sequence[tuple[datetime, float]] = ()) -> Fundamentals | None:
        close = datetime(as_of.year, as_of.month, as_of.day, 21, tzinfo=UTC)
        known = Vintages(self.filings, self.facts, close, splits)
        return fundamentals_of("ACME", known, as_of)


def figures(company: Company, as_of: date) -> Fundamentals:
    found = company.on(as_of)
    assert found is not None
    return found


def annual(company: Company, eps: float = 4.0) -> Company:
    said = ((EPS, YEAR, 4, eps), (PROFIT, YEAR, 4, 400.0), (REVENUE, YEAR, 4, 2000.0))
    return company.file("10-K", YEAR, date(2020, 2, 20), *said)


def quarter(company: Company, now: float = 1.5, before: float = 1.0) -> Company:
    said = ((EPS, Q1, 1, now), (EPS, date(2019, 3, 31), 1, before))
    return company.file("10-Q", Q1, date(2020, 4, 30), *said)


def test_a_fiscal_year_is_its_own_trailing_year() -> None:
    found = figures(annual(Company()), date(2020, 3, 2))
    assert (found.eps_ttm, found.eps_fiscal_year, found.form) == (4.0, 4.0, "10-K")
    assert found.profit_margin_pct == pytest.approx(20)


def test_a_trailing_year_is_the_fiscal_year_moved_on_by_the_year_to_date() -> None:
    found = figures(quarter(annual(Company())), date(2020, 5, 1))
    assert found.eps_ttm == pytest.approx(4.5)
    assert found.eps_fiscal_year == 4.0
    assert (found.period_end, found.filed) == (Q1, date(2020, 4, 30))


def test_without_the_fiscal_year_there_is_no_trailing_year_and_it_says_so() -> None:
    found = figures(quarter(Company()), date(2020, 5, 1))
    assert found.eps_ttm is None
    assert "the year to 2019-12-31" in found.absent["eps_ttm"]
    assert found.profit_growth_pct == pytest.approx(50)


def test_four_quarters_make_a_year_and_three_do_not() -> None:
    ends = [date(2019, 6, 30), date(2019, 9, 30), date(2019, 12, 31), Q1]
    company = Company()
    for number, end in enumerate(ends):
        filed = date(end.year + end.month // 12, (end.month + 1) % 12 or 12, 10)
        company.file("10-Q", end, filed, (EPS, end, 1, 1.0 + number))
    assert figures(company, date(2020, 4, 20)).eps_ttm == pytest.approx(10)

    company.filings.pop(1)
    found = figures(company, date(2020, 4, 20))
    assert found.eps_ttm is None
    assert "the quarter to 2019-09-30" in found.absent["eps_ttm"]


def test_a_restatement_counts_from_its_own_day_and_an_amended_amendment_from_its() -> None:
    company = annual(Company())
    company.file("10-K/A", YEAR, date(2020, 3, 10), (EPS, YEAR, 4, 3.0))
    company.file("10-K/A", YEAR, date(2020, 3, 20), (EPS, YEAR, 4, 3.5))
    days = (date(2020, 3, 9), date(2020, 3, 10), date(2020, 3, 19), date(2020, 3, 20))
    assert [figures(company, day).eps_fiscal_year for day in days] == [4.0, 3.0, 3.0, 3.5]
    # What an amendment does not repeat stands.
    assert figures(company, date(2020, 3, 20)).revenue_ttm == 2000


def test_a_year_told_before_a_restatement_of_its_part_makes_no_trailing_year() -> None:
    company = Company().file(
        "10-Q", date(2019, 3, 31), date(2019, 5, 1), (EPS, date(2019, 3, 31), 1, 1.0)
    )
    quarter(annual(company), before=0.4)
    found = figures(company, date(2020, 5, 1))
    assert found.eps_ttm is None
    assert "as it was restated later" in found.absent["eps_ttm"]

    company.file("10-K/A", YEAR, date(2020, 5, 4), (EPS, YEAR, 4, 3.4))
    assert figures(company, date(2020, 5, 4)).eps_ttm == pytest.approx(3.4 + 1.5 - 0.4)


def test_a_year_restated_after_its_followers_report_makes_no_trailing_year_with_it() -> None:
    first = Company().file(
        "10-Q", date(2019, 3, 31), date(2019, 5, 1), (EPS, date(2019, 3, 31), 1, 1.0)
    )
    company = quarter(annual(first))
    assert figures(company, date(2020, 5, 1)).eps_ttm == pytest.approx(4.5)
    company.file("10-K/A", YEAR, date(2020, 5, 4), (EPS, YEAR, 4, 6.0))

    found = figures(company, date(2020, 5, 4))
    assert (found.eps_ttm, found.eps_fiscal_year) == (None, 6.0)
    assert found.absent["eps_ttm"].endswith("the year to 2019-12-31 as restated 2020-05-04")

    # The quarter is told anew too, with its own year before.
    now, before = (EPS, Q1, 1, 2.0), (EPS, date(2019, 3, 31), 1, 1.4)
    company.file("10-Q/A", Q1, date(2020, 5, 6), now, before)
    assert figures(company, date(2020, 5, 6)).eps_ttm == pytest.approx(6.0 + 2.0 - 1.4)


def test_ends_of_52_and_53_weeks_and_of_rounded_months_are_one_period() -> None:
    saturday = date(2020, 1, 4)  # 53 weeks after 2018-12-29
    company = Company().file("10-K", saturday, date(2020, 2, 20), (EPS, saturday, 4, 4.0))
    company.file("10-K/A", YEAR, date(2020, 3, 10), (EPS, YEAR, 4, 4.2))
    end, before = date(2020, 4, 4), date(2019, 3, 30)
    company.file("10-Q", end, date(2020, 5, 8), (EPS, end, 1, 1.5), (EPS, before, 1, 1.0))
    found = figures(company, date(2020, 5, 8))
    assert found.eps_ttm == pytest.approx(4.7)
    assert (found.eps_fiscal_year, found.period_end) == (4.2, end)


# Ends of the fiscal year before, its three quarters, the last fiscal year, and its followers:
# PepsiCo's and Costco's quarters have 12, 12, 12 and 16 weeks, Kroger's 16, 12, 12 and 12.
CALENDARS = {
    "PEP": (
        "2022-12-31 2023-03-25 2023-06-17 2023-09-09",
        "2023-12-30 2024-03-23 2024-06-15 2024-09-07",
    ),
    "COST": (
        "2022-08-28 2022-11-20 2023-02-12 2023-05-07",
        "2023-09-03 2023-11-26 2024-02-18 2024-05-12",
    ),
    "KR": (
        "2023-01-28 2023-05-20 2023-08-12 2023-11-04",
        "2024-02-03 2024-05-25 2024-08-17 2024-11-09",
    ),
}


@pytest.mark.parametrize("ticker", CALENDARS)
def test_quarters_of_12_and_of_16_weeks_make_trailing_years_and_no_report_is_missing(
    ticker: str,
) -> None:
    before, last = ([date.fromisoformat(day) for day in days.split()] for days in CALENDARS[ticker])
    company = Company()
    for ends, year, quarter_eps in ((before, 4.0, 1.0), (last, 5.0, 1.5)):
        for number, end in enumerate(ends):
            said = [(EPS, end, number or 4, number * quarter_eps if number else year)]
            if ends is last and number:
                said.append((EPS, before[number], number, number * 1.0))
            form, filed = ("10-Q", 40) if number else ("10-K", 59)
            company.file(form, end, end + timedelta(days=filed), *said)
    for number, end in enumerate(last):
        found = figures(company, end + timedelta(days=60))
        assert found.eps_ttm == pytest.approx(5.0 + number * 0.5)
        assert found.eps_fiscal_year == 5.0
        assert (found.period_end, found.notes) == (end, ())


def test_a_first_quarter_of_16_weeks_is_due_when_it_ends_and_not_a_calendars() -> None:
    company = Company()
    ends = [date.fromisoformat(day) for day in " ".join(CALENDARS["KR"]).split()]
    for number, end in enumerate(ends[:5]):
        company.file("10-Q" if number % 4 else "10-K", end, end + timedelta(days=40))
    year_end = date(2024, 1, 31)

    assert missing_reports(company.filings, year_end, date(2024, 7, 9)) == ()
    (missing,) = missing_reports(company.filings, year_end, date(2024, 7, 10))
    assert (missing.period_end, missing.due) == (date(2024, 5, 25), date(2024, 7, 9))


def test_per_share_figures_and_counts_come_in_as_ofs_shares() -> None:
    company = annual(Company())
    company.file(
        "10-Q",
        Q1,
        date(2020, 4, 30),
        (EPS, Q1, 1, 1.5),
        (EPS, date(2019, 3, 31), 1, 1.0),
        ("EntityCommonStockSharesOutstanding", date(2020, 4, 20), 0, 100.0),
    )
    split = (datetime(2020, 5, 15, 13, 30, tzinfo=UTC), 2.0)
    between = (datetime(2020, 4, 15, 13, 30, tzinfo=UTC), 4.0)

    after = company.on(date(2020, 5, 18), [split])
    assert after is not None
    assert after.eps_ttm == pytest.approx(2.25)
    assert after.shares_outstanding == 200

    mixed = company.on(date(2020, 5, 1), [between])
    assert mixed is not None
    # The year was told before the split, the quarter after it.
    assert mixed.eps_ttm == pytest.approx(4.0 / 4 + 1.5 - 1.0)
    assert mixed.shares_outstanding == 100


def test_of_two_share_classes_no_number_is_picked() -> None:
    company = annual(Company())
    count = "EntityCommonStockSharesOutstanding"
    company.file("10-K/A", YEAR, date(2020, 3, 1), (count, YEAR, 0, 100.0), (count, YEAR, 0, 7.0))
    found = figures(company, date(2020, 3, 2))
    assert found.shares_outstanding is None
    assert "by class" in found.absent["shares_outstanding"]
    assert found.eps_ttm == 4.0


def debts(*said: tuple[str, float]) -> Fundamentals:
    company = annual(Company())
    rows = [(concept, YEAR, 0, value) for concept, value in said]
    return figures(company.file("10-K/A", YEAR, date(2020, 3, 1), *rows), date(2020, 3, 2))


@pytest.mark.parametrize(
    ("said", "ratio"),
    [
        ([("LongTermDebt", 50.0), ("ShortTermBorrowings", 10.0)], 0.6),
        ([("LongTermDebtNoncurrent", 40.0), ("LongTermDebtCurrent", 10.0)], 0.5),
        ([("LongTermDebtNoncurrent", 40.0), ("DebtCurrent", 20.0), ("CommercialPaper", 5.0)], 0.6),
        ([("DebtLongtermAndShorttermCombinedAmount", 70.0), ("DebtCurrent", 20.0)], 0.7),
    ],
)
def test_debt_is_long_term_and_short_term_and_nothing_twice(
    said: list[tuple[str, float]], ratio: float
) -> None:
    assert debts(("StockholdersEquity", 100.0), *said).debt_to_equity == pytest.approx(ratio)


def test_negative_equity_and_half_a_debt_are_no_ratio() -> None:
    negative = debts(("StockholdersEquity", -20.0), ("LongTermDebt", 50.0))
    assert negative.debt_to_equity is None
    assert negative.absent["debt_to_equity"] == "equity is not above zero: -20"
    half = debts(("StockholdersEquity", 100.0), ("DebtCurrent", 50.0))
    assert half.absent["debt_to_equity"] == "no filing states long-term debt at 2019-12-31"


def test_growth_from_a_loss_has_no_percent() -> None:
    found = figures(quarter(annual(Company()), before=-0.2), date(2020, 5, 1))
    assert found.profit_growth_pct is None


def test_a_company_without_xbrl_has_no_figures() -> None:
    company = Company().file("10-K", YEAR, date(2020, 2, 20))
    assert company.on(date(2020, 3, 2)) is None


def test_old_figures_are_not_told_as_those_of_the_year_before_as_of() -> None:
    company = annual(Company())
    fresh, stale = date(2020, 6, 30), date(2020, 7, 1)
    assert [(day - YEAR).days > STALE_DAYS for day in (fresh, stale)] == [False, True]
    assert figures(company, fresh).eps_ttm == 4.0
    found = figures(company, stale)
    assert (found.eps_ttm, found.eps_fiscal_year) == (None, 4.0)
    assert found.notes[0] == "the newest known period ended 2019-12-31, 183 days ago"
    assert any("2020-02-20, 132 days old" in note for note in found.notes)


def test_a_report_is_missing_from_the_day_after_the_longest_time_it_may_take() -> None:
    company = Company()
    for end, filed in (
        (date(2019, 3, 31), date(2019, 5, 1)),
        (date(2019, 6, 30), date(2019, 8, 1)),
        (date(2019, 9, 30), date(2019, 11, 1)),
    ):
        company.file("10-Q", end, filed, (EPS, end, end.month // 3, 1.0))
    annual(company)

    def missing(as_of: date) -> list[tuple[str, date, date]]:
        found = missing_reports(company.filings, YEAR, as_of)
        return [(each.form, each.period_end, each.due) for each in found]

    assert missing(date(2020, 5, 15)) == []
    # 45 days after 31 March.
    assert missing(date(2020, 5, 18)) == [("10-Q", Q1, date(2020, 5, 15))]
    assert missing(date(2021, 3, 31))[0][0] == "10-Q"
    # 90 days after the year.
    assert missing(date(2021, 4, 1))[0] == ("10-K", date(2020, 12, 31), date(2021, 3, 31))


@pytest.mark.parametrize(
    ("day", "end"),
    [
        (date(2009, 9, 26), date(2009, 9, 30)),
        (date(2020, 1, 4), date(2019, 12, 31)),
        (date(2012, 2, 3), date(2012, 1, 31)),
        (date(2020, 2, 29), date(2020, 2, 29)),
    ],
)
def test_the_month_end_of_a_period_is_the_nearest(day: date, end: date) -> None:
    assert month_end(day) == end


@given(st.dates(date(1995, 1, 1), date(2029, 1, 1)), st.integers(0, 12))
def test_going_quarters_back_and_forth_ends_where_it_began(day: date, quarters: int) -> None:
    end = month_end(day)
    assert quarters_before(quarters_before(end, quarters), -quarters) == end


@given(st.lists(st.sampled_from(["annual", "quarter", "amended", "half"]), max_size=8), st.data())
def test_nothing_known_after_the_close_changes_an_answer(
    events: list[str], data: st.DataObject
) -> None:
    company = Company()
    for number, kind in enumerate(events):
        filed = date(2020, 2, 20 + number)
        end, quarters = {"quarter": (Q1, 1), "half": (HALF, 2)}.get(kind, (YEAR, 4))
        value = data.draw(st.floats(-100, 100, allow_nan=False))
        company.file(
            "10-K/A", end, filed, (EPS, end, quarters, value), (PROFIT, end, quarters, value)
        )
    as_of = data.draw(st.dates(date(2020, 2, 19), date(2020, 3, 1)))
    cut = Company()
    cut.filings = [each for each in company.filings if each.filed <= as_of]
    cut.facts = company.facts
    assert company.on(as_of) == cut.on(as_of)
