"""The one place that speaks to yfinance: synchronous questions, answers in plain values.

yfinance is loaded by the first question, because that takes seconds. Its session, cookies and
caches are one a process, and so is their directory. It must not hide errors (by default it answers
None and empty frames when it is offline); what it raises becomes one of our errors here:

- RateLimited, SourceUnavailable: ask again later;
- UnknownTicker, NoHistory: Yahoo answered that there is nothing;
- BadVendorData: the answer has a shape that this yfinance does not understand.

Each page is judged (libs/market/yahoo/pages.py) before yfinance reads it: one that is no answer
ends the question, whatever yfinance would have made of it.
"""

import fcntl
import functools
import logging
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeVar

from contracts.types import spelled
from libs.market.asking.their_clock import ahead
from libs.market.errors import (
    BadVendorData,
    MarketError,
    NoHistory,
    RateLimited,
    SourceUnavailable,
    UnknownTicker,
)
from libs.market.yahoo.pages import YahooRefusal, YahooRefusalKind, refusal_of
from libs.runtime.own_folder import make_folder

SOURCE = "yahoo"
PROCESSES_MAX = 64
"""Processes that can keep yfinance's caches below one data directory at once."""
CHART_TIMEOUT_S = 15
EARNINGS_MAX = 25
"""Reports of one ticker, the coming ones included; one page of Yahoo."""
META_KEYS = (
    "currency",
    "currentTradingPeriod",
    "exchangeName",
    "exchangeTimezoneName",
    "instrumentType",
)

T = TypeVar("T")


@dataclass(frozen=True)
class YahooChart:
    """Daily rows as yfinance gives them, ascending; missing numbers are NaN.

    Prices are Yahoo's: adjusted for all splits until now, in the listing's unit (maybe pence).
    """

    dates: Sequence[date]
    columns: Mapping[str, Sequence[float]]
    meta: Mapping[str, Any]
    paid_in: Mapping[date, str]
    """Currencies of dividends, where Yahoo names one."""


@dataclass(frozen=True)
class YahooReport:
    """An earnings report, past or to come; `at` is Yahoo's time of it, often only the hour."""

    ticker: str
    at: datetime
    eps_estimate: float | None
    eps_actual: float | None


class YahooCalls:
    """Questions to Yahoo, each one or a few HTTP requests. Safe to share between threads."""

    def __init__(self, cache_dir: Path) -> None:
        self._cache_dir = cache_dir
        self._loaded: Any = None
        self._session: Any = None
        self._slot: object = None
        self._lock = threading.Lock()

    def chart(self, ticker: str, first: date, until: date) -> YahooChart:
        """Daily rows from `first` to before `until`. Raises UnknownTicker, NoHistory."""

        def ask(yf: Any) -> YahooChart:
            page = yf.Ticker(ticker)
            # With dividends and splits unapplied: known prices must not move when one is paid.
            frame = page.history(
                start=first.isoformat(),
                end=until.isoformat(),
                auto_adjust=False,
                actions=True,
                timeout=CHART_TIMEOUT_S,
            )
            if not len(frame):
                raise _no_prices(ticker)
            # Not items(): that would ask for intraday hours too.
            metadata = page.get_history_metadata()
            meta = {key: metadata[key] for key in META_KEYS if key in metadata}
            columns = {str(name): frame[name].tolist() for name in frame.columns}
            dates = [moment.date() for moment in frame.index]
            return YahooChart(dates, columns, meta, _currencies(page))

        return self._call(f"prices of {ticker}", ask, ticker)

    def search(self, words: str, results_max: int) -> Sequence[Mapping[str, Any]]:
        """The rows that Yahoo's own search finds: symbol, exchange, quoteType, longname, sector."""
        return self._call(
            f"search for {words[:40]!r}",
            lambda yf: list(
                yf.Search(words, max_results=results_max, news_count=0, lists_count=0).quotes
            ),
        )

    def info(self, ticker: str) -> Mapping[str, Any]:
        """Yahoo's present key figures of a company: some 100 keys, any of them maybe missing."""
        return self._call(f"figures of {ticker}", lambda yf: dict(yf.Ticker(ticker).info), ticker)

    def news(self, ticker: str, items_max: int) -> Sequence[Mapping[str, Any]]:
        """The newest headlines as Yahoo has them."""
        return self._call(
            f"news of {ticker}", lambda yf: list(yf.Ticker(ticker).get_news(count=items_max))
        )

    def reports(self, ticker: str) -> Sequence[YahooReport] | None:
        """Past and coming earnings reports; None where Yahoo has no page of them."""

        def ask(yf: Any) -> Sequence[YahooReport] | None:
            frame = yf.Ticker(ticker).get_earnings_dates(limit=EARNINGS_MAX)
            if frame is None:
                return None
            return [
                YahooReport(
                    ticker, _utc(at), _number(row["EPS Estimate"]), _number(row["Reported EPS"])
                )
                for at, row in frame.iterrows()
            ]

        return self._call(f"earnings dates of {ticker}", ask)

    def calendar(self, first: date, last: date, rows_max: int) -> Sequence[YahooReport]:
        """Reports of all US companies between two days, the largest companies first."""

        def ask(yf: Any) -> Sequence[YahooReport]:
            frame = yf.Calendars(start=first.isoformat(), end=last.isoformat())
            frame = frame.get_earnings_calendar(limit=rows_max, filter_most_active=False)
            return [
                YahooReport(
                    spelled(str(ticker)),
                    _utc(row["Event Start Date"]),
                    _number(row["EPS Estimate"]),
                    _number(row["Reported EPS"]),
                )
                for ticker, row in frame.iterrows()
            ]

        return self._call("earnings calendar", ask)

    def screen(self, name: str, rows_max: int) -> Sequence[str]:
        """The tickers of one of Yahoo's predefined screens, best first."""
        return self._call(
            f"screen {name}",
            lambda yf: [
                spelled(str(row["symbol"])) for row in yf.screen(name, count=rows_max)["quotes"]
            ],
        )

    def _call(self, what: str, ask: Callable[[Any], T], ticker: str = "") -> T:
        yf = self._yfinance()
        self._session.begin()
        _REFUSED.page = None
        try:
            answer = ask(yf)
        except MarketError:
            raise
        except Exception as error:
            # Whatever a scraper raises has to become one of a few things, or nothing upstream
            # could tell a rate limit from a changed page.
            raise _refusal(what, ticker) or _ours(what, error, ticker) from error
        finally:
            # It keeps answers by address, and would repeat yesterday's.
            yf.data.YfData.cache_get.cache_clear()
        refused = _refusal(what, ticker)
        if refused is not None:
            raise refused
        return answer

    def _yfinance(self) -> Any:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> Any:
        # Pandas and more: seconds, and only for live data.
        import yfinance  # noqa: PLC0415

        from libs.market.yahoo.session import YahooSession  # noqa: PLC0415

        directory, self._slot = _own_directory(self._cache_dir)
        yfinance.set_tz_cache_location(str(directory))
        # Its caches make their tables at the first use, without a lock: of threads that come at
        # once some would find the file locked.
        for cache in (yfinance.cache.get_tz_cache(), yfinance.cache.get_cookie_cache()):
            cache.initialise()
        yfinance.config.debug.hide_exceptions = False
        # All its questions go through these two of its one connection.
        self._session = YahooSession()
        data = yfinance.data.YfData(session=self._session)
        vars(data).setdefault("get", _judged(data.get))
        vars(data).setdefault("post", _judged(data.post))
        # What it logs as errors it also raises, or answers with None that we name.
        logging.getLogger("yfinance").setLevel(logging.CRITICAL)
        # It turns on the warnings about its own use of pandas, for everyone to see.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="^yfinance")
        return yfinance


class _PageRefused(Exception):
    """A page is no answer: keeps yfinance from reading it, and from keeping it."""


class _Refused(threading.local):
    """The first page of the question at hand that was no answer: yfinance may hide the raise."""

    page: YahooRefusal | None = None


_REFUSED = _Refused()


def _judged(ask: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(ask)
    def judged(url: str, *args: Any, **named: Any) -> Any:
        page = ask(url, *args, **named)
        refusal = refusal_of(url, page.status_code, page.text)
        headers = page.headers
        if why := ahead(headers.get("Date"), headers.get("Age"), datetime.now(UTC)):
            refusal = YahooRefusal(YahooRefusalKind.UNAVAILABLE, why)
        if refusal is not None:
            _REFUSED.page = _REFUSED.page or refusal
            raise _PageRefused(refusal.why)
        return page

    return judged


def _refusal(what: str, ticker: str) -> MarketError | None:
    """Our error for the page that was no answer, if there was one."""
    page = _REFUSED.page
    if page is None:
        return None
    match page.sort:
        case YahooRefusalKind.LIMITED:
            return RateLimited(what)
        case YahooRefusalKind.UNKNOWN if ticker:
            return UnknownTicker(ticker, f"{SOURCE} (or delisted: it keeps no prices then)")
        case YahooRefusalKind.NO_PRICES if ticker:
            return _no_prices(ticker)
        case _:
            return SourceUnavailable(what, page.why)


def _no_prices(ticker: str) -> NoHistory:
    return NoHistory(
        f"{ticker} has no prices on Yahoo for these days: it is too new, or not traded; choose a "
        "later session or leave it out"
    )


def _ours(what: str, error: Exception, ticker: str) -> MarketError:
    """One of our errors for one of theirs, by name: their classes are not there before loading."""
    names = {cls.__name__ for cls in type(error).__mro__}
    words = " ".join(str(error).split())[:160]
    status = getattr(getattr(error, "response", None), "status_code", None)
    if "YFRateLimitError" in names or status == 429:
        return RateLimited(what)
    if "YFPricesMissingError" in names and ticker:
        return _no_prices(ticker)
    if status is not None:
        return SourceUnavailable(what, f"HTTP {status}")
    if names & {
        "OSError",
        "RequestException",
        "JSONDecodeError",
        "YFDataException",
        "DatabaseError",  # of its caches' files
    }:
        return SourceUnavailable(what, words or type(error).__name__)
    return BadVendorData(what, f"{type(error).__name__}: {words}")


def _own_directory(parent: Path) -> tuple[Path, object]:
    """A directory that no other living process uses, and the lock that says so.

    yfinance's caches are SQLite files that several processes cannot share without waiting.
    """
    for number in range(PROCESSES_MAX):
        directory = parent / str(number)
        try:
            make_folder(directory)
            lock = (directory / "lock").open("w")
        except OSError as error:
            raise SourceUnavailable(
                "yfinance's caches",
                f"{directory} cannot be written ({error.strerror}); set DESKBUS_DATA_DIR",
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return directory, lock
    raise SourceUnavailable(
        "yfinance's caches", f"{PROCESSES_MAX} processes use {parent}; set DESKBUS_DATA_DIR"
    )


def _currencies(page: Any) -> Mapping[date, str]:
    paid = page._price_history._dividends  # noqa: SLF001 - no public way to the currency
    if paid is None or "currency" not in getattr(paid, "columns", ()):
        return {}
    return {at.date(): str(unit) for at, unit in paid["currency"].items() if unit}


def _utc(moment: Any) -> datetime:
    aware = moment if moment.tzinfo is not None else moment.tz_localize(UTC)
    utc: datetime = aware.to_pydatetime().astimezone(UTC)
    return utc


def _number(value: Any) -> float | None:
    number = float(value)
    return None if number != number else number  # noqa: PLR0124 - NaN is what is not itself
