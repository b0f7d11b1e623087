"""What an Alpaca account may read, as a process found it out: a file that `deskbus doctor` shows.

It holds no key.
"""

from datetime import datetime
from pathlib import Path

import orjson

from libs.market.alpaca.feed import AlpacaStanding, PriceFeed
from libs.market.alpaca.pages import RateSeen
from libs.market.errors import SourceUnavailable

FILE = "standing.json"


def keep_standing(directory: Path, standing: AlpacaStanding) -> None:
    """Write it, whole or not at all. Raises SourceUnavailable where that is not possible."""
    rate = standing.rate
    content = {
        "feed": standing.feed.value,
        "at": standing.at.isoformat(),
        "rate": None if rate is None else [rate.limit, rate.remaining, rate.resets_at],
    }
    path = directory / FILE
    partial = path.with_name(f"{FILE}.partial")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(orjson.dumps(content))
        partial.replace(path)
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
