"""A company's fundamentals as of a close, from what its filings had said by then. Pure.

A trailing year is the fiscal year, plus the year to date, less the same part of the year before
as the newest quarterly report states it: so a restatement is on both sides of the difference. Or it
is the sum of four quarters. Where a part is absent the figure is None and says why; nothing is
estimated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from libs.market.filings import concepts
from libs.market.filings.due import missing_reports
from libs.market.filings.vintages import (
    QUARTER,
    YEAR,
    FilingFigure,
    Vintages,
    newness,
    quarters_before,
    same_end,
)
from libs.market.source import Fundamentals

STALE_DAYS = 182
"""A quarter and the 90 days that an annual report may take: a figure that ended longer ago says
nothing of the year before as_of."""
RESTATED_SHARE = 0.01
"""A number that another filing states further away than this was restated, not rounded."""
MISSING_TOLD_MAX = 4


@dataclass(frozen=True, slots=True)
class FundamentalValue:
    """A figure, or the reason why there is none."""

    value: float | None
    why: str = ""


def fundamentals_of(ticker: str, known: Vintages, as_of: date) -> Fundamentals | None:
    """The figures; None where no filing had stated any."""
    period = known.period
    if period is None:
        return None
    age = (as_of - period.period_end).days
    year = _Year(known, period.period_end)
    revenue, profit = year.trailing(concepts.REVENUE), year.trailing(concepts.PROFIT)
    values = {
        "eps_ttm": year.trailing(concepts.EPS),
        "shares_outstanding": _count(known, period.period_end),
        "revenue_ttm": revenue,
        "profit_margin_pct": _margin(profit, revenue),
        "operating_margin_pct": _margin(year.trailing(concepts.OPERATING_PROFIT), revenue),
        "debt_to_equity": _debt_to_equity(known, period.period_end),
        "dividend_per_share_ttm": year.trailing(concepts.DIVIDENDS),
        "profit_growth_pct": _first(year.growth(concepts.PROFIT), year.growth(concepts.EPS)),
        "revenue_growth_pct": year.growth(concepts.REVENUE),
    }
    notes = _notes(known, as_of)
    if age > STALE_DAYS:
        # One sentence for all of them.
        notes = (f"the newest known period ended {period.period_end}, {age} days ago", *notes)
        values = dict.fromkeys(values, FundamentalValue(None))
    annual = known.newest(concepts.EPS, 4)
    stating = max((figure.filing for figure in known.of_periods()), key=newness)
    return Fundamentals(
        ticker=ticker,
        period_end=period.period_end,
        known_at=stating.known_at,
        currency=known.currency,
        form=period.filing.form,
        accession=period.filing.accession,
        filed=period.filing.filed,
        eps_fiscal_year=annual.value if annual else None,
        fiscal_year_end=annual.period_end if annual else None,
        absent={name: figure.why for name, figure in values.items() if figure.why},
        notes=notes,
        **{name: figure.value for name, figure in values.items()},
    )


class _Year:
    """Sums and changes over the year that ended with the newest reported period."""

    def __init__(self, known: Vintages, end: date) -> None:
        self._known = known
        self._end = end

    def trailing(self, names: tuple[str, ...]) -> FundamentalValue:
        """The four quarters up to the end, by the first concept that has them."""
        reasons = []
        for name in names:
            trailing = self._trailing(name, concepts.WORDS[names])
            if trailing.value is not None:
                return trailing
            reasons.append(trailing.why)
        # A concept that was never stated says less than one of which a part is absent.
        return FundamentalValue(None, next((why for why in reasons if why), self._unstated(names)))

    def growth(self, names: tuple[str, ...]) -> FundamentalValue:
        """The year to date against that of the year before, in percent, as one filing states
        both."""
        for name in names:
            for quarters in (4, 3, 2, 1):
                pair = self._pair(name, quarters)
                if pair is None:
                    continue
                now, before = pair
                if before.value <= 0:
                    word = concepts.WORDS[names]
                    return FundamentalValue(
                        None, f"{word} of the year before was {before.value:,.2f}"
                    )
                return FundamentalValue((now.value / before.value - 1) * 100)
        return FundamentalValue(None, self._unstated(names, "with that of the year before"))

    def _trailing(self, name: str, word: str) -> FundamentalValue:
        known, end = self._known, self._end
        whole = known.at((name,), 4, end)
        if whole is not None:
            return FundamentalValue(whole.value)
        gaps: list[str] = []
        for quarters in (3, 2, 1):
            pair = self._pair(name, quarters)
            if pair is None:
                continue
            fiscal = known.year_ended(name, end - QUARTER * quarters)
            if fiscal is None:
                gaps = gaps or [f"the year to {quarters_before(end, quarters)}"]
            elif reason := self._not_one_vintage(fiscal, pair):
                return FundamentalValue(None, f"no trailing year: no {word} for {reason}")
            else:
                return FundamentalValue(fiscal.value + pair[0].value - pair[1].value)
        ends = [quarters_before(end, back) for back in range(4)]
        singles = [known.at((name,), 1, day) for day in ends]
        there = [single.value for single in singles if single is not None]
        if len(there) == len(ends):
            return FundamentalValue(sum(there))
        if not there and not gaps:
            return FundamentalValue(None)
        gaps += [f"the quarter to {e}" for e, one in zip(ends, singles, strict=True) if one is None]
        return FundamentalValue(None, f"no trailing year: no {word} for {', '.join(gaps)}")

    def _pair(self, name: str, quarters: int) -> tuple[FilingFigure, FilingFigure] | None:
        """The span up to the end and the same one a year before, as the newest filing with both
        states them."""
        before = {
            figure.filing.accession: figure
            for figure in self._known.statements(name, quarters, self._end - YEAR)
        }
        for figure in self._known.statements(name, quarters, self._end):
            if figure.filing.accession in before:
                return figure, before[figure.filing.accession]
        return None

    def _not_one_vintage(
        self, fiscal: FilingFigure, pair: tuple[FilingFigure, FilingFigure]
    ) -> str:
        """Which part is absent where a restatement stands between the fiscal year and the year to
        date; empty where they fit together."""
        now, before = pair
        years = self._known.statements(fiscal.concept, 4, fiscal.period_end)
        was_restated = any(_differ(year, fiscal) for year in years)
        parts = self._known.statements(before.concept, before.quarters, before.period_end)
        first = newness(fiscal.filing)
        if any(_differ(part, before) for part in parts if newness(part.filing) <= first):
            # Told otherwise when the year was: the year counts only if it was told anew.
            return (
                "" if was_restated else f"the year to {fiscal.period_end} as it was restated later"
            )
        at_the_time = (year for year in years if newness(year.filing) <= newness(now.filing))
        then = next(at_the_time, fiscal)
        if fiscal.filing.filed > now.filing.filed and _differ(then, fiscal):
            return (
                f"the time since on the terms of the year to {fiscal.period_end} as restated "
                f"{fiscal.filing.filed}"
            )
        return ""

    def _unstated(self, names: tuple[str, ...], how: str = "") -> str:
        word = concepts.WORDS[names]
        if self._known.torn.intersection(names):
            return f"{word}: one filing states two numbers, as of share classes"
        return " ".join(filter(None, (f"no filing states {word}", how)))


def _differ(one: FilingFigure, other: FilingFigure) -> bool:
    return abs(one.value - other.value) > RESTATED_SHARE * max(abs(one.value), abs(other.value))


def _first(one: FundamentalValue, other: FundamentalValue) -> FundamentalValue:
    return one if one.value is not None or other.value is None else other


def _margin(part: FundamentalValue, revenue: FundamentalValue) -> FundamentalValue:
    if part.value is None or revenue.value is None:
        return FundamentalValue(None, part.why or revenue.why)
    if revenue.value <= 0:
        return FundamentalValue(None, f"revenue was {revenue.value:,.0f}")
    return FundamentalValue(part.value / revenue.value * 100)


def _count(known: Vintages, end: date) -> FundamentalValue:
    count = known.newest(concepts.SHARES, 0)
    # A report's cover counts them some weeks after the period's end.
    if count is not None and (count.period_end >= end or same_end(count.period_end, end)):
        return FundamentalValue(count.value)
    if known.torn.intersection(concepts.SHARES):
        return FundamentalValue(None, "shares are counted by class, and no filing states their sum")
    return FundamentalValue(None, f"no filing states shares outstanding at {end}")


def _debt_to_equity(known: Vintages, day: date) -> FundamentalValue:
    equity = known.at(concepts.EQUITY, 0, day)
    if equity is None:
        return FundamentalValue(None, f"no filing states equity at {day}")
    if equity.value <= 0:
        return FundamentalValue(None, f"equity is not above zero: {equity.value:,.0f}")

    def at(names: Sequence[str]) -> FilingFigure | None:
        return known.at(names, 0, day)

    total = at(concepts.DEBT_IN_ALL)
    if total is not None:
        return FundamentalValue(total.value / equity.value)
    borrowed = at(concepts.BORROWINGS)
    whole, later = at(concepts.LONG_TERM_DEBT), at(concepts.LONG_TERM_DEBT_NONCURRENT)
    if whole is not None:
        parts = [whole, borrowed]
    elif later is not None:
        current = at(concepts.CURRENT_DEBT)
        due = at(concepts.CURRENT_LONG_TERM_DEBT)
        parts = [later, current] if current is not None else [later, due, borrowed]
    else:
        return FundamentalValue(None, f"no filing states long-term debt at {day}")
    return FundamentalValue(sum(part.value for part in parts if part is not None) / equity.value)


def _notes(known: Vintages, as_of: date) -> tuple[str, ...]:
    """Notes on figures that were due and are not here, and on how old the newest filing is where
    that is so.
    """
    missing = missing_reports(known.filings, known.fiscal_year_end, as_of)
    if not missing:
        return ()
    notes = [report.in_words for report in missing[:MISSING_TOLD_MAX]]
    if len(missing) > MISSING_TOLD_MAX:
        notes.append(f"{len(missing) - MISSING_TOLD_MAX} more before those are not here")
    newest = known.filings[-1]
    age = (as_of - newest.filed).days
    days = "1 day" if age == 1 else f"{age} days"
    last = f"the newest known filing is the {newest.form} of {newest.filed}, {days} old"
    return (*notes, last)
