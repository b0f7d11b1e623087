"""One value of the settings file is changed in place; all else of it stays as a person wrote it."""

import threading
from decimal import Decimal
from pathlib import Path

import pytest

from libs.runtime.own_text import UnreadableFile
from libs.runtime.settings import overridden_by
from libs.runtime.settings_file import ChangedMeanwhile, replacing, text_of, with_value

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


def test_the_file_behind_a_link_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "real.toml", tmp_path / "deskbus.toml"
    file.write_bytes(b"\xef\xbb\xbfa = 1\r\n")  # as an editor on Windows saves it
    file.chmod(0o600)
    link.symlink_to(file)
    with replacing(link, text_of(link), "a = 2\r\n"):
        assert text_of(link) == "a = 1\r\n"
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"a = 2\r\n", 0o600)


def test_what_is_read_only_changed_or_not_to_be_written_after_all_stays(tmp_path: Path) -> None:
    file = tmp_path / "deskbus.toml"
    file.write_text("a = 1\n")
    with pytest.raises(ChangedMeanwhile), replacing(file, "a = 0\n", "a = 2\n"):
        raise AssertionError("it must not come to this")
    with pytest.raises(TimeoutError), replacing(file, "a = 1\n", "a = 2\n"):
        raise TimeoutError
    file.chmod(0o444)
    with pytest.raises(PermissionError), replacing(file, "a = 1\n", "a = 2\n"):
        raise AssertionError("it must not come to this")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [
        ("deskbus.toml", "a = 1\n")
    ]


def test_a_first_file_takes_the_place_of_none_that_came_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "deskbus.toml"
    with pytest.raises(ChangedMeanwhile), replacing(file, "", "a = 1\n"):
        file.write_text("a = 2\n")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["a = 2\n"]
    file.unlink()
    with replacing(file, "", "a = 1\n"):
        assert not file.exists()
    assert [each.read_text() for each in tmp_path.iterdir()] == ["a = 1\n"]


def test_of_two_at_once_the_second_finds_what_the_first_has_written(tmp_path: Path) -> None:
    file = tmp_path / "deskbus.toml"
    file.write_text("")
    found: list[str] = []

    def second() -> None:
        try:
            with replacing(file, "", "a = 2\n"):
                found.append("written")
        except ChangedMeanwhile:
            found.append("changed")

    other = threading.Thread(target=second)
    with replacing(file, "", "a = 1\n"):
        other.start()
        other.join(0.2)
        assert found == []
    other.join()
    assert (found, file.read_text()) == (["changed"], "a = 1\n")
