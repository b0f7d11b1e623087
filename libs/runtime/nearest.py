"""Did you mean: of what there is, what comes nearest to what was typed."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from libs.runtime.errors import DeskError, few

LIKE_MIN = 0.6
"""How alike two words must be, 0 to 1, for the one to be taken for a slip of the other."""


def nearest(word: str, known: Iterable[str], like_min: float = LIKE_MIN) -> str | None:
    """The known name that `word` was probably meant to be, in either case; None where none is."""
    return next(iter(nearest_few(word, known, 1, like_min)), None)


def nearest_few(
    word: str, known: Iterable[str], count: int, like_min: float = LIKE_MIN
) -> Sequence[str]:
    """The known names, at most so many, that `word` was probably meant to be, the nearest first."""
    names = {name.casefold(): name for name in known}
    return [names[like] for like in get_close_matches(word.casefold(), names, count, like_min)]


def slip(names: Iterable[str], known: Sequence[str]) -> tuple[str, str] | None:
    """The first of some names that is none of those known but near one of them, and that one."""
    unknown = (name for name in names if name not in known)
    return next(((name, near) for name in unknown if (near := nearest(name, known))), None)


def did_you_mean(near: object | None) -> str:
    """The question, to be put behind a sentence; empty where there is nothing to ask."""
    return "" if near is None else f"; did you mean {near}?"


class UnknownName(DeskError):
    """A filter names a type that does not exist."""

    code = "unknown_type"

    def __init__(
        self, what: str, name: str, known: Sequence[str], also: Sequence[str] = (), *, field: str
    ) -> None:
        near = nearest(name, [*known, *also])
        # Whoever is shown what was meant reads no list of forty others.
        there = did_you_mean(near) or f"; known: {few(known)}"
        super().__init__(f"{field}: unknown {what} {name!r}{there}")
        self.field, self.mistyped, self.suggestion = field, name, near


class UnknownAccount(DeskError):
    """No account has this name."""

    code = "unknown_account"
    field = "account"

    def __init__(self, account: str, known: Sequence[str]) -> None:
        near = nearest(account, known)
        super().__init__(
            f"no account is named {account!r} (there is: {few(known, 'none yet')}); a cycle opens "
            f"the account that it trades{did_you_mean(near)}"
        )
        self.mistyped, self.suggestion = account, near
