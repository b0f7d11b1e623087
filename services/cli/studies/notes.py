"""Sentences in a study's plan on what it will not be able to show, and what would mend it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from contracts.study import FREE_PROVIDERS, Study, StudyKind
from libs.facts import amounts
from libs.market.calendar import ExchangeCalendar
from libs.runtime.settings import Settings


def over(
    dates: Sequence[date], horizons: Sequence[int], calendar: ExchangeCalendar, last: date
) -> Mapping[int, int]:
    """At how many of the dates each horizon is over by the newest session of the data."""
    reached = {}
    known = [day for day in dates if day <= last]
    left = [len(calendar.sessions(day, last)) - 1 for day in known]
    for horizon in horizons:
        reached[horizon] = sum(sessions >= horizon for sessions in left)
    return reached


def notes(
    study: Study,
    settings: Settings,
    reached: Mapping[int, int],
    dates: int,
    cell_tokens: Sequence[float],
    *,
    is_live: bool,
) -> Sequence[str]:
    """The sentences, the most important first; `reached` counts of the
    `dates` those whose horizon is over, `cell_tokens` are
    the arms' estimates."""
    return (
        *_budget(study, cell_tokens),
        *_horizons(study, reached, dates),
        *_pairs(study),
        *_cutoffs(study, settings),
        *_tickers(is_live),
    )


def _budget(study: Study, cell_tokens: Sequence[float]) -> Iterator[str]:
    needed, most = sum(cell_tokens), study.budget.cell_tokens
    if needed > most:
        yield (
            f"budget: a cell takes about {needed:,.0f} tokens and may cost {most:,}: its arms "
            "would fail for want of budget; raise cell_tokens"
        )


def _horizons(study: Study, reached: Mapping[int, int], dates: int) -> Iterator[str]:
    for horizon in study.horizons:
        if reached[horizon] < dates:
            yield (
                f"horizon {horizon}: over by the newest prices at {reached[horizon]:,} of "
                f"{amounts.count(dates, 'date')}; the others are not scored by it"
            )


def _pairs(study: Study) -> Iterator[str]:
    if len(study.arms) == 1:
        yield (
            f"{study.arms[0].name} is the only arm, so nothing is paired: it is held against the "
            "benchmark alone; add an arm, such as coin"
        )
    if study.kind is StudyKind.PATH and len(study.arms) > 1:
        yield "a path is scored as accounts: arms are paired by a study of kind picks"
    named = {
        (arm.provider, tuple(sorted(arm.models.items()))) for arm in study.arms if not arm.masked
    }
    for arm in study.arms:
        is_model = arm.masked and arm.provider not in FREE_PROVIDERS
        if is_model and (arm.provider, tuple(sorted(arm.models.items()))) not in named:
            yield (
                f"{arm.name} has no arm of the same models with names to be paired with, so what "
                "names bring is not shown"
            )


def _cutoffs(study: Study, settings: Settings) -> Iterator[str]:
    for name in dict.fromkeys(arm.provider for arm in study.arms):
        chosen = settings.providers.get(name)
        if name not in FREE_PROVIDERS and (chosen is None or chosen.knowledge_cutoff is None):
            yield (
                f"{name}: nobody has said when its knowledge ended, so before and after are not "
                f"shown; set knowledge_cutoff of [providers.{name}]"
            )


def _tickers(is_live: bool) -> Iterator[str]:
    if is_live:
        yield (
            "tickers: of live data only the desk can say which there are; it asks before the study "
            "begins, and refuses one that the source does not know"
        )
