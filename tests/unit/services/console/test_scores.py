"""Scores of studies: what they are computed from, and how pages get them."""

import asyncio
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contracts.study_score import StudyScoreQuery
from libs.market.errors import SourceUnavailable
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.quant.study.outcomes import outcomes
from libs.quant.study.record import Bars
from services.console.app import MarketHistory
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


FIXTURE = Path(__file__).parents[3] / "data" / "fixture_market"
STOPPED = date(2024, 1, 5)
"""The last session of HTEL, which the source has prices after."""


def scores_of(market: Any) -> Scores:
    """Scores that read prices as the console does."""
    scores = Asked()
    scores._prices = MarketHistory(market)
    return scores


async def test_a_share_that_stops_trading_is_scored_up_to_its_last_session() -> None:
    market = ReplayMarket(ReplayStore(FIXTURE))
    sessions = market.calendar.sessions(date(2024, 1, 2), date(2024, 1, 10))

    bars = await scores_of(market)._bars(("HTEL", "NOBODY"), sessions)

    assert list(bars) == ["HTEL"], "who never had a price is left out"
    assert bars["HTEL"].sessions[-1] == STOPPED
    dates, horizon = sessions[:3], 3
    of = outcomes(dates, ("HTEL", "KEPT"), {**bars, "KEPT": kept(sessions)}, sessions, horizon)
    held = bars["HTEL"].close[-1] / bars["HTEL"].open[-1] - 1
    assert of.returns[-1, 0] == pytest.approx(held), "bought at its last open, it keeps its close"


def kept(sessions: Sequence[date]) -> Bars:
    """A share that trades on."""
    prices = tuple(100.0 for _ in sessions)
    return Bars(sessions=tuple(sessions), open=prices, close=prices)


async def test_a_source_that_is_away_is_no_share_without_prices() -> None:
    async def away(*_: Any) -> Any:
        raise SourceUnavailable("prices of AAPL", "no route")

    with pytest.raises(SourceUnavailable):
        await scores_of(SimpleNamespace(bars=away))._bars(("AAPL",), [STOPPED])
