"""A desk in a folder of its own, as docs/live-sources.md and docs/broker.md set it up, with
stand-ins of Alpaca for prices and orders, and a clock that a test moves."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes.alpaca_desk import AlpacaDesk, alpaca_desk
from tests.integration.desk.command_line import CommandLine, Said, ended, up

NUMBER = "PA3MADEUP001"
SOON_S = 180.0
POLL_S = 0.1
SETTINGS = """
[market]
source = "alpaca"

[alpaca]
data_key_file = "alpaca-data.key"
trading_key_file = "{trading_key_file}"
tickers = "{tickers}"

# The made-up tickers have no sector, and move as one.
[limits]
sector_pct_max = 100
cluster_pct_max = 100
volatility_pct_max = 100
exits_veto_buys = false
"""

T = TypeVar("T")


@dataclass(frozen=True)
class DeskAtAlpaca:
    """Both hosts, and the desk's folder as a person has it."""

    alpaca: AlpacaDesk
    deskbus: CommandLine

    def said(self, typed: str) -> str:
        """What a command prints, which must end well."""
        done = self.deskbus(typed)
        assert done.code == 0, f"deskbus {typed}: {done}"
        return done.out

    def rows(self, typed: str) -> list[Any]:
        """What a command says with --json."""
        done: Said = self.deskbus(f"{typed} --json")
        assert done.code == 0, f"deskbus {typed}: {done}"
        return done.rows

    def orders(self) -> dict[str, Any]:
        """The orders for the broker that are not over, by ticker."""
        return {row["asset"]: row for row in self.rows("orders list --open")}

    def sent(self) -> dict[str, Any]:
        """The same once the broker has all of them."""
        return soon(
            self.orders,
            lambda orders: all(order["state"] == "known" for order in orders.values()),
        )


def soon(look: Callable[[], T], is_so: Callable[[T], bool]) -> T:
    """What is seen once it is so."""
    until = time.monotonic() + SOON_S
    while True:
        seen = look()
        if is_so(seen):
            return seen
        assert time.monotonic() < until, seen
        time.sleep(POLL_S)


@contextmanager
def desk_at_alpaca(
    folder: Path,
    start: datetime,
    last: date,
    tickers: Sequence[str],
    more: str = "",
    *,
    options: str = "",
    trading_key_file: str = "alpaca-trading.key",
) -> Iterator[DeskAtAlpaca]:
    """The desk, up; `more` goes into its settings, `options` to `deskbus up`."""
    with alpaca_desk(folder, start, last, tickers, number=NUMBER) as alpaca:
        named = {"tickers": ",".join(tickers), "trading_key_file": trading_key_file}
        (folder / "deskbus.toml").write_text(f"{SETTINGS.format(**named)}\n{more}")
        settings = {
            **alpaca.environment,
            "QUICK_BROKER": "10",
            "DESKBUS_ALPACA_DATA_URL": alpaca.data.url,
            "DESKBUS_ALPACA_DATA_REQUESTS_PER_S": "15",
            "DESKBUS_ALPACA_TRADING_URL": alpaca.paper.url,
        }
        deskbus = CommandLine(folder / "data", folder, tuple(settings.items()))
        with up(deskbus, options) as (process, _):
            try:
                yield DeskAtAlpaca(alpaca, deskbus)
            finally:
                ended(process, signal.SIGINT)
