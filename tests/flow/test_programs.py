"""Whole cycles whose trader is a program of this machine: its answer is judged like any other."""

import os
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from contracts.cycle import CycleRequest, CycleStatus
from contracts.message import Pipeline
from libs.runtime.settings import Settings
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.fakes.reasons import drafted
from tests.flow.conftest import thinking_routes

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root may start another user's program"
)
DAY = date(2012, 6, 29)
SECRET = "SEED-OF-THE-ORCHESTRATOR"


def all_in(*tickers: str) -> str:
    """The trader's answer of one that puts everything on each of these."""
    leg = {"allocation_pct": "100", "confidence": 1.0}
    picks = [{**leg, "ticker": name, "reasons": [drafted(name)]} for name in tickers]
    return orjson.dumps({"picks": picks, "confidence": 1.0}).decode()


async def ran(folder: Path, script: str) -> tuple[InProcessDesk, Any]:
    """A cycle whose trader is this shell script, on a desk whose folder holds a secret."""
    secrets = folder / ".deskbus" / "secrets"
    secrets.mkdir(parents=True, mode=0o700)
    (secrets / "orchestrator.nk").write_text(SECRET)
    settings = Settings(
        data_dir=folder / ".deskbus",
        providers={
            "local": {"command": ["/bin/sh", "-c", script], "sandbox": {"run_as": "nobody"}}
        },
    )
    desk = InProcessDesk([*await thinking_routes(settings), *broker_of_the_imagination()], settings)
    pipeline = Pipeline(name="a", provider="rules", stages={"trader": "local"})
    return desk, await desk.run(CycleRequest(idempotency_key="a", as_of=DAY, pipelines=(pipeline,)))


async def test_a_decision_of_a_program_says_that_outside_tools_are_not_excluded(
    tmp_path: Path,
) -> None:
    desk, cycle = await ran(tmp_path, """echo '{"picks": [], "confidence": 0.5}'""")
    assert cycle.state.status is CycleStatus.COMPLETED, cycle.state.reason
    marks = [(it["stage"], it["by"], it["why"]) for it in desk.contract("validate")["substitutes"]]  # type: ignore[attr-defined]
    assert ("trader", "local", "outside_tools") in marks


@pytest.mark.slow
async def test_a_hostile_program_gets_no_secret_and_no_more_than_the_limits(tmp_path: Path) -> None:
    place = tmp_path / ".deskbus" / "secrets"
    spies = f"cat {place}/orchestrator.nk; ls -R {tmp_path}; env; (setsid sleep 4711.6 &); "
    desk, cycle = await ran(tmp_path, f"{spies} echo '{all_in('MSFT')}'")
    everything = orjson.dumps(
        [entry.model_dump(mode="json") for it in desk.operations.values() for entry in it.journal]
    ).decode()
    assert "allocation_pct" in everything
    assert SECRET not in everything
    assert cycle.state.status is CycleStatus.COMPLETED, cycle.state.reason
    validation: Any = desk.contract("validate")
    prices = {each["ticker"]: Decimal(str(each["price"])) for each in validation["evidence"]}
    [order] = validation["decisions"]
    spent = Decimal(order["quantity"]) * prices[order["asset"]]
    assert 0 < spent <= Decimal(1_000) * Settings().limits.position_pct_max


@pytest.mark.slow
async def test_a_program_buys_nothing_that_the_desk_did_not_look_at(tmp_path: Path) -> None:
    desk, cycle = await ran(tmp_path, f"echo '{all_in('EVIL')}'")
    assert cycle.state.status is CycleStatus.FAILED
    assert "not researched" in (cycle.state.reason or "")
    assert "validate" not in {it.row.step for it in desk.operations.values()}
