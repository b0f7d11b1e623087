"""Settings as they are shown: with their source, without their secrets."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from libs.report.settings import MASK, in_force, shown, without_login
from libs.runtime.model_settings import EndpointSettings, Price
from libs.runtime.settings import Settings, all_settings


def test_a_value_says_whether_it_came_from_the_environment_the_file_or_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "deskbus.toml"
    file.write_text("[orchestrator]\nlease_s = 20\nsweep_s = 2\n")
    monkeypatch.setenv("DESKBUS_ORCHESTRATOR_SWEEP_S", "3")

    found = {
        each.name: (each.value, each.source)
        for each in in_force(Settings(), {"DESKBUS_ORCHESTRATOR_SWEEP_S": "3"}, file)
    }

    assert found["orchestrator.lease_s"] == ("20", "file")
    assert found["orchestrator.sweep_s"] == ("3", "environment")
    assert found["orchestrator.epochs_max"] == ("5", "default")


def test_what_a_setting_means_is_taken_from_where_it_is_defined() -> None:
    found = {each.name: each.meaning for each in in_force(Settings(), {}, Path("none.toml"))}

    assert found["orchestrator.lease_s"] == "How long a claim is valid without a heartbeat."
    assert list(found) == [name for name, _ in all_settings()]
    assert all(found.values())


def test_passwords_are_masked_wherever_they_stand() -> None:
    assert shown(SecretStr("postgresql://me:hush@db:5432/deskbus")) == (
        f"postgresql://{MASK}@db:5432/deskbus"
    )
    assert shown(SecretStr("hush")) == MASK
    assert without_login("nats://token@bus:4222") == f"nats://{MASK}@bus:4222"
    assert without_login("nats://bus:4222") == "nats://bus:4222"
    cluster = "tls://a:1@n-0:4222,tls://a:1@n-1:4222"
    assert without_login(cluster) == f"tls://{MASK}@n-0:4222,tls://{MASK}@n-1:4222"
    several = "postgresql://o:1@p-0:5432,p-1:5432/deskbus"
    assert without_login(several) == f"postgresql://{MASK}@p-0:5432,p-1:5432/deskbus"


@pytest.mark.parametrize("password", ["pa,ss", "pa#ss", "pa/ss", "pa?ss", "pa@ss", "a,b://c"])
def test_no_letter_of_a_password_is_shown_whatever_it_holds(password: str) -> None:
    told = without_login(f"postgresql://me:{password}@db:5432/deskbus?sslmode=require")

    assert told == f"postgresql://{MASK}@db:5432/deskbus?sslmode=require"


def test_a_password_in_the_query_is_masked_too() -> None:
    told = without_login("postgresql://db/deskbus?user=me&password=hush&sslmode=require")

    assert told == f"postgresql://db/deskbus?user={MASK}&password={MASK}&sslmode=require"


def test_a_table_of_settings_is_shown_by_what_is_set_in_it() -> None:
    given = {"lab": EndpointSettings(preset="vllm", base_url="http://lab:8000/v1")}
    assert shown(given) == "lab (preset vllm, base_url http://lab:8000/v1)"
    assert shown({}) == "-"


def test_a_value_is_shown_as_the_settings_file_has_it() -> None:
    assert [shown(value) for value in (True, 2_592_000.0, 0.5, ("main", "growth"), (), None)] == [
        "true",
        "2592000",
        "0.5",
        "main, growth",
        "-",
        "-",
    ]


def test_tables_of_settings_reach_the_processes_of_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    price = Price(input=1, output=2, cache_read=0, cache_write=0)
    given = {"lab": EndpointSettings(preset="vllm", models={"small": "m"})}
    settings = Settings(
        providers=given,
        prices={"m": price},
        nats={"url": "nats://x"},
        postgres={"dsn": "postgresql://x/y"},
    )
    for name, value in settings.environment.items():
        monkeypatch.setenv(name, value)
    again = Settings()
    assert (again.providers, again.prices) == (settings.providers, settings.prices)
