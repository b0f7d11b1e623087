"""A refusal over HTTP names settings as they are set here."""

from pathlib import Path

import orjson
import pytest

from libs.web.problem import HttpProblem


def test_a_problem_names_a_setting_as_it_is_set_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DESKBUS_BUDGET_DAY_TOKENS_MAX", raising=False)
    (tmp_path / "deskbus.toml").write_text("[budget]\nday_tokens_max = 5\n")
    refused = HttpProblem(422, "budget_exhausted", "raise DESKBUS_BUDGET_DAY_TOKENS_MAX")
    body = orjson.loads(bytes(refused.response.body))
    assert body["detail"] == "raise budget.day_tokens_max in deskbus.toml"
