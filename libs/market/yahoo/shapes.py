"""Yahoo's listings, headlines, reports and figures as the desk's values. Pure, as yahoo_bars.py."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from contracts.facts import UNKNOWN_SECTOR
from libs.market.errors import MarketError
from libs.market.source import (
    EarningsReport,
    Fundamentals,
    Listing,
    NewsItem,
)
from libs.market.symbols import lot_of, venue_of
from libs.market.yahoo.bars import YahooSeries
from libs.market.yahoo.calls import YahooReport

SHARES_DIGITS = 5
"""Of a count made from value and price: what is beyond moves with the price's rounding."""
PE_TOLERANCE = 0.02
"""How far Yahoo's P/E may lie from price over earnings before the two contradict each other."""
REPORT_HOUR = timedelta(hours=1)
"""Yahoo gives a report's hour, so it counts as known at the end of that hour."""


def listing_of(series: YahooSeries, symbol: str, rows: Iterable[Mapping[str, Any]]) -> Listing:
    """The listing as Yahoo's search describes its symbol; by its ticker where it does not."""
    match = next((row for row in rows if str(row.get("symbol") or "") == symbol), {})
    return unnamed(
        series,
        name=str(match.get("longname") or match.get("shortname") or ""),
        sector=str(match.get("sector") or ""),
    )


def unnamed(series: YahooSeries, name: str = "", sector: str = "") -> Listing:
    """The listing as far as prices alone describe it."""
    venue = venue_of(series.ticker)
    return Listing(
        ticker=series.ticker,
        name=name or series.ticker,
        sector=sector or UNKNOWN_SECTOR,
        exchange=series.exchange,
        currency=series.currency,
        country=venue.country if venue else "",
        lot=lot_of(series.exchange),
    )


def news_of(ticker: str, items: Iterable[Mapping[str, Any]]) -> tuple[Sequence[NewsItem], int]:
    """Dated headlines, newest first, and how many had no date or no title."""
    headlines, dropped = [], 0
    for item in items:
        content = item.get("content")
        fields = content if isinstance(content, Mapping) else item
        known_at, title = _published(fields), fields.get("title")
        if known_at is None or not isinstance(title, str) or not title.strip():
            dropped += 1
            continue
        headlines.append(
            NewsItem(
                ticker=ticker,
                title=title,
                summary=str(fields.get("summary") or fields.get("description") or ""),
                publisher=_inner(fields, "provider", "displayName")
                or str(fields.get("publisher", "")),
                url=_inner(fields, "canonicalUrl", "url")
                or _inner(fields, "clickThroughUrl", "url")
                or str(fields.get("link") or ""),
                known_at=known_at,
            )
        )
    return sorted(headlines, key=lambda headline: headline.known_at, reverse=True), dropped


def _inner(fields: Mapping[str, Any], outer: str, inner: str) -> str:
    value = fields.get(outer)
    return str(value.get(inner) or "") if isinstance(value, Mapping) else ""


def _published(fields: Mapping[str, Any]) -> datetime | None:
    """The later of publication and display: a headline may have been rewritten in between."""
    times = [_moment(fields.get(key)) for key in ("pubDate", "displayTime", "providerPublishTime")]
    return max((moment for moment in times if moment is not None), default=None)


def _moment(value: object) -> datetime | None:
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        moment = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return None
    return None if moment.tzinfo is None else moment.astimezone(UTC)


def earnings_of(
    reports: Iterable[YahooReport], close: datetime, zone: ZoneInfo
) -> tuple[EarningsReport, ...]:
    """The reports as they stood at `close`: what came later shows as still to come.

    Yahoo does not name the period: `period_end` is the last calendar quarter's before the report.
    """
    rows: dict[tuple[str, date], EarningsReport] = {}
    for report in sorted(reports, key=lambda report: report.at):
        out = report.at + REPORT_HOUR <= close
        day = report.at.astimezone(zone).date()
        row = EarningsReport(
            ticker=report.ticker,
            period_end=_quarter_before(day),
            report_date=day,
            known_at=report.at + REPORT_HOUR if out else close,
            eps_estimate=report.eps_estimate,
            eps_actual=report.eps_actual if out else None,
        )
        rows[report.ticker, row.period_end] = row
    return tuple(sorted(rows.values(), key=lambda row: (row.report_date, row.ticker)))


def _quarter_before(day: date) -> date:
    first = date(day.year, 3 * ((day.month - 1) // 3) + 1, 1)
    return first - timedelta(days=1)


def fundamentals_of(
    series: YahooSeries, info: Mapping[str, Any], as_of: date, close: datetime, asked_at: datetime
) -> Fundamentals | None:
    """The figures as they stood at `close`; None where Yahoo has none, such as for a fund.

    Raises ReportedSince where a report came out between `close` and `asked_at`.
    """
    ended = _moment(info.get("mostRecentQuarter"))
    if ended is None:
        return None
    for key in ("earningsTimestamp", "earningsTimestampStart", "earningsTimestampEnd"):
        at = _moment(info.get(key))
        if at is not None and close - REPORT_HOUR < at <= asked_at:
            raise ReportedSince(series.ticker, at)
    price = series.frame.filter(pl.col("date") == as_of)["close"][0]
    debt = _figure(info, "debtToEquity")
    return Fundamentals(
        ticker=series.ticker,
        period_end=ended.date(),
        known_at=close,
        currency=str(info.get("financialCurrency") or "") or series.currency,
        eps_ttm=_earnings(info, price),
        shares_outstanding=_shares(info, price),
        revenue_ttm=_figure(info, "totalRevenue"),
        profit_margin_pct=_percent(info, "profitMargins"),
        operating_margin_pct=_percent(info, "operatingMargins"),
        debt_to_equity=None if debt is None else debt / 100,  # Yahoo says it in percent
        dividend_per_share_ttm=_paid_in_a_year(series, as_of),
    )


def _earnings(info: Mapping[str, Any], price: float) -> float | None:
    """Earnings per share in the price's currency: Yahoo's P/E of the same answer has to agree.

    A loss has no P/E to agree with, and is taken as Yahoo says it.
    """
    earned, ratio = _figure(info, "trailingEps"), _figure(info, "trailingPE")
    if not earned or not ratio:
        return earned
    return earned if abs(price / earned / ratio - 1) <= PE_TOLERANCE else None


def _shares(info: Mapping[str, Any], price: float) -> float | None:
    """The whole company in shares of this listing, by Yahoo's market value of it.

    `sharesOutstanding` counts one class of shares alone, and shares rather than receipts.
    """
    value = _figure(info, "marketCap")
    return None if not value or value <= 0 else float(f"{value / price:.{SHARES_DIGITS}g}")


class ReportedSince(MarketError):
    """A report came out after as_of's close, and the data may already contain it."""

    code = "reported_since"

    def __init__(self, ticker: str, at: datetime) -> None:
        super().__init__(
            f"{ticker} reported at {at.isoformat()}, after the close, and Yahoo shows only the "
            "newest numbers; try again for the next session"
        )


def _figure(info: Mapping[str, Any], key: str) -> float | None:
    value = info.get(key)
    return float(value) if isinstance(value, int | float) and value == value else None  # noqa: PLR0124


def _percent(info: Mapping[str, Any], key: str) -> float | None:
    value = _figure(info, key)
    return None if value is None else round(value * 100, 6)


def _paid_in_a_year(series: YahooSeries, as_of: date) -> float | None:
    """Cash per share of the 365 days to as_of, in as_of's shares."""
    known = series.frame.filter(pl.col("date") <= as_of)
    if known.is_empty():
        return None
    year = known.filter(pl.col("date") > as_of - timedelta(days=365))
    shares = year["share_growth"] / known["share_growth"][-1]
    return float((year["dividend"] * shares).sum())
