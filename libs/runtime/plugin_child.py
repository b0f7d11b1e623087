"""One plug-in in a process of its own. Run by path, never imported; it needs Python alone.

The request is JSON on stdin: the plug-in, the directory that its module may be in, and a list of
questions. The answer is a line of JSON when the module is loaded (`file`), and one a question
(`answer`); in the place of each there may be a `problem`. What the plug-in prints goes nowhere.

It is no sandbox: docs/plug-ins.md says what is kept from a plug-in and what is not.
"""

import contextlib
import importlib
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, TextIO

MEMORY_BYTES_MAX = 1_073_741_824
CPU_S_MAX = 30
WORDS_CHARS_MAX = 200
LIMITS = (
    (resource.RLIMIT_AS, MEMORY_BYTES_MAX),
    (resource.RLIMIT_CPU, CPU_S_MAX),
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_NPROC, 0),
)
"""Memory, computing time, and nothing written to a file, no further process or thread. The last one
does not bind root."""


NOT_ITS_OWN = {__file__, importlib.__file__}
"""Files whose lines say nothing of the plug-in."""


def main() -> None:
    """Load the plug-in and answer each question."""
    request = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    for limit, value in LIMITS:
        with contextlib.suppress(OSError, ValueError):  # not known to this system, or lower already
            resource.setrlimit(limit, (value, value))
    sys.path.append(request["directory"])
    try:
        module_name, _, name = request["plugin"].partition(":")
        module = importlib.import_module(module_name)
        function = getattr(module, name)
        _say(out, {"file": module.__file__})
    except BaseException as error:  # noqa: BLE001 - whatever it raises is its answer
        _say(out, {"problem": _words(error)})
        return
    for question in request["questions"]:
        _say(out, _answered(function, question))


def _answered(function: Callable[[Any], Any], question: Any) -> dict[str, Any]:
    try:
        answer = function(_frozen(question))
    except BaseException as error:  # noqa: BLE001 - whatever it raises is its answer
        return {"problem": _words(error)}
    try:
        json.dumps(answer)
    except (RecursionError, TypeError, ValueError) as error:
        return {"problem": f"its result is not JSON: {str(error)[:WORDS_CHARS_MAX]}"}
    try:
        json.dumps(answer, allow_nan=False)
    except ValueError:
        return {"problem": "its result holds NaN or an infinite number"}
    return {"answer": answer}


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: _frozen(item) for key, item in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _words(error: BaseException) -> str:
    *_, line = ["", *_lines(error)]
    return f"{type(error).__name__}: {str(error)[:WORDS_CHARS_MAX]}{line}"


def _lines(error: BaseException) -> Iterator[str]:
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file not in NOT_ITS_OWN and not file.startswith("<frozen importlib."):
            yield f" (line {step.tb_lineno})"
        step = step.tb_next


def _say(out: TextIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message, allow_nan=False) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
