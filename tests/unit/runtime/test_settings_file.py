"""One value of the settings file is changed in place; all else of it stays as a person wrote it."""

from decimal import Decimal

import pytest

from libs.runtime.own_text import UnreadableFile
from libs.runtime.settings import overridden_by
from libs.runtime.settings_file import with_value

LIMIT = ("limits", "position_pct_max")


@pytest.mark.parametrize(
    ("text", "path", "value", "after"),
    [
        (
            "# mine\n[limits]  # all\nposition_pct_max = 40 # was 30\n\n[http]\nport = 1\n",
            LIMIT,
            Decimal(20),
            "# mine\n[limits]  # all\nposition_pct_max = 20 # was 30\n\n[http]\nport = 1\n",
        ),
        (
            "limits = { order_pct_max = 9, position_pct_max = 1 }\n",
            LIMIT,
            Decimal("7.5"),
            "limits = { order_pct_max = 9, position_pct_max = 7.5 }\n",
        ),
        ("limits.position_pct_max = 4\n", LIMIT, Decimal(5), "limits.position_pct_max = 5\n"),
        ("", LIMIT, Decimal(5), "[limits]\nposition_pct_max = 5\n"),
        (
            "[limits]\r\norder_pct_max = 9\r\n",
            ("limits", "order_pct_max"),
            Decimal(8),
            "[limits]\r\norder_pct_max = 8\r\n",
        ),
        (
            "[limits]\norder_pct_max = 9\n",
            ("accounts", "growth", "limits", "exits_veto_buys"),
            False,
            "[limits]\norder_pct_max = 9\n\n[accounts.growth.limits]\nexits_veto_buys = false\n",
        ),
    ],
)
def test_comments_order_and_form_stay(
    text: str, path: tuple[str, ...], value: Decimal | bool, after: str
) -> None:
    assert with_value(text, path, value) == after


@pytest.mark.parametrize("text", ["limits = 1\n", "limits ="])
def test_a_file_that_cannot_hold_it_is_refused_and_not_guessed_at(text: str) -> None:
    with pytest.raises(UnreadableFile):
        with_value(text, LIMIT, Decimal(5))


@pytest.mark.parametrize(
    ("environment", "path", "by"),
    [
        ({}, LIMIT, None),
        ({"DESKBUS_LIMITS_ORDER_PCT_MAX": "1"}, LIMIT, None),
        ({"deskbus_limits_position_pct_max": "1"}, LIMIT, "DESKBUS_LIMITS_POSITION_PCT_MAX"),
        ({"DESKBUS_LIMITS": '{"position_pct_max": 1}'}, LIMIT, "DESKBUS_LIMITS"),
        ({"DESKBUS_LIMITS": '{"order_pct_max": 1}'}, LIMIT, None),
        (
            {"DESKBUS_ACCOUNTS_MAIN": '{"limits": {"order_pct_max": 1}}'},
            ("accounts", "main", "limits", "order_pct_max"),
            "DESKBUS_ACCOUNTS_MAIN",
        ),
    ],
)
def test_a_variable_above_the_file_is_named(
    environment: dict[str, str], path: tuple[str, ...], by: str | None
) -> None:
    assert overridden_by(path, environment) == by
