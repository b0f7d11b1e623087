"""The doctor's words on models: their prices, and a key that came after the desk had started."""

from pathlib import Path
from typing import Any

import pytest

from contracts.provider import ProviderStanding, ProvidersView
from libs.runtime.own_folder import data_dir_mode, make_data_dir
from libs.runtime.settings import Settings
from services.cli.operating import doctor
from services.cli.operating.checks import CheckVerdict, DoctorCheck


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-none")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Settings()


class Desk:
    """A running desk that can use these providers."""

    def __init__(self, *names: str) -> None:
        self._names = names

    async def ask(self, *_: object) -> ProvidersView:
        """The view that the desk's sentiment service would give."""
        standings = tuple(ProviderStanding(name=name, usable=True) for name in self._names)
        return ProvidersView(providers=standings)


def test_a_model_that_is_set_up_says_what_its_tokens_cost(settings: Settings) -> None:
    finding = {check.name: check.said for check in doctor.machine(settings)}

    assert "a million tokens of " in finding["model claude"]
    assert " in and $" in finding["model claude"]
    assert finding["model rules"] == "can be used"
    assert "before the desk starts, set OPENAI_API_KEY" in finding["model openai"]
    assert finding["model ollama"].startswith("ollama has no models: set models in")


def test_a_model_that_is_set_up_says_where_its_key_comes_from(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claude() -> str:
        return {check.name: check.said for check in doctor.machine(settings)}["model claude"]

    assert claude().startswith("set up with the key of ANTHROPIC_API_KEY; not called here")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    file = settings.secrets_path / "claude.key"
    file.parent.mkdir(parents=True)
    file.write_text("sk-ant-none")
    assert claude().startswith(f"set up with the key of {file}; not called here")


def test_a_data_directory_that_others_can_list_is_told(settings: Settings) -> None:
    def data() -> DoctorCheck:
        return next(check for check in doctor.machine(settings) if check.name == "data")

    make_data_dir(settings.data_dir)
    assert data().verdict is CheckVerdict.OK
    settings.data_dir.chmod(0o755)
    assert data().verdict is CheckVerdict.PROBLEM
    assert data().todo == f"chmod {data_dir_mode():o} {settings.data_dir.absolute()}"


def test_a_server_of_ones_own_that_needs_no_key_says_so(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "deskbus.toml").write_text(
        '[providers.ollama]\nmodels = { small = "a", medium = "a", large = "a" }\n'
    )
    said = {check.name: check.said for check in doctor.machine(Settings())}["model ollama"]
    assert said.startswith("set up without a key; not called here")


async def test_a_key_that_came_after_the_desk_had_started_is_told(settings: Settings) -> None:
    desk: Any = Desk("rules", "coin")
    late = await doctor.models_of(desk, settings)
    assert late.verdict is CheckVerdict.OFF
    assert "not claude, which is configured here" in late.said
    assert late.todo == "start it again from here: deskbus down && deskbus up --detach"

    desk = Desk("rules", "coin", "claude")
    assert (await doctor.models_of(desk, settings)).verdict is CheckVerdict.OK
