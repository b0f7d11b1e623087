"""Words that a masked arm may be shown: those that the desk's own contracts choose among. Pure."""

from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel, JsonValue

from contracts.account import Portfolio
from contracts.research import Plan, QuantReport, ResearchReport
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.trader import DailyPicks

CONTRACTS: tuple[type[BaseModel], ...] = (
    SignalDigest,
    SentimentReport,
    Portfolio,
    Plan,
    QuantReport,
    ResearchReport,
    DailyPicks,
)
"""What tasks are made of."""


@cache
def words_of_contracts() -> frozenset[str]:
    """Every word of an enumeration in these contracts, such as `buy` or `bullish`."""
    return frozenset(word for of in CONTRACTS for word in _words(of.model_json_schema()))


def _words(schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, list):
        for part in schema:
            yield from _words(part)
    if not isinstance(schema, dict):
        return
    listed = schema.get("enum")
    chosen = [*(listed if isinstance(listed, list) else ()), schema.get("const")]
    yield from (word for word in chosen if isinstance(word, str))
    for part in schema.values():
        yield from _words(part)
