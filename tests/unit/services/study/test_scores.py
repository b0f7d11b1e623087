"""Scores of studies: what they are computed from."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from libs.market.errors import SourceUnavailable
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.study.statistics.outcomes import outcomes
from libs.study.statistics.record import AssetBars
from services.study.scores import Scores

FIXTURE = Path(__file__).parents[3] / "data" / "fixture_market"
STOPPED = date(2024, 1, 5)
"""The last session of HTEL, which the source has prices after."""


def scores_of(market: Any) -> Scores:
    """Scores of this market."""
    scores = Scores.__new__(Scores)
    scores._market = market
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


def kept(sessions: Sequence[date]) -> AssetBars:
    """A share that trades on."""
    prices = tuple(100.0 for _ in sessions)
    return AssetBars(sessions=tuple(sessions), open=prices, close=prices)


async def test_a_source_that_is_away_is_no_share_without_prices() -> None:
    async def away(*_: Any) -> Any:
        raise SourceUnavailable("prices of AAPL", "no route")

    with pytest.raises(SourceUnavailable):
        await scores_of(SimpleNamespace(bars=away))._bars(("AAPL",), [STOPPED])
