"""Reports that were due and are not among the known filings. Pure.

Source of the days: the SEC's Form 10-Q (general instruction A.1: 40 or 45 days after the quarter)
and Form 10-K (A.2: 60, 75 or 90 days after the fiscal year), by the size of the company. Its size
is not known here, so the longest counts: nothing is called missing too early. A day off moves the
end to the next business day. The further days that a late filer may ask for (Rule 12b-25) do not
count: its report was not there.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from libs.market.calendar import exchange_calendar
from libs.market.filings.reported import Filing
from libs.market.filings.vintages import (
    WEEK,
    YEAR,
    ends_near,
    month_end,
    quarters_before,
    same_end,
)

QUARTERLY, ANNUAL = "10-Q", "10-K"
DAYS = {QUARTERLY: 45, ANNUAL: 90}
PERIODS_MIN = 4
"""The periods of a trailing year are always looked at, and all since the first known report."""


@dataclass(frozen=True, slots=True)
class MissingReport:
    """A report that was due before as_of and is not known."""

    form: str
    period_end: date
    due: date

    @property
    def in_words(self) -> str:
        """As a note on the figures."""
        return f"the {self.form} on the period to {self.period_end}, due by {self.due}, is not here"


def missing_reports(
    known: Iterable[Filing], fiscal_year_end: date | None, as_of: date
) -> tuple[MissingReport, ...]:
    """The missing reports, newest period first; none for a company that files no 10-K or 10-Q."""
    ends = [f.period_end for f in known if is_report(f.form) and f.period_end is not None]
    if not ends or fiscal_year_end is None:
        return ()
    missing, looked_at = [], 0
    # The first quarter's end that is not before as_of.
    end = quarters_before(fiscal_year_end, -(2 + (as_of - fiscal_year_end).days // 91))
    while looked_at < PERIODS_MIN or end >= month_end(min(ends)):
        report = _report(end, fiscal_year_end, ends)
        end = quarters_before(end, 1)
        if report.due >= as_of:
            continue
        looked_at += 1
        if not any(ends_near(report.period_end, known_end) for known_end in ends):
            missing.append(report)
    return tuple(missing)


def is_report(form: str) -> bool:
    """True for a 10-Q or 10-K, as first filed, amended or of a shortened year."""
    return form.startswith((QUARTERLY, ANNUAL))


def _report(end: date, fiscal_year_end: date, known_ends: Collection[date]) -> MissingReport:
    form = ANNUAL if end.month == fiscal_year_end.month else QUARTERLY
    ended = _ended(end, known_ends)
    due = exchange_calendar().session_on_or_after(ended + timedelta(days=DAYS[form]))
    return MissingReport(form, ended, due)


def _ended(end: date, known_ends: Collection[date]) -> date:
    """The last day on which the quarter up to `end` may have ended: `end`, or, of a company whose
    quarters are of 12 and 16 weeks, 53 weeks after that of the year before."""
    a_year_on = [known + YEAR for known in known_ends if ends_near(known + YEAR, end)]
    irregular = [day + WEEK for day in a_year_on if not same_end(day, end)]
    return max([end, *irregular])
