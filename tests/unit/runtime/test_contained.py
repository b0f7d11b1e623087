"""A program that nobody trusts: it sees nothing of the desk, is bounded, and leaves nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from libs.runtime.contained import (
    OUTPUT_BYTES_MAX,
    Containment,
    NoEnd,
    NotContained,
    NotStarted,
    OutputTooLarge,
    reached,
    run,
)
from tests.open_folder import open_folder

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root may start another user's program"
)
NOBODY = Containment(run_as="nobody")
IN_TIME = {"timeout_s": 30.0, "silence_s": 30.0}


async def shell(script, containment=NOBODY, stdin=b"", **limits):
    return await run(["/bin/sh", "-c", script], containment, stdin, **(IN_TIME | limits))


def alive(mark):
    """The processes with this text among their arguments."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(place.name))
    return found


async def test_it_gets_its_text_an_empty_directory_and_four_variables(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted")
    ran = await shell("cat; env | sort; ls -A; id -u", stdin=b"the prompt\n")
    text, *variables, uid = ran.output.decode().splitlines()
    assert (text, ran.code) == ("the prompt", 0)
    # PWD is the shell's own.
    names = [line.partition("=")[0] for line in variables]
    assert names == ["HOME", "LANG", "PATH", "PWD", "TMPDIR"]
    assert uid != "0"


async def test_its_directory_is_gone_afterwards():
    place = Path((await shell("pwd; touch left; mkdir -p a/b")).output.decode().strip())
    assert place.name.startswith("deskbus-")
    assert not place.exists()  # noqa: ASYNC240 - one look


@pytest.fixture
def inheritable(tmp_path):
    """An open file that a careless start would pass on."""
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        yield tmp_path


async def test_it_has_no_descriptor_of_the_desk(inheritable):
    ran = await shell("ls -l /proc/self/fd")
    assert str(inheritable) not in ran.output.decode()


async def test_it_cannot_gain_rights():
    ran = await shell("grep NoNewPrivs /proc/self/status")
    assert ran.output.split() == [b"NoNewPrivs:", b"1"]


async def test_a_grandchild_in_a_session_of_its_own_ends_with_it():
    await shell("(setsid setsid sleep 4711.1 > /dev/null 2>&1 < /dev/null &); echo answered")
    assert alive("4711.1") == []


async def test_a_grandchild_that_keeps_the_pipe_holds_nobody_up():
    began = time.monotonic()
    ran = await shell("setsid sleep 4711.2 & echo answered")
    assert ran.output == b"answered\n"
    assert time.monotonic() - began < 20
    assert alive("4711.2") == []


async def test_100_megabytes_are_not_read():
    with pytest.raises(OutputTooLarge, match=f"{OUTPUT_BYTES_MAX:,}"):
        await shell("head -c 100000000 /dev/zero")


async def test_words_beside_the_output_are_kept_to_their_end():
    ran = await shell("head -c 3000000 /dev/zero >&2; echo last words >&2; exit 3")
    assert ran.code == 3
    assert len(ran.words) < 5_000
    assert ran.words.endswith(b"last words\n")


async def test_one_that_never_ends_is_ended():
    with pytest.raises(NoEnd, match=r"within 0.5 s"):
        await shell("trap '' TERM; echo x; sleep 4711.3", timeout_s=0.5)
    with pytest.raises(NoEnd, match=r"nothing for 0.3 s"):
        await shell("sleep 4711.3", silence_s=0.3)
    assert alive("4711.3") == []


async def test_it_ends_when_the_call_is_cancelled():
    call = asyncio.ensure_future(shell("setsid sleep 4711.4 & sleep 4711.4"))
    while len(alive("4711.4")) < 2:  # noqa: ASYNC110 - it is another program's start
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert alive("4711.4") == []


async def test_it_ends_when_the_call_is_cancelled_while_it_starts(monkeypatch):
    start = asyncio.create_subprocess_exec

    async def slow(*argv, **given):
        process = await start(*argv, **given)
        await asyncio.sleep(0.5)  # a busy desk comes to the next line later
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
    call = asyncio.ensure_future(shell("setsid sleep 4711.6 & sleep 4711.6"))
    while len(alive("4711.6")) < 2:  # noqa: ASYNC110 - it is another program's start
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert alive("4711.6") == []


DESK = """
import asyncio
from libs.runtime.contained import Containment, run
asyncio.run(run(["/bin/sh", "-c", "setsid sleep 4711.5 & sleep 4711.5"],
    Containment(run_as="nobody"), b"", timeout_s=60, silence_s=60))
"""


def test_it_ends_when_the_desk_is_killed():
    desk = subprocess.Popen([sys.executable, "-c", DESK])
    until = time.monotonic() + 30
    while len(alive("4711.5")) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    assert len(alive("4711.5")) >= 2
    desk.send_signal(signal.SIGKILL)
    desk.wait()
    until = time.monotonic() + 10
    while alive("4711.5") and time.monotonic() < until:
        time.sleep(0.02)
    assert alive("4711.5") == []


async def test_a_program_that_reads_nothing_may_answer():
    ran = await shell("echo answered", stdin=b"x" * 1_000_000)
    assert ran.output == b"answered\n"


@pytest.mark.parametrize(
    ("containment", "argv", "said"),
    [
        (NOBODY, "no-such-program", "program no-such-program is not in"),
        (Containment(run_as="nobody-here"), "/bin/sh", "user nobody-here does not exist"),
        (Containment(run_as="root"), "/bin/sh", "neither root nor the desk's own"),
        (
            Containment(run_as="nobody", wrapper=("no-wrapper",)),
            "/bin/sh",
            "program no-wrapper is not in",
        ),
    ],
)
async def test_one_that_cannot_be_started_says_why(containment, argv, said):
    with pytest.raises(NotStarted, match=said):
        await run([argv], containment, b"", **IN_TIME)


@pytest.fixture
def secret(tmp_path):
    """A directory as the desk's data, and a file in it."""
    place = tmp_path / "data"
    place.mkdir(mode=0o700)
    (place / "orchestrator.nk").write_text("planted")
    return place


async def test_another_user_reaches_nothing(secret):
    assert await reached(NOBODY, [secret, secret / "orchestrator.nk"], [Path(__file__)]) == []


async def test_the_same_user_reaches_all_of_it(secret):
    found = await reached(Containment(), [secret], [Path(__file__)])
    assert found == [
        str(secret),
        str(secret / "orchestrator.nk"),
        __file__,
        "the desk's own process",
    ]


async def test_what_is_open_in_a_directory_that_nobody_lists_is_found():
    with open_folder() as folder:
        folder.chmod(0o711)
        reports = folder / "reports"
        reports.mkdir(mode=0o711)
        (reports / "closed").write_text("x")
        (reports / "closed").chmod(0o600)
        assert await reached(NOBODY, [folder], []) == []
        (reports / "open").write_text("x")
        assert await reached(NOBODY, [folder], []) == [str(reports / "open")]


async def test_a_file_that_everybody_may_read_is_found(tmp_path):
    file = Path("/tmp") / f"{tmp_path.name}-key"
    try:
        file.write_text("planted")
        file.chmod(0o644)
        assert await reached(NOBODY, [file], []) == [str(file)]
        file.chmod(0o722)
        assert await reached(NOBODY, [], [file]) == [str(file)]
    finally:
        file.unlink()


@pytest.mark.parametrize("wrapper", [("/bin/true",), ("/bin/echo",), ("/bin/false",)])
async def test_a_wrapper_that_runs_no_probe_proves_nothing(wrapper, secret):
    with pytest.raises(NotContained, match="the probe by"):
        await reached(Containment(run_as="nobody", wrapper=wrapper), [secret], [])
