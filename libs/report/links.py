"""Paths of the console's pages that a description links to. Pure."""

from urllib.parse import quote, urlencode
from uuid import UUID


def ticker(name: str, account: str) -> str:
    """The chart of a ticker as the account has seen it."""
    return f"/tickers/{quote(name)}?{urlencode({'account': account})}"


def decision(cycle_id: UUID, pipeline: str) -> str:
    """The decision of one pipeline of a cycle."""
    return f"/decisions/{cycle_id}/{quote(pipeline)}"


def performance(account: str) -> str:
    """How an account did."""
    return f"/performance?{urlencode({'account': account})}"
