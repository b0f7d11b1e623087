"""All that a whole desk meets of Alpaca: both hosts, and one clock for them and its processes."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from libs.market.calendar import exchange_calendar
from tests.fakes import alpaca_server, alpaca_trading
from tests.fakes.alpaca_server import StandIn, World, serving
from tests.fakes.alpaca_trading import PaperHost, paper_host

CALENDAR = exchange_calendar()
MOVED = Path(alpaca_server.__file__).parent / "moved_clock"
REPOSITORY = MOVED.parents[2]
REQUESTS = 10**9
"""That the data host lets the desk make: its rate is not what is tried here."""
YEARS = timedelta(days=500)
"""Of prices before the first session: longer than any average that the rules look at."""


class SharedClock(World):
    """A market by the paper host's clock."""

    host: PaperHost

    @property
    def now(self) -> datetime:  # type: ignore[override]
        """The time at both hosts."""
        return self.host.time()

    @now.setter
    def now(self, _: datetime) -> None:
        """The paper host's is moved."""


@dataclass
class AlpacaDesk:
    """Both hosts; `folder` holds the keys and the clock's file."""

    paper: PaperHost
    data: StandIn
    folder: Path
    tickers: Sequence[str]

    @property
    def market(self) -> World:
        """What the data host tells."""
        return self.data.world

    def move(self, to: datetime) -> None:
        """Move the time of all on; orders are filled at the price of each open that is passed."""
        for session in CALENDAR.sessions(self.paper.now.date(), to.date()):
            if self.paper.now < (opens := CALENDAR.open(session)) <= to:
                self.paper.prices.update(self.opens(session))
                self.paper.move(opens)
        self.paper.move(to)
        self._write()

    def opens(self, session: date) -> dict[str, Decimal]:
        """The opening prices of a session."""
        days = {
            ticker: bar.open
            for ticker in self.tickers
            for bar in self.market.bars[ticker]
            if bar.day == session
        }
        return {ticker: Decimal(str(price)) for ticker, price in days.items()}

    def _write(self) -> None:
        new = self.folder / "clock.new"
        new.write_text(str(self.paper.time().timestamp() - time.time()))
        new.replace(self.folder / "clock")

    @property
    def environment(self) -> Mapping[str, str]:
        """What lets Python programs go by this time."""
        return {
            "PYTHONPATH": f"{MOVED}:{REPOSITORY}",
            "MOVED_CLOCK": str(self.folder / "clock"),
        }

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings by their flat names, of a desk that trades these tickers there."""
        return {
            "market_source": "alpaca",
            "alpaca_data_key_file": self.folder / "alpaca-data.key",
            "alpaca_data_url": self.data.url,
            "alpaca_data_requests_per_s": 15,
            "alpaca_tickers": ",".join(self.tickers),
            "alpaca_trading_key_file": self.folder / "alpaca-trading.key",
            "alpaca_trading_url": self.paper.url,
        }


@contextmanager
def alpaca_desk(
    folder: Path,
    start: datetime,
    last: date,
    tickers: Sequence[str],
    *,
    noise: float = 0.0,
    **paper: Any,
) -> Iterator[AlpacaDesk]:
    """Both hosts from `start` on, with prices that rise up to the session `last`, each day's at
    most `noise` of them off."""
    with paper_host(PaperHost(now=start, runs=True, **paper)) as host:
        host.wall = lambda: host.time().timestamp()
        world = SharedClock(start)
        world.host = host
        days = list(CALENDAR.sessions(start.date() - YEARS, last))
        for number, ticker in enumerate((*tickers, "SPY")):
            world.lists(ticker)
            world.trades(ticker, days, 20.0 + number, 0.05)
            for bar in world.bars[ticker]:
                off = 1 + host.chance.uniform(-noise, noise)
                bar.open, bar.high, bar.low, bar.close = (
                    round(price * off, 4) for price in (bar.open, bar.high, bar.low, bar.close)
                )
                bar.volume = int(bar.volume * (1 + host.chance.uniform(-noise, noise)))
        for module, name in ((alpaca_server, "data"), (alpaca_trading, "trading")):
            key = folder / f"alpaca-{name}.key"
            key.write_text(f"{module.KEY_ID}\n{module.SECRET}\n")
            key.chmod(0o600)
        with serving(world) as data:
            data.remaining = REQUESTS
            desk = AlpacaDesk(host, data, folder, tickers)
            desk.move(start)
            yield desk
