"""A person's mail address among the settings: checked, and shown by nothing."""

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from libs.report.settings import MASK, in_force
from libs.runtime.contact import masked
from libs.runtime.settings import Settings
from libs.runtime.wording import describe

MAIL = "margaret@desk.example.org"


@pytest.mark.parametrize("given", [MAIL, f"Example Desk {MAIL}"])
def test_it_reaches_the_processes_of_a_desk_and_no_output(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(
        edgar={"contact": given}, nats={"url": "nats://x"}, postgres={"dsn": "postgresql://x/y"}
    )
    shown = {each.name: each.value for each in in_force(settings, {}, Path("none.toml"))}
    assert shown["edgar.contact"] == MASK
    assert "margaret" not in f"{settings!r} {settings.model_dump()} {settings.model_dump_json()}"
    assert settings.environment["DESKBUS_EDGAR_CONTACT"] == given
    monkeypatch.setenv("DESKBUS_EDGAR_CONTACT", settings.environment["DESKBUS_EDGAR_CONTACT"])
    assert Settings().edgar.contact == SecretStr(given)


@pytest.mark.parametrize(
    "given", ["margaret", "a@b", "", "x\r\nHost: y a@b.org", "märgaret@b.org", "https://x a@b.org"]
)
def test_what_is_no_mail_address_is_refused_and_not_quoted(given: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(edgar={"contact": given})
    said = describe(refused.value, Settings)
    assert said == (
        "edgar.contact: takes an e-mail address in ASCII letters, optionally after a name"
    )


def test_masked_it_shows_its_first_letter_and_its_domain() -> None:
    assert masked(SecretStr(MAIL)) == "m...@desk.example.org"
    assert masked(SecretStr(f"Example Desk {MAIL}")) == "m...@desk.example.org"
