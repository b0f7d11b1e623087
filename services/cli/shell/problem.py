"""Problems that stop a command: a sentence, what to do, and the exit code for scripts."""

from enum import IntEnum
from typing import Self

WHO = "deskbus:"
ARROW = "→"
"""What a problem and its hint begin with on stderr."""


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


UNREADABLE = "this version of Deskbus cannot read it; a later one wrote it"


class CliProblem(Exception):
    """Ends the command: `message` says what, `hint` what to do, both on stderr."""

    def __init__(self, code: ExitCode, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    @classmethod
    def in_words(cls, words: str) -> Self | None:
        """The problem that another `deskbus` ended with, in what that wrote on stderr; None where
        it ended without one."""
        _, mark, problem = f"\n{words}".rpartition(f"\n{WHO} ")
        if not mark:
            return None
        message, _, hint = problem.partition(f"\n  {ARROW} ")
        return cls(ExitCode.FAILED, message.strip(), hint.strip())
