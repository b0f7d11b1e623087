"""The command line as it was probably meant: the hint that stands under an error. Loads nothing
heavy."""

import re
import shlex
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

PROGRAM = "deskbus"
TRIALS = ("test", "test2", "test3")
"""Accounts to try something with; more than one command line names."""
REPLAY_DIRS = (".deskbus-replay", ".deskbus-replay-2")
"""Data directories for replays, below the folder that people work in."""
_OPTIONS = {"as_of": "--as-of", "pipelines": "--provider", "sources": "--source"}


def corrected(arguments: Sequence[str], field: str, value: str, suggestion: str | None) -> str:
    """The command as typed, with what would do in place of what was given; without it where
    nothing does, or where that stands there already. Empty where no command is without it."""
    word = _word(value)
    if suggestion is None or _stands_beside(arguments, value, suggestion):
        without = re.compile(rf",{word.pattern}|{word.pattern},?", re.IGNORECASE)
        words = [without.sub("", argument) for argument in arguments]
        if any(not after and before[:1] != "-" for before, after in pairwise(words)):
            return ""
        # An option whose only value is gone goes with it.
        kept = [
            before
            for before, after in zip(words, [*words[1:], "-"], strict=True)
            if before and after and not before.endswith("=")
        ]
        return shlex.join([PROGRAM, *kept])
    words = [word.sub(suggestion, argument) for argument in arguments]
    if words == list(arguments):
        words += [_OPTIONS.get(field, f"--{field}"), suggestion]
    return shlex.join([PROGRAM, *words])


def _stands_beside(arguments: Sequence[str], value: str, other: str) -> bool:
    """Whether both are values of one option, or in one list of them."""
    if value.casefold() == other.casefold():
        return False
    valued = list(zip(["", *arguments], arguments, strict=False))
    options = {option for option, argument in valued if _word(value).search(argument)}
    return any(option in options and _word(other).search(argument) for option, argument in valued)


def on_another_account(arguments: Sequence[str], as_of: str) -> str:
    """The command that asks for this session on an account to try something with."""
    trial = next(name for name in TRIALS if not any(map(_word(name).search, arguments)))
    return shlex.join([PROGRAM, "cycle", "request", "--as-of", as_of, "--account", trial])


def in_another_directory(arguments: Sequence[str], data_dir: Path) -> str:
    """The command as typed, on a desk of its own."""
    other = next(name for name in REPLAY_DIRS if name != data_dir.name)
    typed = shlex.join([PROGRAM, *arguments])
    return f"export DESKBUS_DATA_DIR={other}; {PROGRAM} up --detach; {typed}"


def meant(word: str | None, near: str | None) -> str:
    """The command that was typed, with the nearest name in place of a word of it; empty where no
    name is near, or the word was not typed."""
    words = sys.argv[1:]
    if not word or not near or not any(map(_word(word).search, words)):
        return ""
    return corrected(words, "", word, near)


def _word(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(value)}(?![\w.-])", re.IGNORECASE)
