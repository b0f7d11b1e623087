"""A desk in the background: started, looked at, its log shown, stopped; and one on a terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import psutil
import pytest

from libs.servers.leftovers import birth_of
from services.cli.desk.background import WORDS_NAME
from tests.integration.desk.command_line import DESKBUS, PATIENCE_S, CommandLine


@pytest.fixture
def deskbus(make_open_dir: Callable[[], Path], tmp_path: Path) -> Iterator[CommandLine]:
    command_line = CommandLine(make_open_dir() / "data", tmp_path, is_cold=True)
    yield command_line
    command_line("down")


def test_a_desk_in_the_background_is_started_looked_at_and_stopped(deskbus: CommandLine) -> None:
    assert deskbus("status").code == 5
    started = deskbus("up --detach --json")
    assert started.code == 0, started.err
    (ready,) = started.rows
    servers = psutil.Process(ready["pid"]).children()

    (status,) = deskbus("status --json").rows
    assert (status["status"], status["pid"]) == ("up", ready["pid"])
    assert (status["services"], status["services_missing"]) == (14, [])
    assert deskbus("open --no-browser portfolio").out == f"{ready['http_url']}/portfolio\n"
    assert deskbus("cycle request --as-of 2012-06-29 --wait").code == 0
    assert deskbus("status").out.startswith("✓ up")

    down = deskbus("down")
    assert (down.code, "stopped" in down.err) == (0, True)
    assert birth_of(ready["pid"]) is None
    assert not psutil.wait_procs(servers, timeout=15)[1]
    assert (deskbus("down").code, deskbus("status").code) == (0, 5)


def test_one_that_cannot_start_says_the_reason_alone(deskbus: CommandLine) -> None:
    done = deskbus("up --detach", DESKBUS_POSTGRES_BINDIR="/nowhere")
    reason = done.err.splitlines()[-1]

    assert done.code == 1
    assert reason.startswith("deskbus: the desk did not start: /nowhere has no initdb")
    assert "starting NATS" not in reason
    assert (deskbus.data_dir / "logs" / WORDS_NAME).is_file()


def test_the_log_of_a_desk_in_the_background_is_shown_by_service_and_followed(
    deskbus: CommandLine,
) -> None:
    assert "no log yet" in deskbus("logs").err
    assert deskbus("up --detach").code == 0

    shown = deskbus("logs risk").out
    assert re.search(
        r"^\d\d-\d\d \d\d:\d\d:\d\d risk +service.started commands=", shown, re.MULTILINE
    )
    assert {line.split()[2] for line in shown.splitlines()} == {"risk"}
    lines = [orjson.loads(line) for line in deskbus("logs --json -n 3").out.splitlines()]
    assert [set(line) >= {"timestamp", "level", "event"} for line in lines] == [True] * 3
    assert "listening" in deskbus("logs postgres").out
    wrong = deskbus("logs rsik")
    assert (wrong.code, "did you mean risk?" in wrong.err) == (2, True)

    with deskbus.started("logs notifier -n 1 -f") as following:
        assert following.stdout is not None
        assert following.stdout.readline()
        with (deskbus.data_dir / "logs" / "deskbus.log").open("ab") as log:
            log.write(b'{"timestamp":"2026-11-02T10:00:00Z","service":"notifier","event":"new"}\n')
        assert following.stdout.readline().split()[-2:] == ["notifier", "new"]
        following.send_signal(signal.SIGINT)
        assert following.wait(PATIENCE_S) == 130


def test_a_desk_that_cannot_start_in_the_background_says_why(deskbus: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = deskbus(f"up --detach --port {port}")

    assert said.code == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in said.err
    assert not (deskbus.data_dir / "runtime.json").exists()


def test_a_process_that_only_has_the_desks_number_is_not_stopped(deskbus: CommandLine) -> None:
    deskbus.data_dir.mkdir(exist_ok=True)
    with subprocess.Popen(["sleep", "60"]) as other:
        body = {"nats_url": "nats://127.0.0.1:1", "secrets_dir": "s", "pid": other.pid}
        runtime = deskbus.data_dir / "runtime.json"
        runtime.write_bytes(orjson.dumps({**body, "birth": "another boot:1"}))

        said = deskbus("down")

        assert (said.code, "no desk is running" in said.err) == (0, True)
        assert other.poll() is None
        other.kill()


@contextmanager
def _on_a_terminal(deskbus: CommandLine, *typed: str) -> Iterator[tuple[int, int]]:
    """The pid of a command on a terminal of 80 columns, and the terminal."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(deskbus.cwd)
        os.execve(DESKBUS[0], [*DESKBUS, *typed], {**deskbus.environment, "TERM": "xterm"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    try:
        yield pid, terminal
    finally:
        os.kill(pid, signal.SIGINT)
        _read_until(terminal, None)
        os.waitpid(pid, 0)
        os.close(terminal)


def _read_until(terminal: int, wanted: str | None) -> str:
    """All that a terminal shows until a text stands there; to its end where none is named."""
    shown, until = "", time.monotonic() + PATIENCE_S
    while time.monotonic() < until and (wanted is None or wanted not in shown):
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            block = os.read(terminal, 65_536)
        except OSError:  # its last process has ended
            break
        if not block:
            break
        shown += block.decode(errors="replace")
    assert wanted is None or wanted in shown, shown
    return shown


def test_a_desks_terminal_shows_a_line_a_cycle_and_its_log_is_a_file(deskbus: CommandLine) -> None:
    with _on_a_terminal(deskbus, "up") as (_, terminal):
        start = _read_until(terminal, "Ctrl-C stops the desk")
        assert deskbus("cycle request --as-of 2012-06-29 --wait").code == 0
        line = _read_until(terminal, "\n").strip()

    assert "service.started" not in start + line
    assert "service.started" in (deskbus.data_dir / "logs" / "deskbus.log").read_text()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line)
    assert re.search(
        r"\d\d:\d\d:\d\d ✓ completed [0-9a-f]{8} decision of 2012-06-29 on main: bought ", plain
    ), plain
