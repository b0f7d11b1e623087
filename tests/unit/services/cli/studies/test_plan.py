"""`deskbus study plan`: what speaks against a study is told with what helps."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from libs.runtime.settings import Settings
from services.cli.shell.problem import WrongUsage
from services.cli.studies import plan as module


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"universe": ["AAPL", "GOOGL"]}, "the source has AAPL, "),
        ({"arms": [{"name": "x", "provider": "cluade"}]}, "docs/providers.md lists them"),
        ({"dates": {"sessions": ["2012-06-30"]}}, "deskbus init writes study.yaml"),
    ],
)
def test_what_speaks_against_a_study_is_told_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fields: dict[str, Any], hint: str
) -> None:
    monkeypatch.setattr(module, "load_settings", Settings)
    monkeypatch.setattr(module, "recorded", nothing_recorded)
    whole = {
        "name": "it",
        "dates": {"first": "2012-01-03", "last": "2012-06-29", "count": 10},
        "universe": ["AAPL", "IBM"],
        "arms": [{"name": "rules"}],
        **fields,
    }
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(whole))
    with pytest.raises(WrongUsage) as refused:
        module.plan(file)
    assert refused.value.hint.startswith(hint)


async def nothing_recorded(*_: object) -> dict[tuple[str, str], Any]:
    return {}
