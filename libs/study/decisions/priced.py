"""Decisions of a file on the sessions and prices of a source.

A decision counts at the first open after it was known. A date alone is known after the close of
that day's session, so it counts at the open of the next one.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import pairwise
from math import inf
from statistics import median

import numpy as np

from libs.facts import amounts
from libs.market.bar_notes import notes_of
from libs.market.calendar import DayKind, ExchangeCalendar, OutsideCalendar
from libs.market.errors import UNPRICED
from libs.market.listed_calendars import compute, known_calendar
from libs.market.sessions import Sessions
from libs.market.source import FillPrices, HasFiles, MarketData, bars_until
from libs.quant.arrays import Array
from libs.study.decisions.stated import DecisionForm, StatedDecision, StatedFile, Untraded
from libs.study.statistics.walks import Orders, PricePanel

NAMED_MAX = 5
"""Tickers, and oddities of prices, that are named."""


class NothingToScore(Exception):
    """A file's decisions cannot be scored; the message says why, `remedy` what to do."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class PriceSource:
    """A source of prices: up to a session, at the open after one, and its sessions."""

    market: MarketData
    fills: FillPrices
    sessions: Sessions


@dataclass(frozen=True, slots=True)
class PricedDecisions:
    """The decisions as orders on the panel of `tickers` and `sessions`, the first of which is
    before any order. `lines` has by order and ticker the line of the decision. `absent` says of
    tickers why they have no prices, `ended` when those traded last that did not to the end.
    `currency` is that of all prices, "" where they have several."""

    tickers: Sequence[str]
    sessions: Sequence[date]
    panel: PricePanel
    orders: Sequence[Orders]
    lines: Sequence[Mapping[str, int]]
    unplaced: Sequence[Untraded]
    absent: Mapping[str, str]
    ended: Mapping[str, date]
    currency: str
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Series:
    """The prices of a ticker by session, adjusted to the last one, and where it trades."""

    opens: Mapping[date, float]
    closes: Mapping[date, float]
    calendar: ExchangeCalendar
    currency: str
    oddities: Sequence[str]


Known = tuple[datetime, StatedDecision]
"""A decision, and the moment at which it was known."""


async def priced(
    read: StatedFile, source: PriceSource, *, until: date | None, sells_unnamed: bool
) -> PricedDecisions:
    """The orders of a file's decisions. Raises NothingToScore, and MarketError where the source
    does not answer."""
    calendar, latest = source.sessions.calendar, await source.sessions.latest()
    latest = latest if until is None else min(until, latest)
    unplaced: list[Untraded] = []
    known = _known(read.decisions, calendar, unplaced)
    try:
        sessions = _sessions(min(at for at, _ in known), latest, calendar)
    except (ValueError, OutsideCalendar) as error:
        what = f"no decision is known before the open of a session up to {latest}"
        raise NothingToScore(f"{what}, the last one", "bring prices of its years") from error
    series, absent = await _series(read.tickers, source.market, sessions)
    notes = _notes(read, source, series)
    placed = _placed(known, series, sessions, calendar, unplaced)
    if not placed:
        first = next(iter(absent.values()), unplaced[0].why if unplaced else "")
        raise NothingToScore(f"none of its decisions can be scored: {first}", "see --prices")
    days = sorted(placed)
    sessions = sessions[bisect_left(sessions, days[0]) - 1 :]
    if until is None and len(days) > 1:
        sessions, gap = _to_last(sessions, days)
        notes.append(
            f"it ends with the close of {sessions[-1]}: the last decision gets as long as the "
            f"middle one, {amounts.count(gap, 'session')} (--until says another day)"
        )
    tickers = sorted(series)
    panel = _panel([series[name] for name in tickers], sessions)
    is_whole = read.form is DecisionForm.WEIGHTS and sells_unnamed
    chosen = {day: _chosen(placed[day], read.form, is_whole=is_whole) for day in days}
    replaced = sum(len(placed[day]) - len(chosen[day]) for day in days)
    if replaced:
        notes.append(f"{replaced:,} decisions were replaced by a later one before the same open")
    if is_whole:
        notes.append("a ticker without a row at a time is sold then (--keep-unnamed keeps it)")
    named: dict[datetime, set[str]] = {}
    for at, it in known:
        named.setdefault(at, set()).add(it.ticker)
    orders = []
    for day in days:
        place = bisect_left(sessions, day)
        whole = named[chosen[day][0][0]] if is_whole else None
        order = _order(chosen[day], read.form, tickers, place, whole)
        if read.form is DecisionForm.TRADES:
            shares = await _shares(chosen[day], tickers, panel.opens[place], source, day)
            order = replace(order, shares=shares)
        orders.append(order)
    currencies = {it.currency for it in series.values()}
    return PricedDecisions(
        tickers=tickers,
        sessions=sessions,
        panel=panel,
        orders=orders,
        lines=[{it.ticker: it.line for _, it in chosen[day]} for day in days],
        unplaced=unplaced,
        absent=absent,
        ended={n: last for n in tickers if (last := max(series[n].closes)) < sessions[-1]},
        currency=currencies.pop() if len(currencies) == 1 else "",
        notes=notes,
    )


def _known(
    decisions: Sequence[StatedDecision], calendar: ExchangeCalendar, unplaced: list[Untraded]
) -> Sequence[Known]:
    """The decisions with the moment at which each was known; those outside the calendar go to
    `unplaced`."""
    known: list[Known] = []
    for it in decisions:
        try:
            known.append((_known_at(it.at, calendar), it))
        except OutsideCalendar as error:
            unplaced.append(Untraded(line=it.line, ticker=it.ticker, why=error.message))
    return known


def _placed(
    known: Sequence[Known],
    series: Mapping[str, _Series],
    sessions: Sequence[date],
    calendar: ExchangeCalendar,
    unplaced: list[Untraded],
) -> Mapping[date, Sequence[Known]]:
    """By the session of the open at which they count; those without one go to `unplaced`."""
    placed: dict[date, list[Known]] = {}
    for at, it in known:
        of = series.get(it.ticker)
        session = None if of is None else _first_open(at, sessions, calendar, of.calendar)
        if of is None:
            why = "no prices"
        elif session is None:
            why = f"it counts at an open after {sessions[-1]}, the last session"
        elif session < min(of.opens):
            why = f"it counts at the open of {session}, before its first price"
        else:
            placed.setdefault(session, []).append((at, it))
            continue
        unplaced.append(Untraded(line=it.line, ticker=it.ticker, why=why))
    return placed


def _to_last(sessions: Sequence[date], days: Sequence[date]) -> tuple[Sequence[date], int]:
    """The sessions up to the end of the last decision, and how many that one gets: as many as the
    middle one of the others."""
    places = [bisect_left(sessions, day) for day in days]
    gap = round(median(after - before for before, after in pairwise(places)))
    return sessions[: places[-1] + gap], gap


def _known_at(at: datetime | date, calendar: ExchangeCalendar) -> datetime:
    """The moment at which a decision was known. Raises OutsideCalendar."""
    if isinstance(at, datetime):
        calendar.session_on_or_before(at.astimezone(calendar.zone).date())
        return at
    return calendar.close(calendar.session_on_or_before(at))


def _sessions(first: datetime, latest: date, calendar: ExchangeCalendar) -> Sequence[date]:
    """From the session before the first decision to the last price. Raises ValueError where that is
    none, and OutsideCalendar."""
    start = calendar.session_on_or_before(first.astimezone(calendar.zone).date())
    sessions = calendar.sessions(calendar.previous_session(start), latest)
    if len(sessions) < 2:
        raise ValueError("no session")
    return sessions


async def _series(
    tickers: Sequence[str], market: MarketData, sessions: Sequence[date]
) -> tuple[Mapping[str, _Series], Mapping[str, str]]:
    """The prices of the tickers that have some, and why others have none."""
    series, absent = {}, {}
    for ticker in tickers:
        try:
            frame = await bars_until(market, ticker, sessions[-1], len(sessions))
            days = frame["date"].to_list()
            if not days or days[-1] < sessions[1]:
                absent[ticker] = f"{ticker}: its last price is before the first decision counts"
                continue
            listed = await market.universe(days[-1], (ticker,))
        except UNPRICED as error:
            absent[ticker] = error.message
            continue
        if not listed:
            absent[ticker] = f"{ticker}: the source does not say where it trades"
            continue
        await compute([listed[0].exchange])
        own = known_calendar(listed[0].exchange) or market.calendar
        series[ticker] = _Series(
            dict(zip(days, frame["open"].to_list(), strict=True)),
            dict(zip(days, frame["close"].to_list(), strict=True)),
            own,
            listed[0].currency,
            notes_of(ticker, frame, own, market.label.jump_pct),
        )
    return series, absent


def _notes(read: StatedFile, source: PriceSource, series: Mapping[str, _Series]) -> list[str]:
    """Sentences on the prices. Raises NothingToScore where numbers of shares have no value."""
    notes: list[str] = []
    currencies = sorted({of.currency for of in series.values()})
    is_trades = read.form is DecisionForm.TRADES
    if len(currencies) > 1:
        names = ", ".join(currencies)
        if is_trades:
            what = f"shares priced in {names}: numbers of shares cannot be added up"
            raise NothingToScore(what, "give weights, or a file a currency")
        notes.append(f"prices are in {names}: each return is in its own, no exchange rate counts")
    market = source.market
    caveats = {name: market.caveat(name) for name in series} if isinstance(market, HasFiles) else {}
    adjusted = [name for name, caveat in caveats.items() if caveat]
    if adjusted:
        names = ", ".join(adjusted[:NAMED_MAX]) + (
            " and others" if len(adjusted) > NAMED_MAX else ""
        )
        if is_trades:
            what = (
                f"{names}: {caveats[adjusted[0]]}, so a number of shares was worth something else"
            )
            raise NothingToScore(what, "give weights, or bring prices as they were traded")
        # What a decision saw is the file's own affair: here prices are for returns alone.
        notes.append(f"{names}: {caveats[adjusted[0]].partition(':')[0]} already")
    odd = [f"{name}: {note}" for name, of in series.items() for note in of.oddities]
    more = [f"and {len(odd) - NAMED_MAX:,} more such prices"] if len(odd) > NAMED_MAX else []
    return [*notes, *odd[:NAMED_MAX], *more]


def _first_open(
    at: datetime, sessions: Sequence[date], calendar: ExchangeCalendar, own: ExchangeCalendar
) -> date | None:
    """The first session whose open is after a moment; None after the last one. `own` is the
    calendar of the ticker's exchange, whose open may be many hours from the source's."""
    place = max(bisect_left(sessions, at.astimezone(calendar.zone).date()) - 1, 0)
    for session in sessions[place:]:
        if own.is_session(session):
            opens = own.open(session)
        elif own.kind(session) is DayKind.OUTSIDE:
            opens = calendar.open(session)
        else:
            continue
        if opens > at:
            return session
    return None


def _chosen(known: Sequence[Known], form: DecisionForm, *, is_whole: bool) -> Sequence[Known]:
    """The decisions that count at an open: of whole portfolios the newest, else the newest of each
    ticker; trades all."""
    ordered = sorted(known, key=lambda pair: pair[0])
    if form is DecisionForm.TRADES:
        return ordered
    if is_whole:
        return [pair for pair in ordered if pair[0] == ordered[-1][0]]
    return list({it.ticker: (at, it) for at, it in ordered}.values())


def _order(
    chosen: Sequence[Known],
    form: DecisionForm,
    tickers: Sequence[str],
    place: int,
    named: Set[str] | None,
) -> Orders:
    """The order for an open. Of a whole portfolio `named` are its tickers, at whichever exchange
    they open: all others are sold."""
    low, high = np.full(len(tickers), -inf), np.full(len(tickers), inf)
    if named is not None:
        unnamed = [name not in named for name in tickers]
        low[unnamed] = high[unnamed] = 0.0
    slot = 1 / len(tickers) if form is DecisionForm.RATINGS else 1.0
    for _, it in chosen:
        at = tickers.index(it.ticker)
        low[at], high[at] = it.low * slot, it.high * slot
    return Orders(place, low, high, np.zeros(len(tickers)))


async def _shares(
    chosen: Sequence[Known],
    tickers: Sequence[str],
    opens: Array,
    source: PriceSource,
    day: date,
) -> Array:
    """The shares that are bought, below 0 sold, as the panel's adjusted prices count them. The file
    means shares before a split at that very open. 0 where a ticker does not trade."""
    shares = np.zeros(len(tickers))
    before = source.sessions.calendar.previous_session(day)
    for name in {it.ticker for _, it in chosen}:
        at = tickers.index(name)
        wanted = sum(it.shares for _, it in chosen if it.ticker == name)
        if wanted and np.isfinite(opens[at]):
            fill = await source.fills.next_open(name, before)
            split = float(fill.action.split_ratio) if fill.action else 1.0
            shares[at] = wanted * split * float(fill.open) / opens[at]
        else:
            shares[at] = wanted
    return shares


def _panel(series: Sequence[_Series], sessions: Sequence[date]) -> PricePanel:
    opens = np.full((len(sessions), len(series)), np.nan)
    closes = np.zeros((len(sessions), len(series)))
    for column, of in enumerate(series):
        last = 0.0
        for row, day in enumerate(sessions):
            last = of.closes.get(day, last)
            opens[row, column], closes[row, column] = of.opens.get(day, np.nan), last
    return PricePanel(opens, closes)
