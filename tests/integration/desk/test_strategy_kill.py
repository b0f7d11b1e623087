"""kill -9 of the training service in mid-fit: taken up again, or failed with a reason."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.desk.command_line import CommandLine, Said, up

EXAMPLE = Path(__file__).parents[3] / "examples/strategies/trend-and-calm.yaml"
SERVICE = "services.strategy_training"
COMPUTE = "services.strategy_training.compute"
PATIENCE_S = 60.0
QUICK = (
    ("DESKBUS_LEASE_S", "2"),
    ("DESKBUS_SWEEP_S", "0.2"),
    ("DESKBUS_RESEND_AFTER_S", "1"),
    ("DESKBUS_EPOCHS_MAX", "2"),
)
"""A desk that notices a death soon, and gives an operation two lives."""


@pytest.fixture(scope="module")
def deskbus(
    make_open_dir: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> CommandLine:
    return CommandLine(make_open_dir() / "data", tmp_path_factory.mktemp("desk"), QUICK)


@pytest.fixture(scope="module")
def desk(deskbus: CommandLine) -> Iterator[psutil.Process]:
    """Every service a process of its own."""
    with up(deskbus, "--processes") as (process, _):
        yield psutil.Process(process.pid)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def running(desk: psutil.Process, module: str, but: tuple[int, ...] = ()) -> psutil.Process:
    """The process of the desk that runs a module, once there is one."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for child in desk.children(recursive=True):
            try:
                if child.pid not in but and module in child.cmdline():
                    return child
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.02)
    raise AssertionError(f"{module} never ran")


def killed_in_mid_fit(desk: psutil.Process, but: tuple[int, ...] = ()) -> psutil.Process:
    """The computing process; its service is dead, and it dies with it."""
    computing = running(desk, COMPUTE, but)
    os.kill(running(desk, SERVICE).pid, signal.SIGKILL)
    gone, _ = psutil.wait_procs([computing], timeout=PATIENCE_S)
    assert gone, "it would go on for nobody"
    return computing


def trained(deskbus: CommandLine) -> Said:
    """What became of the newest training."""
    return deskbus("operations list --type train --limit 1 --json")


def test_a_killed_training_is_taken_up_again_and_the_cycle_completes(
    deskbus: CommandLine, desk: psutil.Process
) -> None:
    with deskbus.started(f"agent trigger --spec {EXAMPLE} --wait --json") as cycle:
        killed_in_mid_fit(desk)
        out, err = cycle.communicate(timeout=PATIENCE_S)
    assert cycle.returncode == 0, err
    assert '"status":"completed"' in out
    [operation] = trained(deskbus).rows
    assert operation["epoch"] == 2


def test_a_training_that_is_killed_time_and_again_fails_with_a_reason(
    deskbus: CommandLine, desk: psutil.Process
) -> None:
    with deskbus.started(f"agent trigger --spec {EXAMPLE} --wait --json") as cycle:
        first = killed_in_mid_fit(desk)
        killed_in_mid_fit(desk, but=(first.pid,))
        out, err = cycle.communicate(timeout=PATIENCE_S)
    assert cycle.returncode == 1, err
    assert "training/train failed" in out
    assert "poison" in out
    [operation] = trained(deskbus).rows
    assert (operation["status"], operation["epoch"]) == ("failed", 2)
