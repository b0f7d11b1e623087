"""A replay says which plug-ins are not what they were, and loads none of them."""

from pathlib import Path

import pytest

from contracts.cycle_query import Recording
from contracts.operation import CallKind, JournalEntry
from libs.market.tools.own import tool_of
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


def test_a_tool_is_known_by_the_calls_of_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_tools.py").write_text("def mine(asked):\n    'Doc.'\n")
    entry = JournalEntry(
        index=0,
        kind=CallKind.READ,
        name="plug-in my_tools:mine",
        request_sha256="0" * 64,
        request={"plugin": "my_tools:mine"},
        reply=tool_of("my_tools:mine").model_dump(mode="json"),
    )
    step = Recording(found=True, journal=(entry,))
    assert changed_plugins([step]) == []
    (tmp_path / "my_tools.py").write_text("def mine(asked):\n    'Another.'\n")
    (said,) = changed_plugins([step])
    assert said.startswith("plug-in my_tools:mine has changed")
