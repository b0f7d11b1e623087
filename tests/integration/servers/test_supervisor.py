"""The supervisor with small real processes."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from libs.servers import supervisor as module
from libs.servers.supervisor import Child, ChildError, Supervisor

PYTHON = sys.executable
SLEEP = "import time; time.sleep(60)"
STUBBORN = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "open(sys.argv[1], 'w').close(); time.sleep(60)"
)
DEADLINE_S = 20


def _child(tmp_path: Path, name: str, code: str = SLEEP, **changes: object) -> Child:
    argv = [PYTHON, "-c", code, str(tmp_path / f"{name}.flag")]
    return Child(**{"name": name, "argv": argv, "log_path": tmp_path / f"{name}.log", **changes})


def _when_flagged(tmp_path: Path, name: str) -> Callable[[int], object]:
    async def ready(_pid: int) -> None:
        while not (tmp_path / f"{name}.flag").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    return ready


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_children_run_inside_the_block_and_not_after_it(tmp_path: Path) -> None:
    async with Supervisor([_child(tmp_path, "a"), _child(tmp_path, "b")]) as supervisor:
        await supervisor.ready()
        pids = [supervisor.pid("a"), supervisor.pid("b")]
        assert all(_runs(pid) for pid in pids)
    assert not any(_runs(pid) for pid in pids)


async def test_a_child_starts_only_when_the_one_before_is_ready(tmp_path: Path) -> None:
    order: list[str] = []

    def noting(name: str) -> Child:
        async def ready(_pid: int) -> None:
            await asyncio.sleep(0.05)
            order.append(f"{name} ready")

        return _child(
            tmp_path, name, ready=ready, started=lambda _: order.append(f"{name} started")
        )

    async with Supervisor([noting("a"), noting("b")]) as supervisor:
        await supervisor.ready()
    assert order == ["a started", "a ready", "b started", "b ready"]


async def test_children_stop_in_reverse_order(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "def stop(*_):\n    open(sys.argv[1], 'w').write(str(time.monotonic_ns())); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, stop)\nprint('up', flush=True)\ntime.sleep(60)"
    )

    def child(name: str) -> Child:
        async def ready(_pid: int) -> None:
            while b"up" not in (tmp_path / f"{name}.log").read_bytes():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

        return _child(tmp_path, name, code, ready=ready)

    async with Supervisor([child("a"), child("b")]) as supervisor:
        await supervisor.ready()
    # By their own clock: a file's time is that of the kernel's last tick.
    ended_ns = {n: int((tmp_path / f"{n}.flag").read_text()) for n in "ab"}
    assert ended_ns["b"] < ended_ns["a"]


async def test_a_killed_child_comes_back_under_another_pid(tmp_path: Path) -> None:
    async with Supervisor([_child(tmp_path, "a")]) as supervisor:
        await supervisor.ready()
        for _ in range(3):
            before = supervisor.pid("a")
            os.kill(before, signal.SIGKILL)
            async with asyncio.timeout(DEADLINE_S):
                after = await supervisor.replaced("a", before)
            assert after != before
            assert _runs(after)


async def test_argv_is_asked_anew_at_each_start(tmp_path: Path) -> None:
    asked: list[int] = []

    def argv() -> list[str]:
        asked.append(len(asked))
        return [PYTHON, "-c", SLEEP]

    async with Supervisor([_child(tmp_path, "a", argv=argv)]) as supervisor:
        await supervisor.ready()
        before = supervisor.pid("a")
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            await supervisor.replaced("a", before)
    assert asked == [0, 1]


async def test_a_child_that_never_becomes_ready_is_given_up_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESTART_DELAY_FIRST_S", 0.001)
    monkeypatch.setattr(module, "RESTART_DELAY_MAX_S", 0.001)
    code = "import sys; sys.exit('no such config')"
    child = _child(tmp_path, "a", code, ready=_when_flagged(tmp_path, "a"))
    async with Supervisor([child]) as supervisor:
        with pytest.raises(ChildError, match="no such config"):
            await supervisor.ready()
        with pytest.raises(ChildError):
            await supervisor.given_up()


async def test_a_child_that_was_ready_and_cannot_start_is_tried_for_as_long_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESTART_DELAY_FIRST_S", 0.001)
    monkeypatch.setattr(module, "UNREADY_DELAY_MAX_S", 0.01)
    program, tries, many = tmp_path / "program", 0, asyncio.Event()
    program.symlink_to("/bin/sleep")

    def started(_pid: int) -> None:
        nonlocal tries
        tries += 1
        if tries > module.UNREADY_STARTS_MAX + 2:
            many.set()

    async def ready(_pid: int) -> None:
        while not program.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    child = _child(tmp_path, "a", argv=[str(program), "60"], ready=ready, started=started)
    async with asyncio.timeout(DEADLINE_S), Supervisor([child]) as supervisor:
        await supervisor.ready()
        before = supervisor.pid("a")
        away = program.rename(tmp_path / "away")
        os.kill(before, signal.SIGKILL)
        await many.wait()
        assert str(program) in supervisor.problem("a"), "the last words of its log"
        assert "tried again" in supervisor.problem("a")

        away.rename(program)
        assert _runs(await supervisor.replaced("a", before))
        assert supervisor.problem("a") == ""


async def test_a_child_that_goes_on_being_unwell_is_ended_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNWELL_POLL_S", 0.01)
    monkeypatch.setattr(module, "UNWELL_S_FIRST", 0.05)
    ill: set[int] = set()

    async def unwell(pid: int) -> str:
        return "the disk is full" if pid in ill else ""

    child = _child(tmp_path, "a", unwell=unwell)
    async with asyncio.timeout(DEADLINE_S), Supervisor([child]) as supervisor:
        await supervisor.ready()
        before = supervisor.pid("a")
        ill.add(before)
        after = await supervisor.replaced("a", before)
        assert not _runs(before)
        assert _runs(after)
        assert supervisor.problem("a") == ""


async def test_a_child_that_is_unwell_for_a_moment_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNWELL_POLL_S", 0.01)
    said, well_again = [""] * 3 + ["catches up"] * 3 + [""] * 3, asyncio.Event()

    async def unwell(_pid: int) -> str:
        if not said:
            well_again.set()
            return ""
        return said.pop()

    async with Supervisor([_child(tmp_path, "a", unwell=unwell)]) as supervisor:
        await supervisor.ready()
        before = supervisor.pid("a")
        async with asyncio.timeout(DEADLINE_S):
            await well_again.wait()
        assert supervisor.pid("a") == before


async def test_a_child_that_hangs_before_it_is_ready_is_killed_and_tried_again(
    tmp_path: Path,
) -> None:
    tries: list[int] = []

    async def ready(pid: int) -> None:
        tries.append(pid)
        if len(tries) == 1:
            await asyncio.Event().wait()

    child = _child(tmp_path, "a", ready=ready, ready_timeout_s=0.2)
    async with Supervisor([child]) as supervisor:
        async with asyncio.timeout(DEADLINE_S):
            await supervisor.ready()
        assert supervisor.pid("a") == tries[1]
        assert not _runs(tries[0])


async def test_a_program_that_does_not_exist_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNREADY_STARTS_MAX", 1)
    child = _child(tmp_path, "a", argv=["/nowhere/nats-server"], ready=_when_flagged(tmp_path, "a"))
    async with Supervisor([child]) as supervisor:
        with pytest.raises(ChildError, match="/nowhere/nats-server"):
            await supervisor.ready()


async def test_a_failing_ready_check_is_reported_and_not_swallowed(tmp_path: Path) -> None:
    async def ready(_pid: int) -> None:
        raise LookupError("broken check")

    async with Supervisor([_child(tmp_path, "a", ready=ready)]) as supervisor:
        pid_of = supervisor.pid
        with pytest.raises(LookupError, match="broken check"):
            await supervisor.ready()
        pid = pid_of("a")
    assert not _runs(pid)


async def test_a_child_that_ignores_the_stop_signal_is_killed(tmp_path: Path) -> None:
    child = _child(tmp_path, "a", STUBBORN, ready=_when_flagged(tmp_path, "a"), stop_timeout_s=0.2)
    async with Supervisor([child]) as supervisor:
        await supervisor.ready()
        pid = supervisor.pid("a")
    assert not _runs(pid)


async def test_a_frozen_child_is_stopped_too(tmp_path: Path) -> None:
    child = _child(tmp_path, "a", stop_timeout_s=DEADLINE_S)
    async with Supervisor([child]) as supervisor:
        await supervisor.ready()
        pid = supervisor.pid("a")
        os.kill(pid, signal.SIGSTOP)
    assert not _runs(pid)


async def test_the_exit_of_a_child_that_ends_at_once_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    send = module._signal

    def slowly(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
        send(process, number)
        time.sleep(0.0005)  # as on a busy machine: by then the child may have ended

    monkeypatch.setattr(module, "_signal", slowly)
    child = Child("a", ["sleep", "60"], tmp_path / "a.log", stop_signal=signal.SIGTERM)
    for _ in range(60):
        process = await asyncio.create_subprocess_exec(*child.argv)  # type: ignore[misc]
        await module._end(child, process)
        assert process.returncode == -signal.SIGTERM
    assert "Unknown child process" not in caplog.text


async def test_a_block_left_before_a_child_is_ready_leaves_nothing_behind(tmp_path: Path) -> None:
    started = asyncio.Event()
    pids: list[int] = []
    child = _child(
        tmp_path,
        "a",
        ready=_when_flagged(tmp_path, "never"),
        started=lambda pid: (pids.append(pid), started.set()),
    )
    async with Supervisor([child]):
        await started.wait()
    assert len(pids) == 1
    assert not _runs(pids[0])


async def test_between_two_lives_there_is_no_pid(tmp_path: Path) -> None:
    async with Supervisor([_child(tmp_path, "a"), _child(tmp_path, "b")]) as supervisor:
        with pytest.raises(ChildError, match="not running"):
            supervisor.pid("b")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a parent's death")
def test_children_end_when_the_supervising_process_is_killed(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from libs.servers.supervisor import Child, Supervisor\n"
        "async def main():\n"
        f"    argv = [sys.executable, '-c', {SLEEP!r}]\n"
        "    child = Child(name='a', argv=argv, log_path=Path(sys.argv[1]))\n"
        "    async with Supervisor([child]) as supervisor:\n"
        "        await supervisor.ready()\n"
        "        print(supervisor.pid('a'), flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen(
        [PYTHON, "-c", script, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    lines = iter(parent.stdout.readline, "")
    pid = next(int(line) for line in lines if line.strip().isdigit())
    child = os.pidfd_open(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    ended = select.poll()  # unlike select(), for any number of open files
    ended.register(child, select.POLLIN)
    assert ended.poll(DEADLINE_S * 1_000)
    os.close(child)
