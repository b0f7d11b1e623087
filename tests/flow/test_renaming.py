"""Names decide nothing: whoever renames the tickers renames the decisions, also between equals."""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from libs.market.calendar import exchange_calendar
from libs.runtime.settings import Settings
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.flow.conftest import thinking_routes

AS_OF = date(2012, 6, 29)
SESSIONS = 320
CURVES: Sequence[tuple[float, float]] = (
    (0.0012, 0.3),
    (0.0012, 0.3),
    (0.0008, 1.1),
    (0.0008, 1.1),
    (0.0015, 2.0),
    (-0.0006, 0.7),
)
"""Drift and phase of each share's price: the first two are twins in everything, so are the next."""
NAMES = ("ABC", "DEF", "GHI", "JKL", "MNO", "PQR")
RENAMED: Mapping[str, str] = dict(
    zip(NAMES, ("ZZZ", "YYA", "BBB", "AAA", "CCC", "QQQ"), strict=True)
)


def closes(drift: float, phase: float) -> list[float]:
    return [
        round(40 * math.exp(drift * n) * (1 + 0.01 * math.sin(n / 3 + phase)), 4)
        for n in range(SESSIONS)
    ]


def written(path: Path, names: Sequence[str]) -> Path:
    """A market of these shares, each with the next of the curves."""
    calendar, days = exchange_calendar(), [AS_OF]
    while len(days) < SESSIONS:
        days.append(calendar.previous_session(days[-1]))
    path.mkdir()
    for name, curve in zip(names, CURVES, strict=True):
        rows = [
            f"{day},{close},{close * 1.01:.4f},{close * 0.99:.4f},{close},1000000"
            for day, close in zip(reversed(days), closes(*curve), strict=True)
        ]
        text = "\n".join(["date,open,high,low,close,volume", *rows])
        (path / f"{name}.csv").write_text(f"{text}\n")
    return path


async def decided(path: Path, names: Sequence[str], **constraints: str) -> InProcessDesk:
    settings = Settings(market={"replay_dir": written(path, names)})
    desk = InProcessDesk([*await thinking_routes(settings), *broker_of_the_imagination()], settings)
    cycle = await desk.run(
        CycleRequest(
            idempotency_key="names",
            as_of=AS_OF,
            universe=tuple(names),
            pipelines=(Pipeline(name="rules"), Pipeline(name="lot", provider="coin")),
            constraints=constraints,
        )
    )
    assert {lane.status for lane in cycle.state.lanes.values()} == {"completed"}
    return desk


def shares(desk: InProcessDesk, lane: str) -> dict[str, tuple[Any, ...]]:
    decisions: Any = desk.contract("validate", lane)["decisions"]
    return {
        each["asset"]: (each["action"], each["quantity"], each["allocation_pct"])
        for each in decisions
    }


@pytest.mark.slow
@pytest.mark.parametrize("places", ["1", "2", "3", "6"])
@pytest.mark.parametrize("lane", ["rules", "lot"])
async def test_a_renaming_of_the_tickers_renames_the_decisions(
    places: str, lane: str, tmp_path: Path
) -> None:
    plain = await decided(tmp_path / "plain", NAMES, max_positions=places)
    other = await decided(tmp_path / "other", tuple(RENAMED.values()), max_positions=places)
    before, after = shares(plain, lane), shares(other, lane)
    assert {RENAMED[name]: share for name, share in before.items()} == after
    assert len(before) <= int(places)


async def test_twins_are_treated_alike_by_the_rules(tmp_path: Path) -> None:
    bought = shares(await decided(tmp_path / "market", NAMES), "rules")
    assert bought
    assert bought.get("ABC") == bought.get("DEF")
    assert bought.get("GHI") == bought.get("JKL")
    assert {"ABC", "GHI"} & bought.keys()
