"""A process is told from a later one with the same pid."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from libs.servers.leftovers import birth_of, end_leftover, mark_of
from libs.servers.server_record import ProcessMark


def test_the_birth_of_a_process_stays_the_same() -> None:
    assert birth_of(os.getpid()) == birth_of(os.getpid()) is not None


def test_an_ended_process_has_no_birth() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert birth_of(process.pid) is None


def test_a_killed_process_that_nobody_has_asked_after_has_no_birth() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert birth_of(process.pid) is not None
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it ends, and stays unasked

        assert birth_of(process.pid) is None


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


async def test_a_leftover_is_ended(sleeper: subprocess.Popen[bytes]) -> None:
    await end_leftover("nats", mark_of(sleeper.pid), signal.SIGTERM)
    assert sleeper.wait(timeout=5) == -signal.SIGTERM


async def test_a_process_that_only_has_the_same_pid_is_left_alone(
    sleeper: subprocess.Popen[bytes],
) -> None:
    await end_leftover("nats", ProcessMark(sleeper.pid, "another birth"), signal.SIGTERM)
    assert sleeper.poll() is None
