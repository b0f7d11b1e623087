"""Filters in a page's address: what a form sends empty means all."""

from typing import Annotated, Any

from pydantic import BeforeValidator


def _unless_empty(value: Any) -> Any:
    return value if value != "" else None


OrAll = BeforeValidator(_unless_empty)
"""For a query parameter that may be left out or sent empty: `Annotated[Kind | None, OrAll]`."""
Word = Annotated[str | None, OrAll]
"""Any text, or None."""
