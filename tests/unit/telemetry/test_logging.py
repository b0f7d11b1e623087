"""Logs for people and for machines."""

import errno
import json
import logging
from io import StringIO

import pytest
import structlog

from libs.telemetry.logging import HARMLESS, configure_logging

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


def test_with_a_file_events_go_there_as_json_and_errors_are_told_by_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, errors = StringIO(), list[str]()
    configure_logging("info", "auto", file, on_error=errors.append)
    log = structlog.get_logger()
    log.info("risk.assessed", vetoed=2)
    log.error("server.died", server="nats")

    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["risk.assessed", "server.died"]
    assert errors == ["server.died"]
    assert capsys.readouterr().err == ""


class FullDisk(StringIO):
    """A log on a disk without room, until there is some."""

    error: Exception | None = OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None:
        if self.error is not None:
            self.seek(0)
            self.truncate()
            raise self.error


@pytest.mark.parametrize(
    "error", [FullDisk.error, BrokenPipeError(), ValueError("I/O operation on closed file.")]
)
def test_a_line_that_cannot_be_written_stops_nothing_and_the_next_says_so(error: Exception) -> None:
    file = FullDisk()
    file.error = error
    configure_logging("info", "auto", file)
    log = structlog.get_logger()
    log.info("first")
    log.error("second")
    file.error = None
    log.info("third")
    log.info("fourth")

    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [(it["event"], it.get("lines_lost")) for it in lines] == [("third", 2), ("fourth", None)]


def test_a_terminal_that_is_gone_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def gone(_: str) -> None:
        raise BrokenPipeError

    file = StringIO()
    configure_logging("info", "auto", file, on_error=gone)
    structlog.get_logger().error("server.died")
    assert json.loads(file.getvalue())["event"] == "server.died"
    assert capsys.readouterr().err == ""


def test_asyncios_word_at_the_end_of_a_tls_connection_is_no_line_and_others_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    configure_logging()
    asyncio_log = logging.getLogger("asyncio")
    asyncio_log.warning(HARMLESS)
    asyncio_log.warning("something else")
    assert caplog.messages == ["something else"]
