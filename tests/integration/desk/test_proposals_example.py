"""The example of docs/proposals.md runs: an agent proposes, a rule cuts, a person approves."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples/proposals/run.py"
WHOLE_S = 240.0


@pytest.mark.timeout(300)
async def test_an_agent_proposes_is_cut_approved_and_filled(
    make_open_dir: Callable[[], Path],
) -> None:
    # Its prices are its own: the exit rules may judge the buy as on a real desk.
    kept = {name: value for name, value in os.environ.items() if "DESKBUS" not in name}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(EXAMPLE), "--yes", str(make_open_dir())),
        env=kept,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), WHOLE_S)
    said = out.decode()
    assert process.returncode == 0, err.decode() + said
    assert "risk_per_trade: buy of 80% cut to" in said
    assert "Unchecked words of the proposer".lower() in said.lower()
    assert "The agent sees: buy AAPL filled" in said
