"""JSON Schemas on their way to a model: what a format can bind, and words for the rest."""

from collections.abc import Mapping
from typing import Any

import orjson


def has_maps(schema: object) -> bool:
    """Whether some object may have keys of the model's own choosing.

    Strict formats know fixed keys only, and would leave such an object empty.
    """
    match schema:
        case Mapping():
            free = schema.get("type") == "object" and (
                schema.get("additionalProperties", "properties" not in schema) is not False
                and "properties" not in schema
            )
            return free or any(has_maps(value) for value in schema.values())
        case list():
            return any(has_maps(value) for value in schema)
        case _:
            return False


def asked_for(schema: Mapping[str, Any]) -> str:
    """The words that ask for an answer of this schema, for a prompt."""
    return (
        "Answer with one JSON object and nothing else. It must follow this JSON Schema:\n"
        f"{orjson.dumps(dict(schema), option=orjson.OPT_SORT_KEYS).decode()}"
    )
