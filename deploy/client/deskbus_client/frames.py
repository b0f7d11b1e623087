"""Contracts as a table of polars, for whoever has installed `deskbus-client[polars]`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import BaseModel

if TYPE_CHECKING:
    import polars as pl


def frame(rows: Iterable[BaseModel]) -> "pl.DataFrame":
    """A row for each, a column a field; a part of a contract becomes a struct.

    `frame(desk.account().held)`. Raises ModuleNotFoundError without polars.
    """
    import polars as pl  # noqa: PLC0415 - an extra

    return pl.DataFrame([_plain(row.model_dump()) for row in rows], infer_schema_length=None)


def _plain(value: Any) -> Any:
    """The value without what polars has no type for: ids and words of a list become texts."""
    match value:
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(inner) for inner in value]
        case UUID() | str():
            return str(value)
        case _:
            return value
