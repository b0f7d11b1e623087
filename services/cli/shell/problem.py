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


NOT_THERE = frozenset({"not_found", "unknown_account"})
"""Codes of a desk's no that say that what was named is not there."""
UNREADABLE = "this version of Deskbus cannot read it; a later one wrote it"


class CliProblem(Exception):
    """Ends the command: `message` says what, `hint` what to do, both on stderr."""

    code = ExitCode.FAILED

    def __init__(self, message: str, hint: str = "", code: ExitCode | None = None) -> None:
        super().__init__(message)
        self.message, self.hint, self.code = message, hint, code or self.code

    @classmethod
    def in_words(cls, words: str) -> Self | None:
        """The problem that another `deskbus` ended with, in what that wrote on stderr; None where
        it ended without one."""
        _, mark, problem = f"\n{words}".rpartition(f"\n{WHO} ")
        if not mark:
            return None
        message, _, hint = problem.partition(f"\n  {ARROW} ")
        return cls(message.strip(), hint.strip())


class WrongUsage(CliProblem):
    """What was typed cannot be used."""

    code = ExitCode.USAGE


class NoSuchThing(CliProblem):
    """What was named is not there."""

    code = ExitCode.NOT_FOUND


def refusal(code: str | None, message: str, hint: str = "") -> CliProblem:
    """The desk's no, by its code."""
    exit_code = ExitCode.NOT_FOUND if code in NOT_THERE else ExitCode.REJECTED
    return CliProblem(message, hint, exit_code)
