"""Execution's loop in a process of its own, to be killed: `python -m ...sending DSN URL CLOCK`.

CLOCK is a file with the desk's time and when that was, in seconds since the epoch. It says `ready`
once it begins.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from libs.broker.alpaca import AlpacaPaper
from libs.market.calendar import ExchangeCalendar, exchange_calendar
from libs.market.source import CorporateAction
from libs.postgres.pool import open_pool
from libs.runtime.key_pair import KeyPair
from services.execution.reads import ExecutionReads
from services.execution.venue.looks import Clock, Looker
from services.execution.venue.sender import OrderSender

KEY_ID, SECRET = "PKMADEUP0123456789AB", "madeUpSecretmadeUpSecretmadeUpSecret0123"

ANSWER_S = 0.4
LEASE_S = 1.2
"""Longer than the two answers of a post may take."""


def clock_in(file: Path) -> Clock:
    """The time that a file says, running on since it was written."""

    def now() -> datetime:
        said = json.loads(file.read_text())
        moment = datetime.fromisoformat(said["now"])
        return moment + timedelta(seconds=time.time() - said["at"])

    return now


@dataclass(frozen=True)
class Quiet:
    """A market in which nothing happens."""

    calendar: ExchangeCalendar

    async def actions(self, *_: object) -> tuple[CorporateAction, ...]:
        return ()


async def main(dsn: str, url: str, file: str) -> None:
    prices = Quiet(exchange_calendar())
    reads = ExecutionReads(prices, prices, prices)  # type: ignore[arg-type]
    clock = clock_in(Path(file))
    async with open_pool(dsn) as pool:
        venue = AlpacaPaper(KeyPair(SecretStr(KEY_ID), SecretStr(SECRET)), url, ANSWER_S)
        looker = Looker(pool, venue, reads, clock, settle_s=0.05)
        sender = OrderSender(
            pool, venue, looker, clock, lease_s=LEASE_S, tick_s=0.05, idle_s=0.1, defect_s=0.2
        )
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await sender.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
