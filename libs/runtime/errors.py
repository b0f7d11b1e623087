"""The bases of errors: a reason that a person can act on, and an outage, which is waited for."""

import errno
import socket
from collections.abc import Sequence
from datetime import date


class DeskError(Exception):
    """A typed failure: `code` is stable and for machines, the message says what, where, what to do.

    Handlers raise it to say "no" with a reason; the bus turns it into a FAILED operation. Anything
    that is not a DeskError is a fault of the program or of the machine and is treated as such.
    """

    code: str = "desk_error"
    field: str | None = None
    """The setting or the request's field that would have to be another, where it is one."""
    of_model: bool = False
    """Whether a model's endpoint or its answer failed, so that another provider could do it."""
    mistyped: str | None = None
    suggestion: str | None = None
    """The value that was given there, and what would be taken in its place, where a name was
    probably mistyped."""

    @property
    def message(self) -> str:
        """The sentence for people."""
        return str(self)


class Unavailable(DeskError):
    """A service that the work needs is not reachable now. An outage is no failure: whoever works
    waits, and tries again for as long as it lasts."""

    code = "unavailable"


ELSEWHERE = frozenset(
    {
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.ENETDOWN,
        errno.EHOSTDOWN,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EROFS,
    }
)
"""What the machine or its network says of itself, and not of what it was asked."""


def is_outage(error: BaseException) -> bool:
    """Whether an error says that something cannot be reached or has no room, and not that something
    is wrong."""
    if isinstance(error, Unavailable | ConnectionError | TimeoutError | socket.gaierror):
        return True
    return isinstance(error, OSError) and error.errno in ELSEWHERE


class StartError(RuntimeError):
    """This machine cannot run what was asked for, as things are, or keep it running; the text says
    what, where and what to do."""


class NoAnswer(DeskError):
    """The command is dropped without an answer: none is expected."""

    code = "no_answer"


class NotOnRecord(NoAnswer):
    """The command is forged: no recorded operation has it.

    It becomes a dead letter. With `may_come` only after some tries: another server may know more.
    """

    code = "not_on_record"

    def __init__(self, message: str, *, may_come: bool = False) -> None:
        super().__init__(message)
        self.may_come = may_come


class OperationEnded(NoAnswer):
    """The command of an ended operation arrived again."""

    code = "operation_ended"


class ClockBack(DeskError):
    """The account has already decided at a later session; `clock` is the newest."""

    code = "clock_back"
    field = "as_of"

    def __init__(self, account: str, clock: date, as_of: date) -> None:
        super().__init__(
            f"account {account} has seen {clock}; going back to {as_of} would let it trade on "
            f"knowledge of the days between: use an as_of from {clock} on, or another account"
        )
        self.clock = clock


NAMES_MAX = 10
"""Names in a sentence: what a person still reads."""


def few(names: Sequence[str], none: str = "none", most: int = NAMES_MAX) -> str:
    """The first names of what there is, and how many more; `none` where there is nothing."""
    more = len(names) - most
    return (", ".join(names[:most]) or none) + (f" and {more:,} more" if more > 0 else "")


def listed(names: Sequence[str]) -> str:
    """`AAPL`, `AAPL and MSFT`, `AAPL, GOOG and MSFT`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
