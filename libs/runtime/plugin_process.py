"""Plug-ins: functions of the user's, each asked in a process of its own (`plugin_child.py`).

The process has no variable of the desk's, no open file of it and another working directory. It is
killed with its group when all is answered, or at a limit of time.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
from pydantic import JsonValue

from libs.runtime.guarded import guarded_argv
from libs.runtime.own_code import FILES_MAX, source_file, source_sha256

ANSWER_S_MAX = 1.0
LOAD_S_MAX = 15.0
"""To start Python and to load the module with all that it imports."""
ALL_S_MAX = 120.0
"""Until all questions are answered: less than the time of a step, so that what needs no plug-in,
such as a sale, always comes to its turn."""
END_S_MAX = 5.0
ANSWER_BYTES_MAX = 10_000
PROCESSES_MAX = 2
"""At once; others wait for their turn."""
NOT_SET = "the settings of this service do not name it"
_CHILD = Path(__file__).with_name("plugin_child.py")
_ENVIRONMENT = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    # Without them numpy starts threads, which the child may not.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class PluginAnswer:
    """The answer to one question, or the `problem` that is there instead."""

    value: JsonValue = None
    problem: str = ""


@dataclass(frozen=True)
class PluginAnswers:
    """One answer a question, in their order, and the SHA-256 of the plug-in's own code."""

    sha256: str
    answers: Sequence[PluginAnswer]


class _NoAnswer(Exception):
    """The process says nothing more that counts; the text says why."""


async def ask(plugin: str, questions: Sequence[JsonValue]) -> PluginAnswers:
    """Put the questions to a plug-in, `package.module:function`. Whatever goes wrong is a
    `problem` in the place of an answer. However the call ends, the process has been killed."""
    module = plugin.partition(":")[0]
    # It reads and parses files.
    sha256 = await asyncio.to_thread(source_sha256, module)
    file = source_file(module)
    answers: list[PluginAnswer] = []
    if file is None:
        why = f"module {module} has no file here"
    elif not sha256:
        why = f"module {module} cannot be read, or has more than {FILES_MAX} files of its own"
    else:
        async with _PROCESSES:
            answers, why = await _asked(plugin, file, questions)
        if await asyncio.to_thread(source_sha256, module) != sha256:
            why, answers = "its code changed during the call", []
    missing = len(questions) - len(answers)
    return PluginAnswers(sha256, [*answers, *[PluginAnswer(problem=why)] * missing])


async def ask_named(
    plugin: str,
    questions: Sequence[JsonValue],
    named: Sequence[str],
    within_s: float | None = None,
) -> PluginAnswers:
    """`ask`, of a plug-in that is `named` in this service's settings, within so much time (None:
    ALL_S_MAX), the wait for a process included. Of any other nothing runs: a command names code,
    and is no reason to run it."""
    if plugin not in named:
        return PluginAnswers("", [PluginAnswer(problem=NOT_SET)] * len(questions))
    limit_s = ALL_S_MAX if within_s is None else within_s
    try:
        async with asyncio.timeout(limit_s):
            return await ask(plugin, questions)
    except TimeoutError:
        late = PluginAnswer(problem=f"not all was answered within {limit_s:g} s")
        sha256 = await asyncio.to_thread(source_sha256, plugin.partition(":")[0])
        return PluginAnswers(sha256, [late] * len(questions))


_PROCESSES = asyncio.Semaphore(PROCESSES_MAX)


async def _asked(
    plugin: str, file: Path, questions: Sequence[JsonValue]
) -> tuple[list[PluginAnswer], str]:
    """The answers up to where there are no more, and why there are no more."""
    request = {"plugin": plugin, "directory": str(Path.cwd()), "questions": questions}
    answers: list[PluginAnswer] = []
    try:
        process = await _started()
    except OSError as error:
        return answers, f"its process could not be started: {error}"
    try:
        pipe, lines = process.stdin, process.stdout
        if pipe is None or lines is None:
            raise RuntimeError("the process was started without these pipes")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            pipe.write(orjson.dumps(request))
            pipe.close()
        loaded = await _line(lines, LOAD_S_MAX, "load")
        if loaded.problem:
            return answers, f"it cannot be loaded: {loaded.problem}"
        if not _is_same(file, str(loaded.value)):
            return answers, f"it was loaded from {loaded.value}, and {file} was looked at"
        while len(answers) < len(questions):
            answers.append(await _line(lines, ANSWER_S_MAX, "answer"))
    except _NoAnswer as error:
        return answers, str(error)
    finally:
        await _end(process)
    return answers, ""


def _is_same(file: Path, loaded: str) -> bool:
    return file.resolve() == Path(loaded).resolve()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process and its group: what it started is in it, unless it took care not to be."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_S_MAX):
            # It is seen to have ended once its pipe is read to the end.
            while process.stdout is not None and await process.stdout.read(ANSWER_BYTES_MAX):
                pass
            await process.wait()


async def _started() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *guarded_argv([sys.executable, "-I", "-B", str(_CHILD)]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_ENVIRONMENT,
        cwd="/",
        limit=ANSWER_BYTES_MAX,
    )


async def _line(lines: asyncio.StreamReader, limit_s: float, what: str) -> PluginAnswer:
    try:
        async with asyncio.timeout(limit_s):
            line = await lines.readline()
    except TimeoutError:
        raise _NoAnswer(f"it did not {what} within {limit_s:g} s") from None
    except ValueError:
        raise _NoAnswer(f"its answer is longer than {ANSWER_BYTES_MAX:,} bytes") from None
    if not line:
        raise _NoAnswer(f"its process ended before it did {what}")
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise _NoAnswer("its process wrote an invalid answer") from None
    match message:
        case {"problem": str(problem)}:
            return PluginAnswer(problem=problem)
        case {"answer": value} | {"file": value}:
            return PluginAnswer(value)
        case _:
            raise _NoAnswer("its process wrote an invalid answer")
