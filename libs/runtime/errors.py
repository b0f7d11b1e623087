"""The one base of errors that end an operation with a reason a person can act on, and its words."""

from collections.abc import Sequence


class DeskError(Exception):
    """A typed failure: `code` is stable and for machines, the message says what, where, what to do.

    Handlers raise it to say "no" with a reason; the bus turns it into a FAILED operation. Anything
    that is not a DeskError is a fault of the program or of the machine and is treated as such.
    """

    code: str = "desk_error"
    field: str | None = None
    """The setting or the request's field that would have to be another, where it is one."""

    @property
    def message(self) -> str:
        """The sentence for people."""
        return str(self)


NAMES_MAX = 10
"""Names in a sentence: what a person still reads."""


def few(names: Sequence[str], none: str = "none") -> str:
    """The first names of what there is, and how many more; `none` where there is nothing."""
    more = len(names) - NAMES_MAX
    return (", ".join(names[:NAMES_MAX]) or none) + (f" and {more} more" if more > 0 else "")
