"""How the market sources are made that `libs.market.choice` says are chosen.

Where a further one is forgotten here, mypy says so. What reads past as_of is handed out by itself,
`fills_of`: execution asks for it, and who scores decisions that were made elsewhere.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from libs.files.finding import FileFinding
from libs.market.alpaca.standing import ALPACA_DIR, keep_standing
from libs.market.asking.shared_pace import SharedPace
from libs.market.choice import (
    DataKind,
    PartName,
    SourceName,
    alpaca_tickers,
    chosen,
    named,
    source_of,
    yahoo_tickers,
)
from libs.market.errors import BadReplayData
from libs.market.filings.concepts import CONCEPTS
from libs.market.mixed import MixedMarket, Parts, SearchingMixedMarket
from libs.market.rates import ExchangeRates, ReplayRates, VersionedRates
from libs.market.replay.kept import KeptVersions
from libs.market.replay.market import ReplayFills, ReplayMarket, ReplayStore
from libs.market.replay.versioned import VersionedFills, VersionedMarket
from libs.market.replay.versions import Versions
from libs.market.sessions import LatestSession, Sessions, SessionSpan
from libs.market.source import FillPrices, ListingSearch, MarketData
from libs.runtime.extras import require
from libs.runtime.key_pair import key_pair_in
from libs.runtime.settings import Settings

if TYPE_CHECKING:
    from libs.market.alpaca.feed import AlpacaFeed
    from libs.market.alpaca.market import AlpacaMarket
    from libs.market.edgar.feed import EdgarFeed
    from libs.market.edgar.market import EdgarMarket
    from libs.market.yahoo.feed import YahooFeed
    from libs.market.yahoo.market import YahooMarket

    Whole = ReplayMarket | VersionedMarket | YahooMarket | AlpacaMarket

CACHE_DIR = "cache/yahoo"
"""Where yfinance keeps cookies and time zones, below the data directory."""
VERSIONS_DIR = "market"
"""Where all processes keep the versions of a folder of recorded data, below the data directory."""
EDGAR_PACE = "cache/edgar/pace"
"""Where all processes keep EDGAR's pace, below the data directory."""


@dataclass(frozen=True, slots=True)
class BadFiles:
    """Market files that cannot be used, by ticker or kind of records: nothing is used of those
    `unused`, of those in `earlier` the content before they went bad, and of those in `rows` all but
    rows like the one that is named."""

    unused: Mapping[str, FileFinding] = field(default_factory=dict)
    earlier: Mapping[str, FileFinding] = field(default_factory=dict)
    rows: Mapping[str, FileFinding] = field(default_factory=dict)


def market_of(settings: Settings) -> MarketData:
    """The chosen sources, read up to as_of. Raises BadReplayData for a directory that is none."""
    prices = _whole(settings, source_of(settings))
    if len({chosen(settings, kind) for kind in DataKind}) == 1:
        return prices
    parts = Parts(
        figures=_other_or_part(settings, DataKind.FUNDAMENTALS, prices),
        events=_other_or_part(settings, DataKind.EVENTS, prices),
        headlines=_other(settings, DataKind.HEADLINES, prices),
        calendar=_other(settings, DataKind.CALENDAR, prices),
    )
    if isinstance(prices, ListingSearch):
        return SearchingMixedMarket(prices, parts, prices)
    return MixedMarket(prices, parts)


def _other_or_part(settings: Settings, kind: DataKind, prices: "Whole") -> "Whole | EdgarMarket":
    """The source of a kind that not only whole markets have."""
    if chosen(settings, kind) is PartName.EDGAR:
        from libs.market.edgar.market import EdgarMarket  # noqa: PLC0415 - for whoever chose it

        return EdgarMarket(edgar_of(settings), prices)
    return _other(settings, kind, prices)


def _other(settings: Settings, kind: DataKind, prices: "Whole") -> "Whole":
    """The source of a kind that a whole market was chosen for; the prices' own is made once."""
    name = SourceName(chosen(settings, kind))
    return prices if name is source_of(settings) else _whole(settings, name)


def _whole(settings: Settings, name: SourceName) -> "Whole":
    match name:
        case SourceName.REPLAY:
            versions = versions_of(settings)
            if versions is None:
                return ReplayMarket(_bundled(), settings.market.jump_pct)
            return VersionedMarket(versions, settings.market.jump_pct)
        case SourceName.YAHOO:
            return yahoo_of(settings)
        case SourceName.ALPACA:
            return alpaca_of(settings)


def alpaca_of(settings: Settings) -> "AlpacaMarket":
    """The source of an Alpaca account, whichever is chosen: for recording it."""
    from libs.market.alpaca.market import AlpacaMarket  # noqa: PLC0415 - only for whoever wants it

    companies = None if settings.edgar.contact is None else edgar_of(settings)
    return AlpacaMarket(
        alpaca_feed_of(settings), alpaca_tickers(settings), companies, settings.market.jump_pct
    )


def yahoo_of(settings: Settings) -> "YahooMarket":
    """The live source, whichever is chosen: for recording it."""
    from libs.market.yahoo.market import YahooMarket  # noqa: PLC0415 - only for whoever wants it

    return YahooMarket(feed_of(settings), yahoo_tickers(settings), settings.market.jump_pct)


def fills_of(settings: Settings) -> FillPrices:
    """The chosen source, read past as_of: for execution, and to score decisions made elsewhere."""
    match source_of(settings):
        case SourceName.REPLAY:
            versions = versions_of(settings)
            return ReplayFills(_bundled()) if versions is None else VersionedFills(versions)
        case SourceName.YAHOO:
            from libs.market.yahoo.market import YahooFills  # noqa: PLC0415

            return YahooFills(feed_of(settings))
        case SourceName.ALPACA:
            from libs.market.alpaca.market import AlpacaFills  # noqa: PLC0415

            return AlpacaFills(alpaca_feed_of(settings))


def recorded_in(directory: Path | None) -> tuple[MarketData, FillPrices, Sessions]:
    """A folder of recorded data as it is now, or the bundled data, read up to as_of, read past it,
    and its sessions: for whoever looks once, so no copy of it is kept. Raises BadReplayData."""
    store = _bundled() if directory is None else ReplayStore(directory)
    sessions = Sessions(store.label.name, store.calendar, _Recorded(store))
    return ReplayMarket(store), ReplayFills(store), sessions


def rates_of(settings: Settings) -> ExchangeRates:
    """Exchange rates of the chosen source: for whoever keeps or shows the books."""
    match source_of(settings):
        case SourceName.REPLAY:
            versions = versions_of(settings)
            return ReplayRates(_bundled()) if versions is None else VersionedRates(versions)
        case SourceName.YAHOO:
            from libs.market.yahoo.rates import YahooRates  # noqa: PLC0415 - for whoever chose it

            return YahooRates(feed_of(settings), named(settings.yahoo.currencies))
        case SourceName.ALPACA:
            from libs.market.alpaca.market import NoRates  # noqa: PLC0415 - for whoever chose it

            return NoRates()


def latest_session_of(settings: Settings) -> LatestSession:
    """A function that says which session a request without a date means."""
    return sessions_of(settings).latest


def tickers_of(settings: Settings) -> tuple[str, ...]:
    """The tickers that can be told without asking anybody: of recorded data all of them."""
    match source_of(settings):
        case SourceName.REPLAY:
            versions = versions_of(settings)
            return (_bundled() if versions is None else versions.known.store).tickers
        case SourceName.YAHOO:
            return yahoo_tickers(settings)
        case SourceName.ALPACA:
            return alpaca_tickers(settings)


def sessions_of(settings: Settings) -> Sessions:
    """The sessions of the chosen source; of a live one nobody is asked for them."""
    match source_of(settings):
        case SourceName.REPLAY:
            versions = versions_of(settings)
            if versions is None:
                return Sessions(_bundled().label.name, _bundled().calendar, _Recorded(_bundled()))
            store = versions.known.store

            async def span() -> SessionSpan:
                return await (await versions.read()).of(_Recorded)()

            return Sessions(store.label.name, store.calendar, span)
        case SourceName.YAHOO:
            return _settled(feed_of(settings))
        case SourceName.ALPACA:
            return _settled(alpaca_feed_of(settings))


def alpaca_feed_of(settings: Settings) -> "AlpacaFeed":
    """This process' one feed from Alpaca; nothing is loaded or asked yet."""
    file = settings.alpaca.data_key_file
    return _alpaca(
        None if file is None else file.absolute(),
        settings.alpaca.data_url,
        (settings.data_dir / ALPACA_DIR).absolute(),
        settings.alpaca.data_requests_per_s,
    )


def edgar_of(settings: Settings) -> "EdgarFeed":
    """This process' one feed from EDGAR; nothing is loaded or asked yet."""
    return _edgar(
        settings.edgar.contact,
        settings.edgar.url,
        (settings.data_dir / EDGAR_PACE).absolute(),
        settings.edgar.requests_per_s,
        settings.edgar.ciks,
    )


def feed_of(settings: Settings) -> "YahooFeed":
    """This process' one feed from Yahoo; nothing is loaded or asked yet. Raises ExtraMissing."""
    require("yahoo", "Yahoo as a source")
    return _feed((settings.data_dir / CACHE_DIR).absolute(), settings.yahoo.requests_per_s)


def data_version_of(settings: Settings) -> Callable[[], Awaitable[str | None]]:
    """A function that gives the newest version of the data; None where no folder has any of it."""
    in_folder = any(chosen(settings, kind) is SourceName.REPLAY for kind in DataKind)
    versions = versions_of(settings) if in_folder else None

    async def newest() -> str | None:
        return None if versions is None else (await versions.newest()).id

    return newest


async def begin_data(settings: Settings) -> None:
    """Take the version of the data that a desk starts with; what goes bad later leaves its content
    behind. Raises BadReplayData."""
    versions = versions_of(settings) if source_of(settings) is SourceName.REPLAY else None
    if versions is not None:
        await versions.begin()


async def bad_files_of(settings: Settings) -> BadFiles:
    """The files of one's own that cannot be used, as far as the desk has read them."""
    versions = versions_of(settings) if source_of(settings) is SourceName.REPLAY else None
    if versions is None:
        return BadFiles()
    try:
        store = (await versions.read()).store
    except BadReplayData as error:
        return BadFiles({error.finding.file: error.finding})
    unused = store.unused
    rows = {key: fault for key, fault in store.faults.items() if key not in unused}
    return BadFiles(unused, versions.refused, rows)


def versions_of(settings: Settings) -> Versions | None:
    """The versions of the folder of recorded data; None for the bundled data."""
    if settings.market.replay_dir is None:
        return None
    return _versions(settings.market.replay_dir, (settings.data_dir / VERSIONS_DIR).absolute())


@lru_cache(maxsize=4)
def _versions(directory: Path, kept: Path) -> Versions:
    """One for all services of a process: each file is read once."""
    return Versions(directory, KeptVersions(kept))


@lru_cache(maxsize=1)
def _bundled() -> ReplayStore:
    return ReplayStore()


@lru_cache(maxsize=4)
def _feed(cache_dir: Path, requests_per_s: float) -> "YahooFeed":
    from libs.market.yahoo.calls import YahooCalls  # noqa: PLC0415
    from libs.market.yahoo.feed import YahooFeed  # noqa: PLC0415

    return YahooFeed(YahooCalls(cache_dir), requests_per_s)


@lru_cache(maxsize=4)
def _edgar(
    contact: SecretStr | None, url: str | None, pace: Path, requests_per_s: float, ciks: str
) -> "EdgarFeed":
    from libs.market.edgar.calls import EdgarCalls  # noqa: PLC0415
    from libs.market.edgar.feed import EdgarFeed  # noqa: PLC0415

    pairs = (pair.split("=") for pair in filter(None, ciks.split(",")))
    return EdgarFeed(
        EdgarCalls(contact, url),
        SharedPace(pace, requests_per_s, "EDGAR"),
        CONCEPTS,
        {ticker: int(cik) for ticker, cik in pairs},
    )


@lru_cache(maxsize=4)
def _alpaca(file: Path | None, url: str | None, cache: Path, requests_per_s: float) -> "AlpacaFeed":
    from libs.market.alpaca.calls import AlpacaCalls  # noqa: PLC0415
    from libs.market.alpaca.feed import AlpacaFeed  # noqa: PLC0415
    from libs.market.alpaca.pages import KEY_SETTING  # noqa: PLC0415

    keys = None if file is None else partial(key_pair_in, file, KEY_SETTING)
    return AlpacaFeed(
        AlpacaCalls(keys, url),
        SharedPace(cache / "pace", requests_per_s, "Alpaca"),
        partial(keep_standing, cache),
    )


class _Recorded:
    """Of recorded data from the first to the newest bar; read once, at the first question."""

    def __init__(self, store: ReplayStore) -> None:
        self._store = store
        self._found: SessionSpan | None = None

    async def __call__(self) -> SessionSpan:
        if self._found is None:
            usable = await self._store.readable(self._store.tickers)
            if not usable:
                await self._store.dates(self._store.tickers[0])  # raises what is wrong with it
            days = [await self._store.dates(ticker) for ticker in usable]
            self._found = SessionSpan(
                min(dates[0] for dates in days if dates), max(dates[-1] for dates in days if dates)
            )
        return self._found


def _settled(feed: "YahooFeed | AlpacaFeed") -> Sessions:
    """Of a live source up to the newest session that can be asked about; asks nobody."""

    async def span() -> SessionSpan:
        return SessionSpan(None, feed.settled())

    return Sessions(feed.name, feed.calendar, span)
