"""Yahoo's charts as raw bars. Pure: nothing here asks, waits or knows the time.

Yahoo's daily prices are adjusted for every split until now, also those after as_of, and may be in
pence. What comes out of here is raw, as traded on the day, in whole currency units: the form that
does not change when the future happens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from libs.market.calendar import ExchangeCalendar
from libs.market.errors import (
    BadVendorData,
    CryptoNotSupported,
    NotAnEquity,
    SourceUnavailable,
)
from libs.market.rates import Quote
from libs.market.replay.files import within_range
from libs.market.replay.store import with_growth
from libs.market.symbols import venue_of
from libs.market.yahoo.calls import YahooChart

SETTLED_AFTER = timedelta(minutes=30)
"""After a close: until then Yahoo's last bar may still move, so it does not count."""
PRICE_DIGITS = 7
"""Yahoo's prices are single precision: digits beyond are noise of the un-adjustment."""

RANGE_NOISE = 1e-4
"""Yahoo's open and close come from other feeds than its low and high, and differ in rounding."""

_PRICES = ("open", "high", "low", "close")
_MINOR_UNITS = {"GBp": "GBP", "GBX": "GBP", "ZAc": "ZAR", "ILA": "ILS"}
_EQUITIES = {"EQUITY", "ETF"}
_PAIRS = {"CRYPTOCURRENCY", "CURRENCY"}
# Yahoo's exchange codes without a suffix in the ticker; European ones go by the suffix.
_EXCHANGES = {
    "NMS": "XNAS",
    "NGM": "XNAS",
    "NCM": "XNAS",
    "NAS": "XNAS",
    "NYQ": "XNYS",
    "ASE": "XASE",
    "PCX": "ARCX",
    "BTS": "BATS",
    # The tiers of OTC Markets.
    "PNK": "PINX",
    "OQB": "OTCB",
    "OQX": "OTCQ",
}
# No split worth the name moves the price less; no ordinary day moves it more.
_SPLIT_STEP_MIN = 1.4
_SPLIT_TOLERANCE = 1.15
# A unit mix-up is a factor of 100; the adjusted close is never off by ten.
_UNIT_STEP = 10.0


@dataclass(frozen=True)
class YahooSeries:
    """The raw bars of one listing in the form of a replay store, and how to read their dates."""

    ticker: str
    frame: pl.DataFrame
    since: date
    currency: str
    exchange: str
    zone: ZoneInfo
    closes_at: time
    calendar: ExchangeCalendar

    def until(self, day: date) -> "YahooSeries":
        """The same up to `day`."""
        return replace(self, frame=self.frame.filter(pl.col("date") <= day))

    def closed(self, day: date) -> datetime:
        """The time at which the listing's own exchange closed on `day`."""
        if self.zone.key == self.calendar.zone.key and self.calendar.is_session(day):
            return self.calendar.close(day)
        return datetime.combine(day, self.closes_at, tzinfo=self.zone).astimezone(UTC)


def series_of(
    ticker: str, chart: YahooChart, since: date, now: datetime, calendar: ExchangeCalendar
) -> YahooSeries:
    """The bars that had settled at `now`; raises where the instrument is none that trades here."""
    meta = chart.meta
    _require_equity(ticker, str(meta.get("instrumentType") or ""))
    quoted = str(meta.get("currency") or "")
    if not quoted:
        raise BadVendorData(f"prices of {ticker}", "no currency")
    series = YahooSeries(
        ticker=ticker,
        frame=_raw_bars(ticker, chart, quoted),
        since=since,
        currency=_MINOR_UNITS.get(quoted, quoted),
        exchange=_exchange(ticker, str(meta.get("exchangeName") or "")),
        zone=_zone(ticker, str(meta.get("exchangeTimezoneName") or "")),
        closes_at=_closes_at(meta),
        calendar=calendar,
    )
    # The forming bar carries today's date: without this the desk would see a close to come.
    settled = [series.closed(day) + SETTLED_AFTER <= now for day in series.frame["date"]]
    frame = series.frame.filter(pl.Series(settled, dtype=pl.Boolean))
    return replace(series, frame=with_growth(frame))


def quotes_of(pair: str, chart: YahooChart, now: datetime) -> tuple[Quote, ...]:
    """The closes of the days that had ended at `now`, ascending."""
    if chart.meta.get("instrumentType") != "CURRENCY":
        raise BadVendorData(f"rates of {pair}", "no pair of currencies")
    zone = _zone(pair, str(chart.meta.get("exchangeTimezoneName") or ""))
    quotes = []
    for day, rate in zip(chart.dates, chart.columns["Close"], strict=True):
        ends = datetime.combine(day + timedelta(days=1), time(), tzinfo=zone).astimezone(UTC)
        if ends <= now and rate > 0:  # a missing one is NaN, and not above zero
            quotes.append(Quote(day, float(f"{rate:.{PRICE_DIGITS}g}"), ends))
    return tuple(quotes)


def _require_equity(ticker: str, kind: str) -> None:
    if kind in _PAIRS:
        raise CryptoNotSupported(ticker)
    if kind not in _EQUITIES:
        raise NotAnEquity(ticker, kind or "unknown")


def _zone(ticker: str, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise BadVendorData(f"prices of {ticker}", f"unknown time zone {name[:40]!r}") from error


def _closes_at(meta: Mapping[str, Any]) -> time:
    period = (meta.get("currentTradingPeriod") or {}).get("regular") or {}
    ends = period.get("end")
    # Not told: the end of the day, the latest that it can be.
    return ends.time() if isinstance(ends, datetime) else time.max


def _exchange(ticker: str, code: str) -> str:
    venue = venue_of(ticker)
    return venue.exchange if venue is not None else _EXCHANGES.get(code, code or "unknown")


def _raw_bars(ticker: str, chart: YahooChart, quoted: str) -> pl.DataFrame:
    table = _checked_splits(ticker, _gathered(ticker, chart))
    later = pl.col("split_factor").cum_prod(reverse=True).shift(-1).fill_null(1.0)
    unit = 0.01 if quoted in _MINOR_UNITS else 1.0
    table = table.with_columns(dividend=_dividends(ticker, table, chart, quoted))
    return table.select(
        "date",
        *((pl.col(name) * later * unit).round_sig_figs(PRICE_DIGITS) for name in _PRICES),
        (pl.col("volume") / later).round(0),
        (pl.col("dividend") * later * unit).round_sig_figs(PRICE_DIGITS),
        "split_factor",
    ).filter(pl.col("close").is_not_null())


def _gathered(ticker: str, chart: YahooChart) -> pl.DataFrame:
    """Rows with whole prices that agree; events of other rows move on to the next one of these."""
    try:
        paid = chart.columns["Dividends"]
        gains = chart.columns.get("Capital Gains", [0.0] * len(paid))
        table = pl.DataFrame(
            {
                "date": pl.Series(chart.dates, dtype=pl.Date),
                **{name: chart.columns[name.title()] for name in _PRICES},
                "adjusted": chart.columns["Adj Close"],
                "volume": chart.columns["Volume"],
                "dividend": [a + b for a, b in zip(paid, gains, strict=True)],
                "split_factor": chart.columns["Stock Splits"],
            },
            schema_overrides=dict.fromkeys([*_PRICES, "adjusted", "volume"], pl.Float64),
        )
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise BadVendorData(f"prices of {ticker}", f"columns {str(error)[:80]}") from error
    whole = pl.all_horizontal(pl.col(name).is_finite() & (pl.col(name) > 0) for name in _PRICES)
    whole = whole & (pl.col("high") >= pl.col("low")) & (pl.col("date").dt.weekday() <= 5)
    # A bar that contradicts itself is none: its session is missing, which the tools tell.
    whole = whole & within_range("open", RANGE_NOISE) & within_range("close", RANGE_NOISE)
    table = table.with_columns(
        whole=whole.fill_null(value=False),
        volume=pl.col("volume").fill_nan(0.0).fill_null(0.0).clip(lower_bound=0.0),
        dividend=pl.col("dividend").cast(pl.Float64).fill_nan(0.0).fill_null(0.0),
        split_factor=_split_or_one(),
    ).with_columns(before=pl.col("whole").cum_sum().shift(1, fill_value=0))
    rows = table.group_by("before", maintain_order=True).agg(
        pl.col("date", *_PRICES, "adjusted", "volume", "whole").last(),
        pl.col("dividend").sum(),
        pl.col("split_factor").product(),
    )
    return rows.with_columns(
        pl.when("whole").then(pl.col(name)).alias(name) for name in (*_PRICES, "adjusted")
    )


def _split_or_one() -> pl.Expr:
    factor = pl.col("split_factor").cast(pl.Float64)
    return pl.when(factor.is_finite() & (factor > 0)).then(factor).otherwise(1.0)


def _checked_splits(ticker: str, table: pl.DataFrame) -> pl.DataFrame:
    """Refuse a split that Yahoo lists but has not yet worked into the prices before it."""
    factors, closes = table["split_factor"], table["close"]
    for row in range(1, table.height):
        factor, price, before = factors[row], closes[row], closes[row - 1]
        if max(factor, 1 / factor) < _SPLIT_STEP_MIN:
            continue
        if price is None or before is None:
            raise SourceUnavailable(
                f"prices of {ticker}", f"it splits on {table['date'][row]} and has no price since"
            )
        moved = before / price
        if max(moved / factor, factor / moved) < _SPLIT_TOLERANCE:
            raise BadVendorData(
                f"prices of {ticker}", f"the split of {table['date'][row]} is not in its prices"
            )
    return table


def _dividends(ticker: str, table: pl.DataFrame, chart: YahooChart, quoted: str) -> pl.Series:
    """The dividends, in the unit of the prices.

    London's dividends come in pounds or pence, others in another currency. Where the amount cannot
    be in the unit of the prices, it is what the adjusted close says: Yahoo lowers all earlier ones
    by 1 - dividend / close of the day before.
    """
    dividends = []
    factor = (table["adjusted"] / table["close"]).to_list()
    closes, days = table["close"].to_list(), table["date"].to_list()
    for row, amount in enumerate(table["dividend"].to_list()):
        if amount <= 0 or row == 0:
            dividends.append(max(amount, 0.0))
            continue
        unit = chart.paid_in.get(days[row], quoted)
        implied = _implied(closes[row - 1], factor[row - 1], factor[row])
        if implied is not None and (unit != quoted or not _near(amount, implied)):
            dividends.append(implied)
        elif unit != quoted:
            raise BadVendorData(f"prices of {ticker}", f"a dividend in {unit[:8]} on {days[row]}")
        else:
            dividends.append(amount)
    return pl.Series(dividends, dtype=pl.Float64)


def _implied(before: float | None, old: float | None, new: float | None) -> float | None:
    if before is None or not old or not new:
        return None
    paid = before * (1 - old / new)
    return paid if paid > before * 1e-5 else None


def _near(amount: float, implied: float) -> bool:
    return 1 / _UNIT_STEP < amount / implied < _UNIT_STEP
