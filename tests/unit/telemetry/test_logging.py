"""Logs for people and for machines."""

import pytest
import structlog

from libs.telemetry.logging import configure_logging

KEY = "planted-key-0123456789"


@pytest.fixture(autouse=True)
def _as_before():
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def _fails() -> None:
    key = KEY
    raise RuntimeError(f"no call with a key of {len(key)} characters")


@pytest.mark.parametrize("style", ["console", "json"])
def test_a_logged_exception_shows_no_variables_of_its_frames(style, capsys):
    configure_logging("info", style)
    try:
        _fails()
    except RuntimeError:
        structlog.get_logger("x").exception("operation.unanswered")
    told = capsys.readouterr().err
    assert f"no call with a key of {len(KEY)} characters" in told
    assert "_fails" in told
    assert KEY not in told
