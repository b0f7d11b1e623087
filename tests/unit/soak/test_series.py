"""The count of metrics' series in `make soak` finds what it is there to find."""

import pytest

from benchmarks.series import Look, Series, broken
from libs.telemetry.metrics import ACCOUNTS_SHOWN_MAX

NAME = "deskbus_cycles_total"


def look(*series: Series) -> Look:
    return Look(1, frozenset(series), 0)


def one(**labels: str) -> Series:
    return NAME, tuple(sorted(labels.items()))


def test_bounded_series_are_as_they_should_be() -> None:
    assert broken(look(one(kind="decision", status="completed"), one(account="main"))) == []


@pytest.mark.parametrize("value", ["AAPL", "3f2ef94b-75d2-579d-a247-6d72be65f4c4"])
def test_a_ticker_or_an_id_in_a_label_is_found(value: str) -> None:
    assert broken(look(one(kind=value))) == [f"{NAME} has the label kind={value}"]


def test_more_series_than_the_table_allows_are_found() -> None:
    (problem,) = broken(look(*(one(kind=f"kind-{n}") for n in range(1_000))))
    assert problem.startswith(f"{NAME} has 1000 series, at most ")


def test_an_account_beyond_those_shown_is_found() -> None:
    shown = [one(account=f"account-{n}") for n in range(ACCOUNTS_SHOWN_MAX)]
    assert broken(look(*shown, one(account="other"))) == []
    assert broken(look(*shown, one(account="one-more"))) == [
        f"{ACCOUNTS_SHOWN_MAX + 1} accounts are shown"
    ]
