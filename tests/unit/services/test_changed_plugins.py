"""A replay says which plug-ins are not what they were, and loads none of them."""

from pathlib import Path

import pytest

from contracts.cycle_query import Recording
from libs.runtime.own_code import source_sha256
from services.replay import changed_plugins

RULE = "my_rules:penny_stock"


def recorded(sha256: str) -> Recording:
    return Recording(found=True, result={"plugins": [{"plugin": RULE, "sha256": sha256}]})


def test_a_change_and_an_absence_are_said_and_nothing_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = tmp_path / "my_rules.py"
    module.write_text("raise SystemExit('it was loaded')")
    then = source_sha256("my_rules")
    assert changed_plugins([recorded(then), Recording(found=True)]) == []
    module.write_text("raise SystemExit('another')")
    now = source_sha256("my_rules")
    assert changed_plugins([recorded(then)]) == [
        f"plug-in {RULE} has changed: its source was {then[:12]}, and is {now[:12]}"
    ]
    module.unlink()
    assert changed_plugins([recorded(then)]) == [
        f"plug-in {RULE} has changed: its source was {then[:12]}, and is not there"
    ]
