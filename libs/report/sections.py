"""The parts of a report: facts with a label, and lists that show their first items. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from uuid import UUID

from libs.report.cited import TextPiece
from libs.report.tones import Tone

T_co = TypeVar("T_co", covariant=True)
Line = Sequence[TextPiece]


@dataclass(frozen=True)
class ShownItems(Generic[T_co]):
    """Items of which the first `at_most` are shown; `stage` has them all."""

    items: Sequence[T_co] = ()
    at_most: int | None = None
    stage: str = ""

    @property
    def shown(self) -> Sequence[T_co]:
        """The first ones."""
        return self.items[: self.at_most]

    @property
    def more(self) -> str:
        """`and 3 more`; empty where all are shown."""
        count = len(self.items) - len(self.shown)
        return f"and {count:,} more" if count else ""

    @property
    def rest(self) -> str:
        """`and 3 more: --stage quant`, the line under the list; empty where all are shown."""
        return f"{self.more}: --stage {self.stage}" if self.more and self.stage else self.more


@dataclass(frozen=True)
class SectionFact:
    """A label and what there is to say, line by line, or `values` with their units by name.

    `op_id` is the operation that says so, `call` the result of it that the values are from.
    A `detail` has no place in a summary of one screen.
    """

    label: str
    lines: ShownItems[Line] = ShownItems()
    tone: Tone | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    op_id: UUID | None = None
    call: str = ""
    detail: bool = False

    @property
    def href(self) -> str:
        """The page of the operation that says so; empty where it is not known."""
        if self.op_id is None:
            return ""
        place = f"?call={self.call}#{self.call}" if self.call else ""
        return f"/operations/{self.op_id}{place}"


def words(*texts: str) -> ShownItems[Line]:
    """Lines of plain words."""
    return ShownItems([[TextPiece(text)] for text in texts])


def text_of(line: Line) -> str:
    """A line without its sources."""
    return "".join(piece.text for piece in line)
