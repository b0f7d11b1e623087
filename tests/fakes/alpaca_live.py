"""Alpaca as a test has it: the desk's own client, the stand-in, a clock that the test turns."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from libs.market.alpaca.calls import AlpacaCalls
from libs.market.alpaca.feed import AlpacaFeed
from libs.market.alpaca.market import AlpacaFills, AlpacaMarket
from libs.market.alpaca.standing import AlpacaStanding
from libs.market.asking.questions import Timing
from libs.market.asking.shared_pace import SharedPace
from libs.market.calendar import exchange_calendar
from libs.market.edgar.feed import EdgarFeed
from libs.runtime.key_pair import KeyPair
from tests.fakes.alpaca_server import KEY_ID, LIMIT, SECRET, StandIn, Story, World, serving

CALENDAR = exchange_calendar()
AS_OF = date(2024, 3, 15)
BEFORE = date(2024, 3, 14)
NEXT = date(2024, 3, 18)
CLOSE = CALENDAR.close(AS_OF)
EVENING = datetime(2024, 3, 15, 23, 0, tzinfo=UTC)
"""Three hours after the close of AS_OF in New York."""
FIRST = date(2021, 3, 1)
KEYS = KeyPair(SecretStr(KEY_ID), SecretStr(SECRET))
TICKERS = ("ALFA", "BRVO", "CHLI", "DLTA", "NEWN")


@dataclass(repr=False)
class AlpacaLive:
    """One live source and all that a test turns; `slept` are the waits that nobody waited for."""

    server: StandIn
    feed: AlpacaFeed
    market: AlpacaMarket
    fills: AlpacaFills
    slept: list[float]
    clock: list[float]
    folder: Path
    calls: AlpacaCalls
    told: list[AlpacaStanding]
    others: list["AlpacaLive"] = field(default_factory=list)

    @property
    def world(self) -> World:
        return self.server.world

    def at(self, moment: datetime) -> None:
        """It is `moment` now, for the desk and for Alpaca, whose rate begins anew."""
        self.server.remaining = LIMIT
        self.server.world.now = moment

    def fresh(self, tickers: Sequence[str] = TICKERS) -> "AlpacaLive":
        """Another process' source: the same Alpaca, nothing remembered."""
        folder = self.folder / f"other-{len(self.others)}"
        self.others.append(alpaca_source(self.server, folder, tickers))
        return self.others[-1]

    def close(self) -> None:
        for each in (self, *self.others):
            each.feed.close()


def alpaca_source(
    server: StandIn,
    folder: Path,
    tickers: Sequence[str] = TICKERS,
    companies: EdgarFeed | None = None,
    keys: KeyPair = KEYS,
) -> AlpacaLive:
    """A source that asks `server`."""
    slept: list[float] = []
    clock = [0.0]
    told: list[AlpacaStanding] = []

    def sleep(wait_s: float) -> None:
        slept.append(wait_s)
        clock[0] += wait_s

    calls = AlpacaCalls(lambda: keys, server.url, now=lambda: server.world.now)
    feed = AlpacaFeed(
        calls,
        SharedPace(folder / "pace", 1_000, "Alpaca", lambda: clock[0]),
        told.append,
        Timing(lambda: server.world.now, sleep, lambda: clock[0]),
    )
    market = AlpacaMarket(feed, tickers, companies)
    return AlpacaLive(server, feed, market, AlpacaFills(feed), slept, clock, folder, calls, told)


def made_up_world() -> World:
    """Five companies. DLTA splits 2 for 1 on AS_OF, BRVO pays, CHLI splits a week later; NEWN was
    OLDN until the start of March, and pays under both; ALFA is in a headline that is edited after
    the close."""
    world = World(EVENING)
    days = list(CALENDAR.sessions(FIRST, date(2024, 4, 5)))
    for ticker, close in (("ALFA", 40.0), ("BRVO", 60.0)):
        world.lists(ticker)
        world.trades(ticker, days, close, 0.01)
    for ticker, splits_on in (("DLTA", AS_OF), ("CHLI", date(2024, 3, 22))):
        world.lists(ticker)
        world.trades(ticker, [day for day in days if day < splits_on], 200.0, 0.01)
        world.trades(ticker, [day for day in days if day >= splits_on], 104.0, 0.01)
        on = splits_on.isoformat()
        world.happens(
            "forward_splits",
            symbol=ticker,
            ex_date=on,
            process_date=on,
            new_rate=2,
            old_rate=1,
            cusip="0",
        )
    world.lists("OLDN", "newn", FIRST)
    world.lists("NEWN", "newn", date(2024, 3, 1))
    world.trades("newn", days, 20.0, 0.01)
    world.happens(
        "name_changes",
        old_symbol="OLDN",
        new_symbol="NEWN",
        process_date="2024-03-01",
        old_cusip="0",
        new_cusip="1",
    )
    for symbol, ex_date, processed, rate in (
        ("BRVO", "2024-03-14", "2024-04-02", 0.5),
        ("BRVO", "2024-03-19", "2024-03-19", 0.7),
        ("OLDN", "2023-11-15", "2023-11-20", 0.2),
        ("NEWN", "2024-03-12", "2024-03-14", 0.3),
    ):
        world.happens(
            "cash_dividends",
            symbol=symbol,
            ex_date=ex_date,
            process_date=processed,
            rate=rate,
            special=False,
            foreign=False,
            cusip="0",
        )
    morning = datetime(2024, 3, 15, 13, 0, tzinfo=UTC)
    late = CLOSE + timedelta(hours=1)
    world.stories += [
        Story(1, ("ALFA",), morning, [(morning, "ALFA opens a plant")]),
        Story(2, ("ALFA", "BRVO"), morning, [(morning, "Talks"), (late, "ALFA buys BRVO")]),
        Story(3, ("BRVO",), late, [(late, "BRVO after the close")]),
        Story(
            4,
            ("DLTA", "ALFA"),
            morning - timedelta(days=3),
            [
                (morning - timedelta(days=3), "DLTA first"),
                (morning - timedelta(days=2), "DLTA edited"),
            ],
        ),
    ]
    return world


@contextmanager
def alpaca_serving(folder: Path) -> Iterator[AlpacaLive]:
    """Alpaca with the made-up world, in the evening of AS_OF."""
    with serving(made_up_world()) as server:
        live = alpaca_source(server, folder)
        try:
            yield live
        finally:
            live.close()
