"""The cells of a study on the sessions of a source: what is refused before anything is spent, and
what they will not show."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import accumulate, pairwise

from contracts.study import FREE_PROVIDERS, Study, StudyKind
from libs.facts import amounts
from libs.market.calendar import ExchangeCalendar
from libs.market.errors import OutsideData
from libs.market.sessions import Sessions
from libs.runtime.settings import Settings
from libs.study.statistics import canary
from libs.study.statistics.design import DesignCell, DesignError, cells_of, dates_of


async def designed(study: Study, sessions: Sessions) -> Sequence[DesignCell]:
    """The cells of a study. Raises OutsideData where the source has no prices for its dates and
    NotASession for a listed one that is none, each with the nearest session; DesignError where no
    horizon of the first date is over by the newest of them, or where the file asks for too much."""
    wish, calendar = study.dates, sessions.calendar
    for day in wish.sessions:
        await sessions.require(day)
    days = sorted(day for day in (wish.first, wish.last, *wish.sessions) if day is not None)
    span = await sessions.span()
    for day in (days[0], days[-1]):
        if day > span.last or (span.first is not None and day < span.first):
            near = span.last if day > span.last else span.first or span.last
            raise OutsideData(day, sessions.source, span.first, span.last, near)
    dates = dates_of(study, calendar.sessions(days[0], days[-1]))
    after = len(calendar.sessions(dates[0], span.last)) - 1
    if after < min(study.horizons):
        raise DesignError(
            "horizons",
            f"{sessions.source} has {amounts.count(after, 'session')} after {dates[0]}, the first "
            "date: no horizon is over by then",
        )
    return cells_of(study, dates)


def over(
    dates: Sequence[date], horizons: Sequence[int], calendar: ExchangeCalendar, last: date
) -> Mapping[int, int]:
    """At how many of the dates each horizon is over by the newest session of the data."""
    known = [day for day in dates if day <= last]
    sessions = calendar.sessions(min(known, default=last), last)
    left = [len(sessions) - bisect_left(sessions, day) - 1 for day in known]
    return {horizon: sum(after >= horizon for after in left) for horizon in horizons}


def caveats(
    study: Study,
    settings: Settings,
    dates: Sequence[date],
    calendar: ExchangeCalendar,
    last: date,
) -> Sequence[str]:
    """Sentences on what a study of these dates will not show, and what would mend it; `last` is the
    newest session of the data."""
    return (
        *_horizons(study, over(dates, study.horizons, calendar, last), len(dates)),
        *_pairs(study),
        *_cutoffs(study, settings),
        *_canary(study, dates, calendar),
    )


def _horizons(study: Study, reached: Mapping[int, int], dates: int) -> Iterator[str]:
    for horizon in study.horizons:
        if reached[horizon] < dates:
            yield (
                f"horizon {horizon}: over by the newest prices at {reached[horizon]:,} of "
                f"{amounts.count(dates, 'date')}; the others are not scored by it"
            )


def _canary(study: Study, dates: Sequence[date], calendar: ExchangeCalendar) -> Iterator[str]:
    if study.kind is StudyKind.PATH or len(study.universe) < 2:
        return
    gaps = (len(calendar.sessions(*both)) - 1 for both in pairwise(sorted(dates)))
    overlapping = canary.overlap(list(accumulate(gaps, initial=0)), canary.CANARY_SESSIONS)
    reached = canary.deviations_expected(len(study.universe), len(dates), overlapping)
    if len(dates) // overlapping >= canary.LEAK_DATES_LEAST and reached >= canary.DEVIATIONS_SURE:
        return
    closer = f", of which {overlapping} lie within one week" if overlapping > 1 else ""
    yield (
        "look-ahead: the canary, which knows the prices to come, may not be seen with "
        f"{amounts.count(len(study.universe), 'ticker')} at {amounts.count(len(dates), 'date')}"
        f"{closer}; so it clears no one: take {canary.dates_needed(len(study.universe))} dates or "
        "more, a week apart"
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
