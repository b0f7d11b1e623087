"""JSON in which a name stands twice in one object: readers differ in which of the two counts."""

import json
from collections.abc import Sequence
from typing import Any


class _Repeated(Exception):
    """Ends the search."""


def repeated_key(text: bytes) -> str | None:
    """A name that stands twice in one object of the JSON text; None where there is none, or where
    the text is no JSON (whoever reads it says so)."""
    try:
        json.loads(text, object_pairs_hook=_object)
    except _Repeated as repeated:
        return str(repeated)
    except (ValueError, RecursionError):
        return None
    return None


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Repeated(next(name for name in values if names.count(name) > 1))
    return values
