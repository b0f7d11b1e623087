"""Scores of studies for pages: each is computed, however many readers have left before theirs."""

import asyncio
from types import SimpleNamespace
from typing import Any

from contracts.study_score import StudyScoreQuery
from services.console.studies.score import COMING_MAX, Scores


class Asked(Scores):
    """Computes nothing, and keeps what was asked for; every other one fails."""

    def __init__(self) -> None:
        self._coming, self._kept = {}, {}  # type: ignore[assignment]
        self.computed: list[str] = []

    async def _wanted(self, query: StudyScoreQuery) -> Any:
        return SimpleNamespace(question=(query.name,))

    async def _scored(self, wanted: Any) -> Any:
        self.computed.append(wanted.question[0])
        if len(self.computed) % 2:
            raise ValueError("no prices")


async def test_readers_who_left_before_their_score_was_there_keep_nobody_elses_from_coming() -> (
    None
):
    scores = Asked()
    names = [f"study-{number}" for number in range(2 * COMING_MAX + 1)]
    for name in names:
        await scores.at_once(StudyScoreQuery(name=name))
        await asyncio.sleep(0)  # it is computed, and nobody comes back for it

    assert scores.computed == names
    await scores.close()


async def test_while_all_are_being_computed_a_further_one_waits() -> None:
    scores = Asked()
    for number in range(COMING_MAX + 1):
        await scores.at_once(StudyScoreQuery(name=f"study-{number}"))
    assert len(scores._coming) == COMING_MAX
    await scores.close()
