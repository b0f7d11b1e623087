"""`deskbus up`: started, asked, killed, started again, stopped; on its servers and on one's own."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.integration.desk.caller import Json
from tests.integration.desk.command_line import CommandLine, Said, ended, up

WANTED = "cycle request --as-of 2012-06-29 --provider rules@{account} --key {key} --wait --json"
MAIN = {"account": "main", "key": "first"}


def children(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def gone(processes: list[psutil.Process]) -> bool:
    """Whether all of them end now."""
    _, alive = psutil.wait_procs(processes, timeout=15)
    return not alive


def completed(said: Said) -> Json:
    assert said.code == 0, said.err
    (view,) = said.rows
    assert view["status"] == "completed"
    view_of: Json = view
    return view_of


@pytest.fixture
def deskbus(make_open_dir: Callable[[], Path], tmp_path: Path) -> CommandLine:
    return CommandLine(make_open_dir() / "data", tmp_path, is_cold=True)


def test_a_desk_that_was_killed_starts_again_with_all_it_knew(deskbus: CommandLine) -> None:
    with up(deskbus) as (process, ready):
        assert ready["status"] == "ready"
        first = completed(deskbus(WANTED.format(**MAIN)))
        second = deskbus("up")
        servers = children(process)
        killed = ended(process, signal.SIGKILL)

    assert (second.code, "running in" in second.err) == (1, True)
    assert killed.code == -signal.SIGKILL
    listed = deskbus("cycle list")  # its record can be read; nothing is asked of a desk that is off
    assert (listed.code, "no desk is running" in listed.err) == (0, True)
    assert first["cycle_id"][:8] in listed.out
    assert deskbus("cycle request --as-of 2012-06-29").code == 5
    with up(deskbus) as (process, again):
        assert gone(servers)
        assert deskbus(f"cycle show {first['cycle_id']} --json").rows == [first]
        assert completed(deskbus(WANTED.format(**MAIN))) == first
        completed(deskbus(WANTED.format(account="main", key="another")))
        servers = children(process)
        stopped = ended(process, signal.SIGINT)

    assert again["nats_url"] == ready["nats_url"]
    assert (stopped.code, stopped.err.splitlines()[-1]) == (0, "stopped")
    assert "Traceback" not in stopped.err
    assert gone(servers)
    assert not (deskbus.data_dir / "runtime.json").exists()


def test_every_service_as_a_process_of_its_own_completes_a_cycle(deskbus: CommandLine) -> None:
    with up(deskbus, "--processes --replicas research=2") as (process, _):
        running = children(process)
        named = [" ".join(each.cmdline()) for each in running]
        view = completed(deskbus(WANTED.format(**MAIN)))
        stopped = ended(process, signal.SIGTERM)

    services = sorted(name.split("services.")[1] for name in named if "-m services." in name)
    assert services == sorted(
        [
            "provisioner",
            "orchestrator",
            "sentiment",
            "research",
            "research",
            "trader",
            "risk",
            "execution",
            "assessment",
            "exit_signal",
            "console",
            "strategy",
            "reporter",
            "notifier",
            "study",
        ]
    )
    assert view["pipelines"][0]["contracts"]["execution_result"]["orders"]
    assert stopped.code == 0
    assert gone(running)
