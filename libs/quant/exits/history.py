"""From daily closes to what the rules look at: returns of complete months, and the peak. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from contracts.account import ActedExit, Position
from contracts.exit_signal import Holdings
from contracts.types import Failure
from libs.quant.exits.rules import MONTHS_SPREAD, ExitFacts
from libs.quant.exits.terms import ExitTerms

MONTHS = MONTHS_SPREAD + 1
"""Complete months whose returns the rules look at."""
SESSIONS_MIN = 350
"""Sessions that surely hold the ends of these months, the end before them, and a month begun."""
BASKET_SESSIONS_MIN = 140
"""The same of a member of the basket, of which only the last three months count."""
PEAK_SESSIONS_MAX = 2_600
"""Sessions back that a trailing stop looks for its peak: about ten years."""

NAMED_MAX = 100
"""Tickers of the positions' own rules that a check looks up beside those it needs."""

BASKET_HELD_MAX = 100
"""Positions, the largest first, that make the basket where the terms name none."""

Month = tuple[int, int]
SessionsBetween = Callable[[date, date], Sequence[date]]
"""The sessions from one day to another, both included."""


@dataclass(frozen=True, slots=True)
class ExitContext:
    """When an account is looked at, the last complete month then, its largest positions (the basket
    of the regime, where the terms name none), and the exits of what it holds."""

    as_of: date
    month: Month
    largest: tuple[str, ...]
    exits: tuple[ActedExit, ...] = ()

    @classmethod
    def of(cls, holdings: Holdings, next_session: date) -> "ExitContext":
        """Of what an account holds; `next_session` is the one after its own."""
        ordered = sorted(
            holdings.positions, key=lambda position: (-position.value, position.ticker)
        )
        return cls(
            as_of=holdings.as_of,
            month=last_complete(holdings.as_of, next_session),
            largest=tuple(position.ticker for position in ordered[:BASKET_HELD_MAX]),
            exits=holdings.exits,
        )

    def acted_on(self, ticker: str) -> date | None:
        """The session of the first exit that acted on what is held of the ticker."""
        return min((act.as_of for act in self.exits if act.ticker == ticker), default=None)


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """The data to read of one ticker: so many sessions, its peak where one is looked for, and the
    closes after an exit.
    """

    ticker: str
    sessions: int = BASKET_SESSIONS_MIN
    peak_since: date | None = None
    closes_since: date | None = None


@dataclass(frozen=True, slots=True)
class PriceHistory:
    """The summary of one ticker's closes at as_of; `peak` and `closes_since` where they were asked
    for.
    """

    months: tuple[float | None, ...] = (None,) * MONTHS
    close: float | None = None
    peak: float | None = None
    closes_since: Mapping[date, float] = field(default_factory=dict)


def last_complete(as_of: date, next_session: date) -> Month:
    """The last month that is over at as_of's close; its own, where as_of was the last session."""
    if (next_session.year, next_session.month) != (as_of.year, as_of.month):
        return as_of.year, as_of.month
    return before((as_of.year, as_of.month))


def before(month: Month) -> Month:
    """The month before."""
    year, number = month
    return (year, number - 1) if number > 1 else (year - 1, 12)


def history_of(
    days: Sequence[date],
    closes: Sequence[float],
    last: Month,
    peak_since: date | None = None,
    closes_since: date | None = None,
) -> PriceHistory:
    """The closes (ascending by day) as returns of the months up to `last`, oldest first.

    A month's return is from the last close of the month before to its own last close, and None
    where either month has none.
    """
    ends: dict[Month, float] = {}
    for day, close in zip(days, closes, strict=True):
        ends[day.year, day.month] = close
    months: list[float | None] = []
    month = last
    for _ in range(MONTHS):
        months.append(_return(ends.get(before(month)), ends.get(month)))
        month = before(month)
    since = [c for day, c in zip(days, closes, strict=True) if peak_since and day >= peak_since]
    return PriceHistory(
        months=tuple(reversed(months)),
        close=closes[-1] if closes else None,
        peak=max(since, default=None),
        closes_since={
            day: close
            for day, close in zip(days, closes, strict=True)
            if closes_since and day > closes_since
        },
    )


def _return(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None or start <= 0 else end / start - 1


def wanted_for(
    positions: Iterable[Position],
    held: ExitContext,
    terms_of: Mapping[str, ExitTerms],
    sessions: SessionsBetween,
    named: Iterable[str] = (),
) -> tuple[HistoryRequest, ...]:
    """The data to read in order to check the positions: their own closes and those of their
    baskets; and whether there is anything of the tickers that are only `named`.
    """
    requests: dict[str, HistoryRequest] = {}
    for position in positions:
        terms = terms_of[position.ticker]
        for member in terms.basket or held.largest:
            requests.setdefault(member, HistoryRequest(member))
        since, acted_on = (
            sessions_held(position, held.as_of, sessions),
            held.acted_on(position.ticker),
        )
        own = HistoryRequest(position.ticker, SESSIONS_MIN, closes_since=acted_on)
        if since is not None and (terms.trailing_stop is not None or acted_on is not None):
            count = min(max(SESSIONS_MIN, since + 1), PEAK_SESSIONS_MAX)
            peak_since = None if terms.trailing_stop is None else position.opened_on
            own = replace(own, sessions=count, peak_since=peak_since)
        requests[position.ticker] = own
    for ticker in sorted(named)[:NAMED_MAX]:
        requests.setdefault(ticker, HistoryRequest(ticker, 1))
    return tuple(requests[ticker] for ticker in sorted(requests))


def facts_of(
    position: Position,
    held: ExitContext,
    terms: ExitTerms,
    histories: Mapping[str, PriceHistory | Failure],
    sessions: SessionsBetween,
) -> ExitFacts | Failure:
    """All that the rules may look at for one position; why not, where its own closes are missing.

    A member of the basket without closes has no months, and the regime's words count it.
    """
    own = histories[position.ticker]
    if isinstance(own, Failure):
        return own
    basket = {member: histories[member] for member in terms.basket or held.largest}
    # Bought after as_of's close: no later close is known that it could have fallen from.
    is_new = position.opened_on is not None and position.opened_on > held.as_of
    return ExitFacts(
        months=own.months,
        basket={
            member: had.months if isinstance(had, PriceHistory) else (None,) * MONTHS
            for member, had in basket.items()
        },
        price=float(position.price.amount),
        average_cost=float(position.average_cost.amount),
        opened_on=position.opened_on,
        sessions_held=sessions_held(position, held.as_of, sessions),
        close=own.close,
        peak=own.close if is_new else own.peak,
        month="{:04d}-{:02d}".format(*held.month),
        closes_since=own.closes_since,
    )


def sessions_held(position: Position, as_of: date, sessions: SessionsBetween) -> int | None:
    """Sessions after the one that opened the position; 0 of one bought after as_of's close."""
    if position.opened_on is None:
        return None
    return max(len(sessions(position.opened_on, as_of)) - 1, 0)
