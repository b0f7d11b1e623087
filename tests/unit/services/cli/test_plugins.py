"""What doctor says of a plug-in that answers, and of one that does not."""

import asyncio
from pathlib import Path

import pytest

from libs.runtime.settings import Settings, WrongSetting, settings_in_force
from services.cli.operating.checks import CheckVerdict
from services.cli.operating.plugins import plugins_tried


def test_each_plug_in_is_asked_about_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_rules.py").write_text(
        "def good(buy):\n    return 3, 'three'\ndef bad(buy):\n    return 3\n"
    )
    names = ("my_rules:good", "my_rules:bad", "no_rules:x")
    good, bad, gone = asyncio.run(plugins_tried(Settings(plugins=names)))
    assert good.verdict is CheckVerdict.OK
    assert good.said == "my_rules:good allows 3 of a sample of 100 shares of MSFT: three"
    assert bad.verdict is gone.verdict is CheckVerdict.PROBLEM
    assert "it returned 3, and not a quantity and a reason" in bad.said
    assert "no_rules" in gone.said


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('["my_rules"]', "package.module:function"),
        ('["a:b", "a:b"]', "named twice"),
        ('["a-b:c"]', "package.module:function"),
    ],
)
def test_a_name_that_is_none_is_refused(
    text: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deskbus.toml").write_text(f"plugins = {text}\n")
    with pytest.raises(WrongSetting, match=wrong):
        settings_in_force()
