"""The live source as a test has it: real yfinance, the stand-in, a clock that the test turns."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from structlog.testing import CapturingLogger

from libs.market import sources
from libs.market.asking import questions
from libs.market.asking.questions import Timing
from libs.market.yahoo import feed as yahoo_feed
from libs.market.yahoo import market as yahoo
from libs.market.yahoo.calls import YahooCalls
from libs.market.yahoo.feed import YahooFeed
from libs.market.yahoo.market import YahooFills, YahooMarket
from tests.fakes.yahoo_market import MadeUpMarket
from tests.fakes.yahoo_server import StandIn, redirected, serving

FIXTURE = Path(__file__).parents[1] / "data" / "fixture_market"
AS_OF = date(2024, 3, 15)
BEFORE = date(2024, 3, 14)
EVENING = datetime(2024, 3, 15, 23, 0, tzinfo=UTC)
"""Three hours after the close of AS_OF in New York."""


@dataclass
class Live:
    """One live source and all that a test turns; `slept` are the waits that nobody waited for."""

    server: StandIn
    feed: YahooFeed
    market: YahooMarket
    fills: YahooFills
    slept: list[float]
    clock: list[float]
    others: list["Live"] = field(default_factory=list)

    def at(self, moment: datetime) -> None:
        """It is `moment` now, for the desk and for Yahoo."""
        self.server.market.now = moment

    def fresh(self, tmp: Path) -> "Live":
        """Another process' source: the same Yahoo, nothing remembered."""
        self.others.append(live_source(self.server, tmp))
        return self.others[-1]

    def close(self) -> None:
        """Let go of threads and connections."""
        for each in (self, *self.others):
            each.feed.close()


def live_source(server: StandIn, cache_dir: Path) -> Live:
    """A source that asks `server`."""
    slept: list[float] = []
    clock = [0.0]

    def sleep(wait_s: float) -> None:
        slept.append(wait_s)
        clock[0] += wait_s

    feed = YahooFeed(
        YahooCalls(cache_dir),
        1_000,
        Timing(lambda: server.market.now, sleep, lambda: clock[0]),
    )
    return Live(server, feed, YahooMarket(feed), YahooFills(feed), slept, clock)


@contextmanager
def live_fixture(patch: pytest.MonkeyPatch, tmp: Path) -> Iterator[Live]:
    """The market of tests/data/fixture_market, live in the evening of AS_OF.

    Whoever makes a source from settings meanwhile gets this one.
    """
    with serving(MadeUpMarket.fixture(FIXTURE, EVENING)) as server:
        redirected(patch, server.port)
        live = live_source(server, tmp / "yahoo")
        patch.setattr(sources, "feed_of", lambda _: live.feed)
        for module in (yahoo, yahoo_feed, questions):
            patch.setattr(module, "log", CapturingLogger())
        try:
            yield live
        finally:
            live.close()
