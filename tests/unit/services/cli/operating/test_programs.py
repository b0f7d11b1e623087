"""`deskbus doctor` on providers that are programs: what they could reach, tried."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from libs.runtime.settings import Settings
from services.cli.operating.checks import CheckVerdict
from services.cli.operating.programs import programs_tried

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root may start another user's program"
)


def settings(folder: Path, **section: Any) -> Settings:
    return Settings(data_dir=folder, providers={"local": {"command": ["/bin/echo"], **section}})


async def test_a_proof_a_failed_one_and_nothing_to_try(tmp_path: Path) -> None:
    kept = {"sandbox": {"run_as": "nobody"}}
    (proven,) = await programs_tried(settings(tmp_path, **kept))
    assert proven.verdict is CheckVerdict.OK
    assert "outside tools are possible" in proven.said
    (opened,) = await programs_tried(settings(tmp_path))
    assert opened.verdict is CheckVerdict.PROBLEM
    assert str(tmp_path) in opened.said
    (early,) = await programs_tried(settings(tmp_path / "none", **kept))
    assert early.verdict is CheckVerdict.OFF
    assert await programs_tried(Settings()) == []


async def test_a_program_that_is_not_there_and_a_vendor_alone_are_told(tmp_path: Path) -> None:
    sandbox = {"run_as": "nobody", "only_vendor": True}
    (absent,) = await programs_tried(settings(tmp_path, command=["no-agent"], sandbox=sandbox))
    assert "no-agent" in absent.said
    (stated,) = await programs_tried(settings(tmp_path, sandbox=sandbox))
    assert "reaches only its vendor" in stated.said
