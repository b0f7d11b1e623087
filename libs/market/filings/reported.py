"""Figures as companies reported them, filing by filing: nothing is overwritten by a restatement.

A figure belongs to the filing that stated it (its accession number), in that filing's share basis.
A later filing that says another number of the same period is another row.
"""

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class Filing:
    """One filing of a ticker's company.

    `items` are the item numbers of an 8-K ("2.02"). `known_at` is when the desk may know it: the
    acceptance time, or, for what was accepted after 17:30 in New York, 06:00 there on the next
    business day; without an acceptance time the close of the session after `filed`. `period_end`
    is the end of the period that it reports on; None where it reports on none.
    """

    ticker: str
    accession: str
    form: str
    filed: date
    known_at: datetime
    period_end: date | None = None
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportedFact:
    """One figure of one filing.

    `concept` is the us-gaap (or dei) name. `quarters` are those that it covers, up to `period_end`:
    0 is a day's value, 4 a fiscal year of 52 or 53 weeks. `unit` is a currency, `shares` or a
    currency per share ("USD/shares").
    """

    ticker: str
    accession: str
    concept: str
    period_end: date
    quarters: int
    unit: str
    value: float
