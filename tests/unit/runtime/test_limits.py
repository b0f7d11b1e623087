"""Limits as they are set: for all accounts, for one, and never by a mistyped name."""

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from contracts.account import AccountLimits
from libs.runtime.settings import Settings


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_a_word_every_account_has_the_defaults():
    assert Settings().limits_of("main") == AccountLimits()


def test_one_accounts_limits_stand_above_those_of_all_and_leave_the_rest():
    Path("deskbus.toml").write_text(
        "[limits]\nposition_pct_max = 30\ndaily_loss_pct_max = 2.5\n"
        "[accounts.growth.limits]\nposition_pct_max = 60\n"
    )
    settings = Settings()
    main, growth = settings.limits_of("main"), settings.limits_of("growth")
    assert (main.position_pct_max, main.daily_loss_pct_max) == (30, Decimal("2.5"))
    assert (growth.position_pct_max, growth.daily_loss_pct_max) == (60, Decimal("2.5"))
    assert growth.sector_pct_max == AccountLimits().sector_pct_max


def test_the_environment_takes_json(monkeypatch):
    monkeypatch.setenv("DESKBUS_LIMITS", '{"order_pct_max": "12.5"}')
    monkeypatch.setenv("DESKBUS_ACCOUNTS", '{"growth": {"limits": {"order_pct_max": 1}}}')
    assert Settings().limits_of("main").order_pct_max == Decimal("12.5")
    assert Settings().limits_of("growth").order_pct_max == 1


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("[limits]\npositon_pct_max = 30", "limits.positon_pct_max"),
        (
            "[accounts.growth.limits]\npositon_pct_max = 30",
            "accounts.growth.limits: positon_pct_max",
        ),
        ("[accounts.growth.limits]\norder_pct_max = 101", "accounts.growth.limits: order_pct_max"),
        ("[limits]\ndaily_loss_pct_max = -1", "limits.daily_loss_pct_max"),
    ],
)
def test_a_mistyped_or_impossible_limit_is_refused_by_its_name(wrong, named):
    Path("deskbus.toml").write_text(wrong)
    with pytest.raises(ValidationError, match=named.replace(".", r"\.")):
        Settings()


def test_an_account_is_in_dollars_unless_the_settings_name_its_currency(monkeypatch):
    assert Settings().currency_of("main") == "USD"
    monkeypatch.setenv("DESKBUS_ACCOUNTS", '{"continent": {"currency": "EUR"}}')
    settings = Settings()
    assert (settings.currency_of("continent"), settings.currency_of("main")) == ("EUR", "USD")


def test_a_currency_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("DESKBUS_ACCOUNTS", '{"continent": {"currency": "euro"}}')
    with pytest.raises(ValidationError, match=r"accounts\.continent\.currency"):
        Settings()
