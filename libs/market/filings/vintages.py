"""Statements of filings, as of a moment: every vintage by accession number, the newest first. Pure.

A period is known by its end and the quarters up to it. Ends are compared with a tolerance, because
one fiscal year ends on 2009-09-26 in a filing and on 2009-09-30 in the SEC's own data sets.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from libs.market.filings.reported import Filing, ReportedFact

SAME_END_DAYS_MAX = 15
"""Half a month: rounding to the nearest month's end moves a date by no more, and the ends of years
of 52 and 53 weeks differ by a week."""
YEAR_END_DAYS_MAX = 41
"""Half of twelve weeks, the shortest quarter: no other year or report ends nearer than that.
Companies with quarters of 12, 12, 12 and 16 weeks end theirs weeks off a calendar's."""
WEEK = timedelta(weeks=1)
QUARTER = 13 * WEEK
YEAR = 52 * WEEK
PER_SHARE = "/shares"
SHARES = "shares"
MONTHS_A_QUARTER = 3

Split = tuple[datetime, float]
"""The open that a split took effect at, and the new shares for one old."""


@dataclass(frozen=True, slots=True)
class FilingFigure:
    """One number of one filing, in the shares of as_of."""

    concept: str
    value: float
    period_end: date
    quarters: int
    filing: Filing


class Vintages:
    """The figures of one company that were known at `close`, in its newest reporting currency.

    Per-share figures and counts of shares come in the share basis of their filing; the `splits`
    that took effect since it was known bring them to as_of's. A figure that one filing states twice
    with different values is none (as of share classes): its concept is in `torn`.
    """

    def __init__(
        self,
        filings: Iterable[Filing],
        facts: Iterable[ReportedFact],
        close: datetime,
        splits: Sequence[Split] = (),
    ) -> None:
        known = {filing.accession: filing for filing in filings if filing.known_at <= close}
        stated = [fact for fact in facts if fact.accession in known]
        self.filings = tuple(sorted(known.values(), key=newness))
        """The filings known at the close, oldest first."""
        self.currency = _currency(stated, known)
        self.torn: set[str] = set()
        self._figures: dict[tuple[str, int], list[FilingFigure]] = defaultdict(list)
        values: dict[tuple[str, str, date, int], set[float]] = defaultdict(set)
        for fact in stated:
            if fact.unit.removesuffix(PER_SHARE) in {self.currency, SHARES}:
                key = (fact.accession, fact.concept, fact.period_end, fact.quarters)
                values[key].add(fact.value * _basis(fact.unit, known[fact.accession], splits))
        for (accession, concept, end, quarters), numbers in values.items():
            if len(numbers) > 1:
                self.torn.add(concept)
                continue
            figure = FilingFigure(concept, numbers.pop(), end, quarters, known[accession])
            self._figures[concept, quarters].append(figure)
        for figures in self._figures.values():
            figures.sort(key=lambda figure: newness(figure.filing), reverse=True)

    def statements(self, concept: str, quarters: int, end: date) -> Sequence[FilingFigure]:
        """All that filings said of one period, the newest first."""
        figures = self._figures.get((concept, quarters), ())
        return [figure for figure in figures if same_end(figure.period_end, end)]

    def at(self, concepts: Sequence[str], quarters: int, end: date) -> FilingFigure | None:
        """The newest statement of the first of `concepts` that has one of that period."""
        for concept in concepts:
            for figure in self.statements(concept, quarters, end):
                return figure
        return None

    def year_ended(self, concept: str, end: date) -> FilingFigure | None:
        """The newest statement of the fiscal year that ended nearest to `end`, if one ended near
        it."""
        years = self._figures.get((concept, 4), ())
        last = _nearest((year.period_end for year in years), end)
        return None if last is None else self.at((concept,), 4, last)

    def newest(self, concepts: Sequence[str], *quarters: int) -> FilingFigure | None:
        """The figure of the latest period, in its newest statement; of equal ones the first
        concept's."""
        stated = [
            (figure, -place)
            for place, concept in enumerate(concepts)
            for span in quarters
            for figure in self._figures.get((concept, span), ())
        ]
        last = max((figure.period_end for figure, _ in stated), default=None)
        of_it = [pair for pair in stated if last and same_end(pair[0].period_end, last)]
        return max(of_it, key=lambda pair: (pair[1], newness(pair[0].filing)))[0] if of_it else None

    def of_periods(self) -> Iterator[FilingFigure]:
        """All figures that cover a quarter or more."""
        for (_, quarters), figures in self._figures.items():
            if quarters:
                yield from figures

    @property
    def period(self) -> FilingFigure | None:
        """A figure of the newest period that was reported on, in its newest statement."""
        return max(self.of_periods(), key=_recency, default=None)

    @property
    def fiscal_year_end(self) -> date | None:
        """The month's end that the last fiscal year ended on: that of a stated year, or else by the
        newest period's longest span: a half-year ends two quarters after it."""
        newest = self.period
        if newest is None:
            return None
        spans = [f for f in self.of_periods() if same_end(f.period_end, newest.period_end)]
        end = newest.period_end - QUARTER * (max(f.quarters for f in spans) % 4)
        years = (f.period_end for f in self.of_periods() if f.quarters == 4)
        return month_end(_nearest(years, end) or end)


def newness(filing: Filing) -> tuple[datetime, date, str]:
    """The order of filings: of two vintages the greater one counts."""
    return filing.known_at, filing.filed, filing.accession


def same_end(one: date, other: date) -> bool:
    """True where two dates end one period."""
    return abs((one - other).days) <= SAME_END_DAYS_MAX


def ends_near(one: date, other: date) -> bool:
    """True where two dates end one fiscal year, or one report's period, by whatever calendar."""
    return abs((one - other).days) <= YEAR_END_DAYS_MAX


def month_end(day: date) -> date:
    """The month's end that is nearest to `day`."""
    this = _last_day(day.year, day.month)
    before = date(day.year, day.month, 1) - timedelta(days=1)
    return this if this - day <= day - before else before


def quarters_before(end: date, quarters: int) -> date:
    """The month's end so many quarters before the period that ended on `end`."""
    rounded = month_end(end)
    months = rounded.year * 12 + rounded.month - 1 - MONTHS_A_QUARTER * quarters
    return _last_day(months // 12, months % 12 + 1)


def _nearest(ends: Iterable[date], end: date) -> date | None:
    near = [day for day in ends if ends_near(day, end)]
    return min(near, key=lambda day: abs(day - end), default=None)


def _last_day(year: int, month: int) -> date:
    following = date(year + month // 12, month % 12 + 1, 1)
    return following - timedelta(days=1)


def _recency(figure: FilingFigure) -> tuple[date, tuple[datetime, date, str]]:
    return month_end(figure.period_end), newness(figure.filing)


def _currency(stated: Sequence[ReportedFact], known: dict[str, Filing]) -> str:
    """The currency of most figures of the newest filing that has any."""
    in_money = [fact for fact in stated if fact.unit != SHARES]
    if not in_money:
        return ""
    newest = max((fact.accession for fact in in_money), key=lambda name: newness(known[name]))
    units = Counter(
        fact.unit.removesuffix(PER_SHARE) for fact in in_money if fact.accession == newest
    )
    return min(units, key=lambda unit: (-units[unit], unit))


def _basis(unit: str, filing: Filing, splits: Sequence[Split]) -> float:
    """The factor that turns a number of the filing into one in the shares that there are after all
    splits.
    """
    ratio = 1.0
    for at, factor in splits:
        ratio *= factor if at > filing.known_at else 1.0
    if unit == SHARES:
        return ratio
    return 1 / ratio if unit.endswith(PER_SHARE) else 1.0
