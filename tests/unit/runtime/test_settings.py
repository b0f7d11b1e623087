"""Settings by theme: their names in the file and in the environment, and what is refused."""

from pathlib import Path

import pytest

from libs.runtime.setting_names import as_set
from libs.runtime.settings import (
    SETTINGS_FILE,
    Settings,
    WrongSetting,
    all_settings,
    settings_in_force,
    variable,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_environment_stands_above_the_file_setting_by_setting(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / SETTINGS_FILE).write_text('[http]\nport = 1\nhost = "localhost"\n')
    monkeypatch.setenv("DESKBUS_HTTP_PORT", "2")
    http = settings_in_force().http
    assert (http.port, http.host) == (2, "localhost")


def test_no_two_settings_have_one_variable() -> None:
    variables = [variable(name) for name, _ in all_settings()]
    assert len(variables) == len(set(variables))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DESKBUS_MARKTE_SOURCE", "market.source (DESKBUS_MARKET_SOURCE)"),
        ("DESKBUS_HTTP_PROT", "http.port (DESKBUS_HTTP_PORT)"),
        ("DESKBUS_LEASE_S", "orchestrator.lease_s (DESKBUS_ORCHESTRATOR_LEASE_S)"),
        ("DESKBUS_REPLAY_DIR", "market.replay_dir (DESKBUS_MARKET_REPLAY_DIR)"),
        ("DESKBUS_MARKTE", "market.source (DESKBUS_MARKET_SOURCE)"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_setting_that_was_meant(
    name: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(WrongSetting) as refused:
        settings_in_force()
    assert refused.value.message == f"{name} is not a setting; did you mean {meant}?"


def test_a_variable_that_names_a_table_is_refused_with_those_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DESKBUS_MARKET", "yahoo")
    with pytest.raises(WrongSetting, match="names a table: set DESKBUS_MARKET_SOURCE, "):
        settings_in_force()


@pytest.mark.parametrize("text", ["lease_s = 1", "nats_url = 1", "[orchestrater]\nlease_s = 1"])
def test_an_unknown_name_in_the_file_is_refused(text: str, folder: Path) -> None:
    (folder / SETTINGS_FILE).write_text(text)
    with pytest.raises(WrongSetting, match=r"in deskbus.toml is not a setting; did you mean "):
        settings_in_force()


def test_a_mistyped_table_in_the_file_is_refused_with_the_table_meant(folder: Path) -> None:
    (folder / SETTINGS_FILE).write_text("[budgets]\nday_cost_usd_max = 5")
    with pytest.raises(
        WrongSetting, match=r"is not a setting; did you mean the table \[budget\]\?"
    ):
        settings_in_force()


def test_a_mistyped_name_in_a_table_is_refused_with_the_one_meant(folder: Path) -> None:
    (folder / SETTINGS_FILE).write_text("[http]\nprot = 1")
    with pytest.raises(WrongSetting, match=r"http\.prot: .*did you mean port"):
        settings_in_force()


def test_what_is_no_setting_may_begin_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "DESKBUS_NOTIFY_PHONE",
        "DESKBUS_LAB_KEY",
        "DESKBUS_PROVIDERS_LAB_KEY",
        "DESKBUS_UID",
    ):
        monkeypatch.setenv(name, "x")
    assert settings_in_force() == Settings()


def test_the_settings_of_a_desk_reach_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Settings(
        http={"port": 1, "token": "a-token-of-some-length"},
        postgres={"dsn": "postgresql://o:pw@h/d"},
        approval={"accounts": ("a", "b")},
        accounts={"growth": {"currency": "EUR", "limits": {"order_pct_max": 3}}},
        broker={"fee_bps": "2.5"},
        strategies_dir="elsewhere",
    )
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    assert settings_in_force() == made


def test_a_table_that_is_none_is_refused_in_a_sentence(folder: Path) -> None:
    (folder / SETTINGS_FILE).write_text("http = true")
    with pytest.raises(
        WrongSetting, match=r"http in deskbus.toml is a table \[http\] of enabled, "
    ) as refused:
        settings_in_force()
    assert as_set(f"{refused.value.message}; see DESKBUS_HTTP_PORT").endswith("DESKBUS_HTTP_PORT")
