"""What an Alpaca account may read, as a process found it out: a file that `deskbus doctor` shows.

It holds no key.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

import orjson

from libs.market.alpaca.pages import RateSeen
from libs.market.errors import SourceUnavailable
from libs.runtime.own_folder import make_folder
from libs.runtime.whole_file import write_whole

ALPACA_DIR = "cache/alpaca"
"""Where all processes keep Alpaca's pace, and what the account may read, below the data
directory."""
FILE = "standing.json"


class PriceFeed(StrEnum):
    """Where the account may read prices: of all US exchanges, or of IEX alone."""

    SIP = "sip"
    IEX = "iex"


@dataclass(frozen=True, slots=True)
class AlpacaStanding:
    """What an account may read and how much of its rate was left, as seen at `at`."""

    feed: PriceFeed
    at: datetime
    rate: RateSeen | None


def keep_standing(directory: Path, standing: AlpacaStanding) -> None:
    """Write it, whole or not at all. Raises SourceUnavailable where that is not possible."""
    rate = standing.rate
    content = {
        "feed": standing.feed.value,
        "at": standing.at.isoformat(),
        "rate": None if rate is None else [rate.limit, rate.remaining, rate.resets_at],
    }
    try:
        make_folder(directory)
        write_whole(directory / FILE, orjson.dumps(content))
    except OSError as error:
        why = f"{directory} cannot be written ({error.strerror}); set DESKBUS_DATA_DIR"
        raise SourceUnavailable("what the account may read", why) from error


def kept_standing(directory: Path) -> AlpacaStanding | None:
    """What was found out last; None where nothing was, or the file says nothing."""
    try:
        content = orjson.loads((directory / FILE).read_bytes())
        rate = None if content["rate"] is None else RateSeen(*map(int, content["rate"]))
        at = datetime.fromisoformat(content["at"])
        return AlpacaStanding(PriceFeed(content["feed"]), at, rate)
    except (OSError, ValueError, KeyError, TypeError):
        return None
