"""Studies as people see them: the file as it was accepted, and how far its cells are."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from contracts.message import MESSAGE_BYTES_MAX
from contracts.study import (
    StepCalls,
    StudiesQuery,
    StudiesView,
    StudyCallsQuery,
    StudyCallsView,
    StudyStatus,
    StudyView,
)
from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries
from services.study.record import UnreadableStudy, study_in

sql = Queries(Path(__file__).parent / "progress.sql")

VIEWS_BYTES_MAX = MESSAGE_BYTES_MAX - 32_000
"""Of the views in an answer: the rest is for what holds them together."""
PAID_MAX = 400
"""Operations whose calls are looked at: each is read whole, and a decision has seven."""
Mark = tuple[object, ...]


class StudyProgress:
    """Reads studies. The cells of one that rests, which may be thousands, are counted once."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._kept: dict[str, tuple[Mark, Record]] = {}

    async def answer(self, _: str, query: StudiesQuery) -> StudiesView:
        """The study of that name, or the newest ones, as many as one answer holds. Raises
        `UnreadableStudy` for the one that is named."""
        rows = await self._pool.fetch(sql.studies, query.name)
        counts = await self._counts(rows)
        views, unreadable = [], []
        for row in rows:
            try:
                views.append(_view(row, counts[row["name"]]))
            except UnreadableStudy as error:
                if query.name is not None:
                    raise
                unreadable.append(error.name)
        sizes = accumulate(len(view.model_dump_json()) + 1 for view in views)
        kept = [view for view, size in zip(views, sizes, strict=True) if size <= VIEWS_BYTES_MAX]
        return StudiesView(
            studies=tuple(kept), more=len(kept) < len(views), unreadable=tuple(unreadable)
        )

    async def _counts(self, rows: Sequence[Record]) -> Mapping[str, Record]:
        marks = {row["name"]: _mark(row) for row in rows}
        counts = {
            name: self._kept[name][1]
            for name, mark in marks.items()
            if name in self._kept and self._kept[name][0] == mark
        }
        if new := [name for name in marks if name not in counts]:
            read = await self._pool.fetch(sql.counts, new)
            counts |= {row["study"]: row for row in read}
        resting = [row["name"] for row in rows if row["status"] != StudyStatus.RUNNING]
        self._kept |= {
            name: (marks[name], counts[name]) for name in resting if not counts[name]["running"]
        }
        return counts


def _mark(row: Record) -> Mark:
    """The state of a study that differs before another of its cells can begin."""
    return row["status"], row["round"], row["next_cell"]


async def calls(pool: Pool, _: str, query: StudyCallsQuery) -> StudyCallsView:
    """The size and time of these providers' calls, by the newest on record."""
    rows = await pool.fetch(sql.calls, list(query.providers), PAID_MAX)
    return StudyCallsView(steps=tuple(StepCalls(**row) for row in rows))


def _view(row: Record, counts: Record) -> StudyView:
    return StudyView(**{**row, **counts, "study": study_in(row)})
