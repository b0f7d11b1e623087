"""A text in pieces: words, figures with where they are from, and numbers that came from nowhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import UUID

from pydantic import JsonValue, TypeAdapter, ValidationError

from contracts.operation import CallKind
from contracts.reasons import Figure, Loose

SIGNATURE = "rules: "


@dataclass(frozen=True)
class TextPiece:
    """Some of a text: plain words, a `figure`, or a number that is `loose`."""

    text: str
    figure: Figure | None = None
    loose: bool = False
    op_id: UUID | None = None

    @property
    def href(self) -> str:
        """The page that shows where a figure is from: the tool result, the operation that gave it,
        or the task of the operation that wrote it. Empty for words."""
        if self.figure is None or self.op_id is None:
            return ""
        page = f"/operations/{self.figure.op_id or self.op_id}"
        if self.figure.call:
            return f"{page}?call={self.figure.call}#{self.figure.call}"
        return f"{page}#{'out' if self.figure.op_id else 'in'}"

    @property
    def source(self) -> str:
        """Where a figure is from: `AAPL.close, AAPL.sma_50; bokeh-sampledata, 2012-06-29 (E0)`."""
        if self.figure is None:
            return "not from evidence" if self.loose else ""
        names = ", ".join(self.figure.facts)
        call = f" ({self.figure.call})" if self.figure.call else ""
        return f"{names}; {self.figure.source}, {self.figure.known}{call}"


class Marked(Protocol):
    """A contract with marks in its texts."""

    @property
    def op_id(self) -> UUID | None:
        """The operation that made it, where that is known."""
        ...

    @property
    def figures(self) -> Sequence[Figure]:
        """The figures with a source."""
        ...

    @property
    def loose(self) -> Sequence[Loose]:
        """The numbers without a source."""
        ...


def pieces(report: Marked, field: str, text: str) -> Sequence[TextPiece]:
    """The text of one field of a report, in its pieces.

    A mark that does not fit the text is passed over: the words are shown all the same.
    """
    marks: list[Figure | Loose] = [*report.figures, *report.loose]
    own = sorted((mark for mark in marks if mark.field == field), key=lambda mark: mark.start)
    parts: list[TextPiece] = []
    done = 0
    for mark in own:
        end = mark.start + len(mark.text)
        if mark.start < done or text[mark.start : end] != mark.text:
            continue
        parts.append(TextPiece(text[done : mark.start]))
        parts.append(
            TextPiece(mark.text, mark, op_id=report.op_id)
            if isinstance(mark, Figure)
            else TextPiece(mark.text, loose=True)
        )
        done = end
    return [piece for piece in (*parts, TextPiece(text[done:])) if piece.text]


def unsigned(report: Marked, field: str, text: str) -> Sequence[TextPiece]:
    """The pieces without the rules provider's signature: the head of a story names the provider."""
    first, *rest = pieces(report, field, text) or (TextPiece(""),)
    return [replace(first, text=first.text.removeprefix(SIGNATURE)), *rest]


def results_by_id(kinds: Mapping[int, CallKind]) -> Mapping[str, int]:
    """The index of the entry that each tool result (E0, E1, ...) is, as `Figure.call` names it, by
    the kind of each entry of the journal.

    They are what an operation's tools gave, in their order: calls of the model, before them what
    was read for it.
    """
    first = min((index for index, kind in kinds.items() if kind is CallKind.MODEL), default=0)
    evidence = [
        index
        for index, kind in kinds.items()
        if kind is CallKind.TOOL or (kind is CallKind.READ and index < first)
    ]
    return {f"E{place}": index for place, index in enumerate(evidence)}


@dataclass(frozen=True)
class _Marks:
    """The marks of a recorded result."""

    op_id: UUID
    figures: Sequence[Figure]
    loose: Sequence[Loose]


_FIGURES, _LOOSE = TypeAdapter(tuple[Figure, ...]), TypeAdapter(tuple[Loose, ...])


def cited_texts(op_id: UUID, result: JsonValue) -> Sequence[tuple[str, Sequence[TextPiece]]]:
    """The texts of a recorded result that have figures or loose numbers, by their fields."""
    if not isinstance(result, dict):
        return []
    try:
        marks = _Marks(
            op_id,
            _FIGURES.validate_python(result.get("figures", ())),
            _LOOSE.validate_python(result.get("loose", ())),
        )
    except ValidationError:
        # Cut to fit into the answer, or a newer desk's: the record itself is shown beside it.
        return []
    every: list[Figure | Loose] = [*marks.figures, *marks.loose]
    fields = dict.fromkeys(mark.field for mark in every)
    texts = {field: _text_at(result, field.split(".")) for field in fields}
    return [(field, pieces(marks, field, text)) for field, text in texts.items() if text]


def _text_at(value: JsonValue, path: Sequence[str]) -> str:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return ""
    return value if isinstance(value, str) else ""
