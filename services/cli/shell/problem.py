"""Problems that stop a command: a sentence, what to do, and the exit code for scripts."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REJECTED = 4
    NOT_REACHABLE = 5
    TIMED_OUT = 124
    INTERRUPTED = 130


class Problem(Exception):
    """Ends the command: `message` says what, `hint` what to do, both on stderr."""

    def __init__(self, code: ExitCode, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
