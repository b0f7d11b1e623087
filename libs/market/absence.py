"""The sentence of an answer that has nothing: a source's, never the world's. Pure."""

from collections.abc import Mapping
from typing import Any


def none_of(what: str, answer: Mapping[str, Any]) -> str:
    """`source yahoo has no headlines of FB up to 2012-06-29`: of a market tool's empty answer, by
    its `source`, `ticker` and `as_of`."""
    name = f"source {answer['source']}" if answer.get("source") else "the source"
    return f"{name} has no {what} of {answer['ticker']} up to {answer.get('as_of') or 'as_of'}"
