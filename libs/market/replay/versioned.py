"""The replay source over a folder whose files change: each question is answered by the version that
its asker reads (`libs.market.replay.versions`)."""

from collections.abc import Mapping
from functools import partial

from libs.files.finding import FileFinding
from libs.market.calendar import ExchangeCalendar
from libs.market.replay.market import ReplayFills, ReplayMarket
from libs.market.replay.versions import Versioned, Versions, at_version
from libs.market.source import SourceLabel


class VersionedMarket(Versioned[ReplayMarket]):
    """`MarketData`, `SessionMoves` and `HasFiles` over a folder's versions."""

    def __init__(self, versions: Versions, jump_pct: float) -> None:
        super().__init__(versions, partial(ReplayMarket, jump_pct=jump_pct))

    @property
    def label(self) -> SourceLabel:
        """See MarketData.label."""
        return self.known.label

    @property
    def calendar(self) -> ExchangeCalendar:
        """See MarketData.calendar."""
        return self.known.calendar

    @property
    def faults(self) -> Mapping[str, FileFinding]:
        """See HasFiles.faults."""
        return self.known.faults

    @property
    def no_listings(self) -> FileFinding | None:
        """See HasFiles.no_listings."""
        return self.known.no_listings

    def caveat(self, ticker: str) -> str:
        """See HasFiles.caveat."""
        return self.known.caveat(ticker)

    bars = at_version(ReplayMarket.bars)
    splits = at_version(ReplayMarket.splits)
    session_moves = at_version(ReplayMarket.session_moves)
    universe = at_version(ReplayMarket.universe)
    news = at_version(ReplayMarket.news)
    fundamentals = at_version(ReplayMarket.fundamentals)
    filings = at_version(ReplayMarket.filings)
    earnings = at_version(ReplayMarket.earnings)


class VersionedFills(Versioned[ReplayFills]):
    """`FillPrices` over a folder's versions."""

    def __init__(self, versions: Versions) -> None:
        super().__init__(versions, ReplayFills)

    next_open = at_version(ReplayFills.next_open)
    actions = at_version(ReplayFills.actions)
