"""Studies as people see them: the file as it was accepted, and how far its cells are."""

from pathlib import Path

from contracts.study import (
    StepCalls,
    StudiesQuery,
    StudiesView,
    Study,
    StudyCallsQuery,
    StudyCallsView,
    StudyView,
)
from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries

sql = Queries(Path(__file__).parent / "studies.sql")

PAID_MAX = 400
"""Operations whose calls are looked at: each is read whole, and a decision has seven."""
COUNTS = (
    *("cells", "completed", "failed", "running", "refused", "refusal", "resting"),
    *("tokens", "cost_usd", "offline", "started_at", "ended_at"),
)


async def studies(query: StudiesQuery, *, pool: Pool) -> StudiesView:
    """All studies, the newest first, or the one of that name."""
    rows = await pool.fetch(sql.studies, query.name)
    return StudiesView(studies=tuple(map(_view, rows)))


async def calls(query: StudyCallsQuery, *, pool: Pool) -> StudyCallsView:
    """The size and time of these providers' calls, by the newest on record."""
    rows = await pool.fetch(sql.calls, list(query.providers), PAID_MAX)
    return StudyCallsView(steps=tuple(StepCalls(**row) for row in rows))


def _view(row: Record) -> StudyView:
    return StudyView(
        study=Study.model_validate_json(row["body"]),
        sha256=row["sha256"],
        status=row["status"],
        reason=row["reason"],
        **{name: row[name] for name in COUNTS},
    )
