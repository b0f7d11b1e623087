"""Costs of models, by day, model and step of the work."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from contracts.http import CostRow, CostsView
from contracts.types import Usage
from libs.postgres.pool import Record
from services.console.store import Store

OPERATIONS_MAX = 1_000
"""Operations with paid calls that are looked at, the newest first; the whole of each journal is
read for it."""


async def costs(days: int, *, store: Store, now: Callable[[], datetime]) -> CostsView:
    """The last `days` UTC days, today included."""
    since = now().astimezone(UTC).date() - timedelta(days=days - 1)
    rows = await store.paid_calls(since, OPERATIONS_MAX)
    counted = rows[0]["operations"] if rows else 0
    return CostsView(
        since=since, rows=tuple(map(_row, rows)), counted=counted, cut=counted == OPERATIONS_MAX
    )


def _row(row: Record) -> CostRow:
    provider, _, model = (row["name"] or "").partition(":")
    return CostRow(
        day=row["day"],
        provider=provider or "unknown",
        model=model or None,
        stage=row["step"],
        calls=row["calls"],
        usage=Usage(
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            cache_read_tokens=row["cache_read_tokens"],
            cache_write_tokens=row["cache_write_tokens"],
            unsorted_tokens=row["unsorted_tokens"],
            cost_usd=None if row["cost_usd"] is None else max(row["cost_usd"], 0),
        ),
    )
