"""The interface of a source of market data, and the values it returns.

Everything is asked with an `as_of` session and answered with what was known at its close. Prices
to trade at lie after as_of, so they have a Protocol of their own (`FillPrices`) that only execution
is given: code that holds a `MarketData` has no way to reach them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol, runtime_checkable

import polars as pl

from libs.files.finding import FileFinding
from libs.market.calendar import DayKind, ExchangeCalendar, OutsideCalendar
from libs.market.errors import CryptoNotSupported, NoHistory, NotASession, NotAShare
from libs.market.filings.reported import Filing
from libs.market.symbols import PAIR, no_share
from libs.quant.ticks import PRICE_STEP

BAR_SCHEMA = pl.Schema(
    {
        "date": pl.Date,
        "open": pl.Float64,
        "high": pl.Float64,
        "low": pl.Float64,
        "close": pl.Float64,
        "volume": pl.Float64,
    }
)
JUMP_PCT = 40.0
"""Percent that a share moves in a session only when something is the matter, if with the data."""


@dataclass(frozen=True, slots=True)
class SourceLabel:
    """The name of a source wherever its data shows; `synthetic` marks generated prices.

    A close further than `jump_pct` percent from the one before is told as a jump.
    """

    name: str
    description: str
    synthetic: bool = False

    @property
    def in_words(self) -> str:
        """The description, or the name where there is none; synthetic prices are called that."""
        text = self.description or self.name
        says_so = any(word in text.lower() for word in ("synthetic", "made up", "made-up"))
        return text if says_so or not self.synthetic else f"synthetic prices: {text}"

    jump_pct: float = JUMP_PCT


@dataclass(frozen=True, slots=True)
class Listing:
    """A ticker that traded at as_of. `country` is ISO 3166 alpha-2, empty where not known. `issuer`
    is the same text for all share classes of one company; empty where the source does not know it.
    `lot` is how many shares are bought together.
    """

    ticker: str
    name: str
    sector: str
    exchange: str
    currency: str
    country: str
    issuer: str = ""
    lot: int = 1


@dataclass(frozen=True, slots=True)
class NewsItem:
    """A headline as the source holds it: untrusted text, not yet cleaned."""

    ticker: str
    title: str
    summary: str
    publisher: str
    url: str
    known_at: datetime


@dataclass(frozen=True, slots=True)
class Fundamentals:
    """The newest reported period known at as_of, in its newest restatement.

    Per-share figures and share counts are in as_of's shares (splits since then applied). Percent
    fields are in percent; growth is the year to date against that of the year before. None is "not
    reported", and `absent` says why, by field, where the source knows. `form`, `accession` and
    `filed` are of the filing that told of the period, where it was one; `eps_fiscal_year` is of the
    last whole fiscal year. `notes` tell what else a reader has to know: reports that are missing.
    """

    ticker: str
    period_end: date
    known_at: datetime
    currency: str
    eps_ttm: float | None
    shares_outstanding: float | None
    revenue_ttm: float | None
    profit_margin_pct: float | None
    operating_margin_pct: float | None
    debt_to_equity: float | None
    dividend_per_share_ttm: float | None
    profit_growth_pct: float | None = None
    revenue_growth_pct: float | None = None
    eps_fiscal_year: float | None = None
    fiscal_year_end: date | None = None
    form: str = ""
    accession: str = ""
    filed: date | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EarningsReport:
    """One quarter's report as known at as_of; `eps_actual` is None until it was reported. Both
    figures are in `currency`, empty where the source does not say which."""

    ticker: str
    period_end: date
    report_date: date
    known_at: datetime
    eps_estimate: float | None
    eps_actual: float | None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class CorporateAction:
    """A split (new shares for one old) or a cash dividend per share, effective at the open."""

    ticker: str
    session: date
    split_ratio: Decimal
    dividend_per_share: Decimal


@dataclass(frozen=True, slots=True)
class FillPrice:
    """The raw opening price of a session, with what happened to the share at that open.

    `volume` are the shares that the whole session traded; None where the source does not know.
    """

    ticker: str
    session: date
    opens_at: datetime
    open: Decimal
    currency: str
    action: CorporateAction | None
    volume: float | None = None


class MarketData(Protocol):
    """Point-in-time market data. Every method raises MarketError where it cannot answer.

    `as_of` must be a session (NotASession) inside the source's data (NoHistory). A ticker may raise
    UnknownTicker, CryptoNotSupported or NoHistory. Data that a source does not carry at all is
    NotInSource; an empty tuple means that the source looked and there was nothing.
    """

    @property
    def label(self) -> SourceLabel:
        """The source's label for people."""
        ...

    @property
    def calendar(self) -> ExchangeCalendar:
        """The sessions that as_of counts in."""
        ...

    async def bars(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """At most `sessions` daily bars (BAR_SCHEMA, ascending); the last one is as_of's.

        Prices are adjusted for splits and dividends up to as_of, so the last close is the raw one;
        volume is adjusted for splits.
        """
        ...

    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        """All tickers with a bar at as_of, sorted; with `tickers` only those of them.

        NoHistory where as_of lies outside the data and no `tickers` narrow the question.
        """
        ...

    async def news(
        self, as_of: date, tickers: Collection[str] | None, items_max: int
    ) -> tuple[NewsItem, ...]:
        """The newest headlines, newest first, of `tickers` with a bar at as_of, or of all.

        NotInSource where the source has them of none of the tickers.
        """
        ...

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """The newest figures, None where none were known yet."""
        ...

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:
        """The company's filings with its regulator, oldest known first; as far back as the source
        keeps it.
        """
        ...

    async def earnings(
        self, as_of: date, tickers: Collection[str] | None
    ) -> tuple[EarningsReport, ...]:
        """Every period's newest known row, sorted by report date, of `tickers` or of all.

        NotInSource as of `news`.
        """
        ...


@runtime_checkable
class HasFiles(Protocol):
    """A source of files, of which some may not be readable."""

    @property
    def faults(self) -> Mapping[str, FileFinding]:
        """The faults of files that were asked for, by ticker, or by kind of records."""
        ...

    @property
    def no_listings(self) -> FileFinding | None:
        """Why the file of listings cannot be read at all: sectors, currencies and exchanges are
        then assumed, and nothing may be bought. None where it can, or where there is none."""
        ...

    def caveat(self, ticker: str) -> str:
        """Why the prices of a ticker that was read are not as they were traded; "" where they
        are."""
        ...


class FillPrices(Protocol):
    """Prices after as_of. For execution only."""

    async def next_open(self, ticker: str, after: date) -> FillPrice:
        """The open of the first session after `after`; NoHistory where it did not trade then."""
        ...

    async def actions(self, ticker: str, after: date, through: date) -> tuple[CorporateAction, ...]:
        """Splits and dividends of the sessions after `after` up to `through`, ascending."""
        ...


@runtime_checkable
class ListingSearch(Protocol):
    """A live source's search beside `MarketData`: a search over more than its universe."""

    async def search(self, as_of: date, query: str) -> tuple[Listing, ...]:
        """Listings whose name or ticker matches and that traded at as_of; raises MarketError."""
        ...


@dataclass(frozen=True, slots=True)
class SessionMove:
    """A session of a ticker: the traded value, None where the source does not know all of it; and
    the change of its close from the bar before in percent, adjusted as bars are, None where there
    is no bar before.
    """

    turnover: float | None
    change_pct: float | None


@runtime_checkable
class SessionMoves(Protocol):
    """A source's sessions of many tickers at once, beside `MarketData`: where bars are at hand, a
    screen of a large universe need not have a frame made of each two."""

    async def session_moves(self, as_of: date, tickers: Iterable[str]) -> Mapping[str, SessionMove]:
        """The session of as_of of each ticker, as its last two bars say; raises as `bars` does."""
        ...


@runtime_checkable
class SessionNotes(Protocol):
    """A source whose prices of a session have something that their reader has to know."""

    def session_notes(self, as_of: date) -> Sequence[str]:
        """Sentences on the prices of a session: provisional, or of a part of the market. Asks
        nobody, and says what is known so far."""
        ...

    def whole_volume(self) -> bool:
        """Whether a bar's volume is that of all exchanges."""
        ...


def notes_on(market: "MarketData", as_of: date) -> Sequence[str]:
    """The notes of a source on the prices of a session; none where it has none to give."""
    return market.session_notes(as_of) if isinstance(market, SessionNotes) else ()


def whole_volume(market: "MarketData") -> bool:
    """Whether the volume of a source's bars is that of all exchanges."""
    return not isinstance(market, SessionNotes) or market.whole_volume()


def said_of(market: "MarketData", as_of: date) -> str:
    """The source of prices in words, with the notes on that session."""
    return ", ".join((market.label.in_words, *notes_on(market, as_of)))


async def bars_until(market: MarketData, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
    """The newest bars up to as_of; of a ticker that stopped trading before it, those up to its last
    session. For what is looked at afterwards: whoever decides must be told that it trades no more.
    Raises as `bars` does."""
    try:
        return await market.bars(ticker, as_of, sessions)
    except NoHistory as error:
        if error.last is None:
            raise
        return await market.bars(ticker, error.last, sessions)


def price_kept(ticker: str, price: float) -> Decimal:
    """A price of a bar with the places that are kept of it. Raises NoHistory where it is smaller
    than all of them: nothing can be valued or traded at zero.
    """
    kept = Decimal(str(price)).quantize(PRICE_STEP)
    if kept == 0:
        raise NoHistory(f"{ticker} is at {price}, below {PRICE_STEP:f}, the finest price kept")
    return kept


def move_of(bars: pl.DataFrame) -> SessionMove:
    """The move that the last one or two bars (BAR_SCHEMA) say."""
    close, volume = bars["close"], bars["volume"]
    change_pct = (close[-1] / close[-2] - 1) * 100 if bars.height > 1 else None
    return SessionMove(close[-1] * volume[-1], change_pct)


def refuse_crypto(ticker: str) -> None:
    """Raise CryptoNotSupported for a pair such as BTC/USD or BTC-USD, and NotAShare for whatever
    else is no share: EURUSD=X, ES=F, ^GSPC."""
    kind = no_share(ticker)
    if kind == PAIR:
        raise CryptoNotSupported(ticker)
    if kind:
        raise NotAShare(ticker, kind)


def require_session(calendar: ExchangeCalendar, day: date) -> None:
    """Raise NotASession, naming the neighbours, where `day` does not trade."""
    kind = calendar.kind(day)
    if kind is DayKind.SESSION:
        return
    if kind is DayKind.OUTSIDE:
        raise OutsideCalendar(calendar.exchange, day, calendar.first, calendar.last)
    before, after = calendar.previous_session(day), calendar.next_session(day)
    raise NotASession(day, kind.value, calendar.exchange, before, after)
