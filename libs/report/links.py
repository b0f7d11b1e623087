"""Paths of the console's pages that a description links to. Pure."""

from datetime import date
from urllib.parse import quote, urlencode
from uuid import UUID


def ticker(name: str, account: str, as_of: date | None = None) -> str:
    """The chart of a ticker as the account has seen it, with what was known as of a session."""
    day = {} if as_of is None else {"as_of": str(as_of)}
    return f"/tickers/{quote(name)}?{urlencode({'account': account} | day)}"


def cycle(cycle_id: UUID) -> str:
    """A cycle with its steps."""
    return f"/cycles/{cycle_id}"


def decision(cycle_id: UUID, pipeline: str) -> str:
    """The decision of one pipeline of a cycle."""
    return f"/decisions/{cycle_id}/{quote(pipeline)}"


def letter(number: int) -> str:
    """A dead letter."""
    return f"/letters/{number}"


def strategy(name: str) -> str:
    """A strategy's newest run."""
    return f"/strategies/{quote(name)}"


def performance(account: str) -> str:
    """How an account did."""
    return f"/performance?{urlencode({'account': account})}"
