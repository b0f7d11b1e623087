"""Sentences in a study's plan on what it will not be able to show, and what would mend it."""

from collections.abc import Iterator, Sequence
from datetime import date

from contracts.study import Study
from libs.market.calendar import ExchangeCalendar
from libs.runtime.settings import Settings
from libs.study.cells import caveats


def notes(
    study: Study,
    settings: Settings,
    dates: Sequence[date],
    calendar: ExchangeCalendar,
    last: date,
    cell_tokens: Sequence[float],
    *,
    is_live: bool,
) -> Sequence[str]:
    """The sentences, the most important first; `last` is the newest session of the data,
    `cell_tokens` are the arms' estimates."""
    return (
        *_budget(study, cell_tokens),
        *caveats(study, settings, dates, calendar, last),
        *_tickers(is_live),
    )


def _budget(study: Study, cell_tokens: Sequence[float]) -> Iterator[str]:
    needed, most = sum(cell_tokens), study.budget.cell_tokens
    if needed > most:
        yield (
            f"budget: a cell takes about {needed:,.0f} tokens and may cost {most:,}: its arms "
            "would fail for want of budget; raise cell_tokens"
        )


def _tickers(is_live: bool) -> Iterator[str]:
    if is_live:
        yield (
            "tickers: of live data only the desk can say which there are; it asks before the study "
            "begins, and refuses one that the source does not know"
        )
