"""The cells of a study on the sessions of a source: what is refused before anything is spent."""

from collections.abc import Sequence

from contracts.study import Study
from libs.facts import amounts
from libs.market.errors import OutsideData
from libs.market.sessions import Sessions
from libs.quant.study.design import Cell, DesignError, cells_of, dates_of


async def designed(study: Study, sessions: Sessions) -> Sequence[Cell]:
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
