"""The facts of one ticker at as_of, read from a market source: what the rules judge by.

Research fills them into what a model answered, and execution reads them again for itself.
"""

from collections.abc import Awaitable, Iterable
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import TypeVar

from contracts.facts import (
    CATALYST_DAYS_MAX,
    EVENTS_MAX,
    UNKNOWN_SECTOR,
    DatedEvent,
    EventKind,
    ReportAhead,
    TickerFacts,
)
from libs.facts.marks import event_mark
from libs.market.calendar import ExchangeCalendar
from libs.market.errors import LookAhead, MarketError, NotInSource, SourceUnavailable, UnknownTicker
from libs.market.exits import exits_at_entry
from libs.market.filings.reported import Filing
from libs.market.filings.words import filing_text
from libs.market.issuers import issuer_of
from libs.market.source import EarningsReport, Listing, MarketData, NewsItem, price_kept
from libs.quant.exits.terms import ExitTerms
from libs.quant.indicators import average_true_range
from libs.quant.risk.score import RISK_CLOSES_WANTED, measured_risk
from libs.quant.ticks import PRICE_STEP
from libs.runtime.untrusted import clean_line

T = TypeVar("T")

HEADLINES_MAX = EVENTS_MAX - 2
"""Of one ticker, beside its last report and the next one."""
TEXT_CHARS_MAX = 200
NO_OWN_TERMS = ExitTerms()
"""Of an account without exit rules of its own."""


async def facts_of(
    market: MarketData,
    ticker: str,
    as_of: date,
    terms: ExitTerms | None = NO_OWN_TERMS,
    *,
    terms_note: str = "",
    without_events: bool = False,
) -> TickerFacts:
    """Listing, close, measured risk, range, dated events, the next report, and how exit rules of
    these `terms` judge a position that is bought now (None: they cannot be read). `terms_note` says
    that the file has others now. Raises MarketError where the ticker has no price at as_of; a
    source without news or earnings has no events of them.

    With `without_events` one that cannot answer for them now has none either, and no calendar:
    execution, which judges last, waits for it.
    """
    bars = await market.bars(ticker, as_of, RISK_CLOSES_WANTED)
    closes = bars["close"].to_list()
    listing = await _listing(market, ticker, as_of)
    risk = measured_risk(closes)
    atr = average_true_range(bars)
    away = (SourceUnavailable,) if without_events else ()
    reports = await _unless(away, _earnings(market, ticker, as_of), ())
    issuer = await _unless(away, issuer_of(market, listing), listing.issuer)
    return TickerFacts(
        ticker=ticker,
        name=clean_line(listing.name, TEXT_CHARS_MAX),
        exchange=clean_line(listing.exchange, TEXT_CHARS_MAX),
        currency=listing.currency,
        sector=clean_line(listing.sector, TEXT_CHARS_MAX) or UNKNOWN_SECTOR,
        price=price_kept(ticker, closes[-1]),
        measured_risk=risk.score,
        risk_reason=risk.reason,
        atr=None if atr is None else Decimal(str(atr)).quantize(PRICE_STEP, ROUND_CEILING),
        report=_report_ahead(reports, as_of, market.calendar),
        has_reports=bool(reports),
        issuer=clean_line(issuer, TEXT_CHARS_MAX),
        lot=listing.lot,
        exits=None if terms is None else await exits_at_entry(market, ticker, as_of, terms),
        exits_note=terms_note,
        events=await _unless(away, dated_events(market, ticker, as_of), ()),
    )


def _report_ahead(
    reports: Iterable[EarningsReport], as_of: date, calendar: ExchangeCalendar
) -> ReportAhead | None:
    """The next report that is announced, on as_of itself or later."""
    days = (report.report_date for report in reports if report.eps_actual is None)
    ahead = min((day for day in days if day >= as_of), default=None)
    if ahead is None:
        return None
    return ReportAhead(on=ahead, sessions=_sessions_until(ahead, as_of, calendar))


def _sessions_until(day: date, as_of: date, calendar: ExchangeCalendar) -> int:
    """Sessions after as_of up to the first one on or after `day`."""
    if day <= as_of:
        return 0
    passed = calendar.sessions(as_of + timedelta(days=1), day)
    return len(passed) if passed and passed[-1] == day else len(passed) + 1


async def dated_events(market: MarketData, ticker: str, as_of: date) -> tuple[DatedEvent, ...]:
    """The ticker's events, past or announced, within CATALYST_DAYS_MAX of as_of.

    Newest first, all known at as_of's close: LookAhead where the source says otherwise.
    """
    absent = (NotInSource,)
    news = await _unless(absent, market.news(as_of, (ticker,), HEADLINES_MAX), ())
    filings = await _unless(absent, market.filings(ticker, as_of), ())
    events = [
        *map(headline_event, news),
        *map(filing_event, filings),
        *_report_events(await _earnings(market, ticker, as_of), as_of),
    ]
    close = market.calendar.close(as_of)
    for event in events:
        if event.known_at > close:
            raise LookAhead(f"an event of {ticker}", event.known_at, as_of)
    near = [event for event in events if abs((event.on - as_of).days) <= CATALYST_DAYS_MAX]
    near.sort(key=lambda event: (event.on, event.id), reverse=True)
    return tuple(near[:EVENTS_MAX])


def headline_event(item: NewsItem) -> DatedEvent:
    """A headline as a dated event."""
    title = clean_line(item.title, TEXT_CHARS_MAX)
    known_on = item.known_at.date()
    return _event(item.ticker, EventKind.HEADLINE, known_on, item.known_at, title)


def report_event(report: EarningsReport) -> DatedEvent:
    """An earnings report as a dated event: announced until it was reported."""
    if report.eps_actual is None:
        kind, text = EventKind.ANNOUNCED, f"report on the period that ended {report.period_end}"
    else:
        kind, text = EventKind.REPORT, f"on the period that ended {report.period_end}"
    return _event(report.ticker, kind, report.report_date, report.known_at, text)


def filing_event(filing: Filing) -> DatedEvent:
    """A filing as a dated event, in words of the desk's own."""
    text = clean_line(filing_text(filing), TEXT_CHARS_MAX)
    return _event(filing.ticker, EventKind.FILING, filing.filed, filing.known_at, text)


def _event(ticker: str, kind: EventKind, on: date, known_at: datetime, text: str) -> DatedEvent:
    mark = event_mark(ticker, kind.value, on, known_at, text)
    return DatedEvent(
        id=f"{kind.value}-{mark}", ticker=ticker, kind=kind, on=on, known_at=known_at, text=text
    )


def _report_events(reports: Iterable[EarningsReport], as_of: date) -> list[DatedEvent]:
    """The reports that were made or are expected: a day that has passed without one is no event."""
    return [
        report_event(report)
        for report in reports
        if report.eps_actual is not None or report.report_date >= as_of
    ]


async def _listing(market: MarketData, ticker: str, as_of: date) -> Listing:
    listings = await market.universe(as_of, (ticker,))
    if not listings:
        raise UnknownTicker(ticker, market.label.name)
    return listings[0]


async def _earnings(market: MarketData, ticker: str, as_of: date) -> tuple[EarningsReport, ...]:
    return await _unless((NotInSource,), market.earnings(as_of, (ticker,)), ())


async def _unless(errors: tuple[type[MarketError], ...], question: Awaitable[T], absent: T) -> T:
    """The answer; `absent` where it is one of these errors."""
    try:
        return await question
    except errors:
        return absent
