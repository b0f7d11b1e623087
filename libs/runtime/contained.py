"""Run a program that nobody trusts: an empty directory, a bare environment, bounded, gone after.

The program sees no variable of the desk and no open file of it. Whether it can read the desk's
files is for its user and its wrapper to prevent: `reached` proves it by trying.
"""

import asyncio
import contextlib
import os
import pwd
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from libs.runtime.child_pipes import PIECE_BYTES, last_bytes, write_all
from libs.runtime.errors import DeskError

OUTPUT_BYTES_MAX = 1_000_000
WORDS_BYTES_MAX = 4_096
"""Kept of what a program writes to its standard error: the end."""
END_S_MAX = 6.0
"""To end a program with all that it left."""
PROBE_S_MAX = 10.0
PLACES_MAX = 1_000
LEVELS = 2
_CHILD = Path(__file__).with_name("contained_child.py")
_SHELL = "/bin/sh"
_PROBE = """\
files=$1; shift
(cd /) && (exec 3< /dev/null) && [ -r / ] || exit 3
asked=0
for place do
  asked=$((asked + 1))
  if [ -w "$place" ]; then echo "reached $asked"
  elif [ "$asked" -le "$files" ]; then
    if [ -r "$place" ] || (exec 3< "$place") 2> /dev/null; then echo "reached $asked"; fi
  fi
done
if (exec 3< "/proc/$DESK/environ") 2> /dev/null
then read -r line < "/proc/$DESK/stat" && echo "process $line"; fi
echo "asked $asked $0"
"""
"""Tries to list or open the first `files` places, and to write to any; `$DESK` is the desk's
process, which is the same one where its start is the same."""


class NotContained(DeskError):
    """A program could not run to its end in its sandbox; nothing of it is left."""

    code = "not_contained"


class NotStarted(NotContained):
    """A program is not installed, or cannot be started with its settings."""

    code = "not_started"


class OutputTooLarge(NotContained):
    """The program wrote more output than the limit."""

    code = "output_too_large"


class NoEnd(NotContained):
    """The program did not end, or gave no output, in time."""

    code = "no_end"


@dataclass(frozen=True)
class Containment:
    """How a program is started: `run_as` another user (name or uid; empty for the desk's own),
    through the command `wrapper`, with the variables PATH, and HOME where it is not its empty
    directory."""

    run_as: str = ""
    wrapper: tuple[str, ...] = ()
    path: str = os.defpath
    home: str = ""


@dataclass(frozen=True)
class Ran:
    """A program's exit code, its standard output, and the end of its standard error."""

    code: int
    output: bytes
    words: bytes


async def run(
    argv: Sequence[str],
    containment: Containment,
    stdin: bytes,
    *,
    timeout_s: float,
    silence_s: float,
) -> Ran:
    """The program's output. However the call ends, nothing that it started runs on.

    Raises NotStarted, OutputTooLarge past OUTPUT_BYTES_MAX, and NoEnd after `timeout_s` in all or
    `silence_s` without a byte.
    """
    command = [*containment.wrapper, *argv]
    program = shutil.which(command[0], path=containment.path)
    if program is None:
        raise NotStarted(f"program {command[0]} is not in {containment.path}")
    identity = _identity(containment.run_as)
    async with _empty_directory(identity) as place:
        environment = {
            "PATH": containment.path,
            "HOME": containment.home or place,
            "TMPDIR": place,
            "LANG": "C.UTF-8",
        }
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(_CHILD), str(os.getpid())),
                ":".join(map(str, identity)) if identity else "-",
                *(program, *command[1:]),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                cwd=place,
            )
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # What has begun to start is ended once there is something to end.
            with contextlib.suppress(OSError, ValueError):
                await _end(await starting)
            raise
        except (OSError, ValueError) as error:
            raise NotStarted(f"{command[0]} cannot be started: {error}") from None
        try:
            async with asyncio.timeout(timeout_s):
                return await _talk(process, stdin, silence_s)
        except TimeoutError:
            raise NoEnd(f"it did not end within {timeout_s:g} s") from None
        finally:
            await _end(process)


async def _talk(process: asyncio.subprocess.Process, stdin: bytes, silence_s: float) -> Ran:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise RuntimeError("the process was started without these pipes")
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(write_all(process.stdin, stdin))
        ending = group.create_task(last_bytes(process.stderr, WORDS_BYTES_MAX))
        try:
            output = await _read(process.stdout, silence_s)
            code = await process.wait()
        except NotContained as error:
            failed: NotContained | None = error
        else:
            failed = None
        if failed is not None:
            writing.cancel()
            ending.cancel()
    if failed is not None:
        raise failed
    return Ran(code, output, ending.result())


async def _read(pipe: asyncio.StreamReader, silence_s: float) -> bytes:
    output = bytearray()
    while True:
        try:
            async with asyncio.timeout(silence_s):
                piece = await pipe.read(PIECE_BYTES)
        except TimeoutError:
            raise NoEnd(f"it wrote nothing for {silence_s:g} s") from None
        if not piece:
            return bytes(output)
        output += piece
        if len(output) > OUTPUT_BYTES_MAX:
            raise OutputTooLarge(f"it wrote more than {OUTPUT_BYTES_MAX:,} bytes")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Have the child end the program and all that it left; then the child itself."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(END_S_MAX):
            # It is seen to have ended once its pipes are read to their ends.
            for pipe in (process.stdout, process.stderr):
                while pipe is not None and await pipe.read(PIECE_BYTES):
                    pass
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _identity(run_as: str) -> tuple[int, int] | None:
    """The user and group to become; None for the desk's own. Raises NotStarted."""
    if not run_as:
        return None
    try:
        user = pwd.getpwuid(int(run_as)) if run_as.isdigit() else pwd.getpwnam(run_as)
    except (KeyError, OverflowError):
        raise NotStarted(f"user {run_as} does not exist (run_as)") from None
    if user.pw_uid in {0, os.getuid()}:
        raise NotStarted(f"run_as is {run_as}: name a user that is neither root nor the desk's own")
    if os.getuid() != 0:
        raise NotStarted(f"only root may start a program as {run_as} (run_as); use a wrapper")
    return user.pw_uid, user.pw_gid


@asynccontextmanager
async def _empty_directory(identity: tuple[int, int] | None) -> AsyncIterator[str]:
    place = tempfile.mkdtemp(prefix="deskbus-")
    try:
        if identity is not None:
            os.chown(place, *identity)
        yield place
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


async def reached(
    containment: Containment, secret: Sequence[Path], unwritable: Sequence[Path]
) -> Sequence[str]:
    """What a program that is started so can reach and must not: list or read the `secret` places
    and what is in them (two levels, PLACES_MAX) but for the `unwritable` ones, write to any, read
    the desk's own process.

    It is tried by a shell that is started the same way. Raises NotContained where that gave no
    answer: then nothing is proven.
    """
    inner = await asyncio.to_thread(_with_inner, secret)
    secret = [place for place in inner if place not in unwritable]
    places = [str(path.absolute()) for path in (*secret, *unwritable)]
    word = secrets.token_hex(8)
    # The desk's number stands in the words, not in the environment: a wrapper may clear that.
    words = f"DESK={os.getpid()}\n{_PROBE}"
    probe = [_SHELL, "-c", words, word, str(len(secret)), *places]
    ran = await run(probe, containment, b"", timeout_s=PROBE_S_MAX, silence_s=PROBE_S_MAX)
    lines = ran.output.decode(errors="replace").splitlines()
    if not lines or lines[-1] != f"asked {len(places)} {word}":
        last = ran.words.decode(errors="replace").strip()[-200:] or "it said nothing"
        raise NotContained(f"the probe by {_SHELL} ended with {ran.code}: {last}")
    found = []
    own = await asyncio.to_thread(Path("/proc/self/stat").read_text)
    for line in lines[:-1]:
        what, _, rest = line.partition(" ")
        if what == "reached" and rest.isdigit():
            found.append(places[int(rest) - 1])
        elif what == "process" and _begun(rest) == _begun(own):
            found.append("the desk's own process")
    return found


def _with_inner(places: Sequence[Path]) -> Sequence[Path]:
    """The places and what is in them. A directory that may be entered and not listed keeps what is
    closed itself: those that are not are found."""
    found, level = dict.fromkeys(places), list(places)
    for _ in range(LEVELS):
        level = [inner for place in level for inner in _inner(place)]
        found |= dict.fromkeys(level)
    return list(found)[:PLACES_MAX]


def _inner(place: Path) -> Sequence[Path]:
    """Nothing where the desk itself cannot look: what it runs under its own user cannot either."""
    try:
        return sorted(place.iterdir())
    except OSError:
        return []


def _begun(stat: str) -> str:
    """When a process began, in ticks since the machine did: with that it is known in any
    namespace."""
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""
