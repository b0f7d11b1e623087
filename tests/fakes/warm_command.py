"""Runs `deskbus` in forks of one process that has loaded it: a command then starts in milliseconds.

Most of a command's time is the loading of its modules. A process of one thread loads them once
(`python -m tests.fakes.warm_command SOCKET`); for each call it forks a keeper, and the keeper a
child, which is given the caller's arguments, folder, environment and pipes and runs the command as
`python -m services.cli` does. The keeper tells the child's process id and its exit code.

What a command loads and how it starts is for tests that start one as a user does.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

MODULE = "services.cli"
ROOT = Path(__file__).parents[2]
CALL_BYTES_MAX = 1_000_000
START_S = 60.0


@cache
def _server() -> str:
    """The socket of this process's server, started with the first call; it ends with its stdin."""
    address = str(Path(tempfile.mkdtemp(prefix="deskbus-warm-")) / "s")
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, address],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    atexit.register(process.wait)
    atexit.register(process.stdin.close)
    atexit.register(process.stdout.close)
    assert process.stdout.readline() == b"ready\n"
    return address


def run(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout_s: float
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end. Raises `subprocess.TimeoutExpired`, the child killed."""
    asked = {"arguments": list(arguments), "cwd": str(cwd), "environment": dict(environment)}
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        socket.socket(socket.AF_UNIX) as line,
    ):
        line.settimeout(START_S)
        line.connect(_server())
        socket.send_fds(line, [b"c"], [out.fileno(), err.fileno()])
        with line.makefile("rw") as told:
            told.write(json.dumps(asked) + "\n")
            told.flush()
            child = int(told.readline())
            line.settimeout(timeout_s)
            try:
                code = int(told.readline())
            except TimeoutError:
                os.kill(child, signal.SIGKILL)
                raise subprocess.TimeoutExpired(asked["arguments"], timeout_s) from None
        written = []
        for stream in (out, err):
            stream.seek(0)
            written.append(stream.read().decode().replace("\r\n", "\n"))
        return subprocess.CompletedProcess(asked["arguments"], code, *written)


def _serve(address: str) -> None:
    """Answer calls until stdin ends. In a child this returns, and the child is the command."""
    package = importlib.import_module(MODULE)
    for found in pkgutil.walk_packages(package.__path__, f"{MODULE}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            readable, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in readable:
                os._exit(0)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass  # a keeper that has ended
            line, _ = listener.accept()
            with line:
                if os.fork() == 0:
                    listener.close()
                    return _keep(line)


def _keep(line: socket.socket) -> None:
    """Run one call in a child, and tell its end. In the child this returns."""
    _, streams, _, _ = socket.recv_fds(line, 1, 2)
    with line.makefile("rw") as told:
        asked = json.loads(told.readline(CALL_BYTES_MAX))
        child = os.fork()
        if child == 0:
            _become(asked, streams)
            return
        told.write(f"{child}\n")
        told.flush()
        _, status = os.waitpid(child, 0)
        told.write(f"{os.waitstatus_to_exitcode(status)}\n")
    os._exit(0)


def _become(asked: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Take over the caller's streams, folder, environment and arguments."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for given, own in zip((nothing, *streams), range(3), strict=True):
        os.dup2(given, own)
        os.close(given)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = [MODULE, *asked["arguments"]]


if __name__ == "__main__":
    _serve(sys.argv[1])
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
