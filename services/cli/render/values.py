"""Recorded values as people read them: nothing is cut within a word, long lists are counted. Pure.

What is recorded comes from models, news and strangers, so control characters are taken out.
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from libs.facts import amounts

ITEMS_SHOWN_MAX = 4
"""Of a long list: half from its beginning, half from its end."""
HIDDEN = frozenset(
    {
        *("version", "cycle_id", "op_id", "system_sha256", "proposal_hash", "raw"),
        "technical_indicators",
    }
)
"""Ids and hashes: exact with --json, of no use to a reader here. Indicators have a table."""

Fields = Mapping[str, JsonValue]


def flat(value: JsonValue) -> str:
    """On one line: `price 584.00 USD, quantity 12, (…)`."""
    if (price := amounts.recorded(value)) is not None:
        return price
    if isinstance(value, dict):
        shown = {
            key: inner for key, inner in value.items() if key not in HIDDEN and not _empty(inner)
        }
        return ", ".join(f"{key} {_nested(inner)}" for key, inner in shown.items())
    if isinstance(value, list):
        return _listed(value)
    return _scalar(value)


def _nested(value: JsonValue) -> str:
    text = flat(value)
    return f"({text})" if isinstance(value, dict) and text != amounts.recorded(value) else text


def _listed(items: Sequence[JsonValue]) -> str:
    if not any(isinstance(item, dict | list) for item in items):
        return " ".join(map(flat, items)) or "none"
    half = ITEMS_SHOWN_MAX // 2
    if len(items) <= ITEMS_SHOWN_MAX:
        return "; ".join(f"({flat(item)})" for item in items)
    ends = [f"({flat(item)})" for item in (*items[:half], *items[-half:])]
    return f"{len(items)} items: {'; '.join(ends[:half])} … {'; '.join(ends[half:])}"


def _empty(value: JsonValue) -> bool:
    return value is None or value in ("", [], {})


def _scalar(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else " ".join(amounts.plain(str(value)).split())


def lines(value: JsonValue) -> Sequence[tuple[str, str]]:
    """A result as fields: a list of objects is one line an object."""
    if not isinstance(value, dict):
        return [("", flat(value))]
    return [
        line
        for key, inner in value.items()
        if key not in HIDDEN and not _empty(inner)
        for line in _field(key, inner)
    ]


def _field(key: str, value: JsonValue) -> Iterable[tuple[str, str]]:
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield ("" if number else key, flat(item))
    else:
        yield key, flat(value)


def names(value: JsonValue, ticker: str) -> bool:
    """Whether a recorded value is about the ticker: it stands there as a whole value or key."""
    if isinstance(value, dict):
        return ticker in value or any(names(inner, ticker) for inner in value.values())
    if isinstance(value, list):
        return any(names(inner, ticker) for inner in value)
    return value == ticker


def about(value: JsonValue, ticker: str) -> JsonValue:
    """The value without what lists in it say of other tickers."""
    if isinstance(value, dict):
        return {key: about(inner, ticker) for key, inner in value.items()}
    if isinstance(value, list) and any(isinstance(e, dict) and names(e, ticker) for e in value):
        return [about(inner, ticker) for inner in value if names(inner, ticker)]
    return value
