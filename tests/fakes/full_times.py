"""The times that stand in an answer, found without the code under test."""

from datetime import datetime
from typing import Any


def times_of(value: Any) -> list[datetime]:
    """Every full time in a result."""
    if isinstance(value, dict):
        return [time for inner in value.values() for time in times_of(inner)]
    if isinstance(value, list):
        return [time for inner in value for time in times_of(inner)]
    if isinstance(value, str) and len(value) > 10 and value[:4].isdigit() and "T" in value:
        return [datetime.fromisoformat(value)]
    return []
