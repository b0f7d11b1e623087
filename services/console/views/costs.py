"""Costs of models, by day, model and step of the work."""

from datetime import UTC, timedelta

from contracts.http import CostRow, CostsView
from contracts.types import Usage
from libs.postgres.pool import Record
from services.console.store import sql
from services.console.views.desk import DeskViews

OPERATIONS_MAX = 1_000
"""Operations with paid calls that are looked at, the newest first; the whole of each journal is
read for it."""


async def costs(days: int, desk: DeskViews) -> CostsView:
    """The last `days` UTC days, today included."""
    since = desk.now().astimezone(UTC).date() - timedelta(days=days - 1)
    rows = await desk.store.rows(sql.paid_calls, since, OPERATIONS_MAX)
    counted = rows[0]["operations"] if rows else 0
    return CostsView(
        since=since, rows=tuple(map(_row, rows)), counted=counted, cut=counted == OPERATIONS_MAX
    )


def _row(row: Record) -> CostRow:
    provider, _, model = (row["name"] or "").partition(":")
    cost_usd = None if row["cost_usd"] is None else max(row["cost_usd"], 0)
    return CostRow.model_validate(
        {
            **row,
            "provider": provider or "unknown",
            "model": model or None,
            "stage": row["step"],
            "usage": Usage.model_validate({**row, "cost_usd": cost_usd}),
        }
    )
