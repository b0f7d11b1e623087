"""A text in pieces: words, figures with where they are from, and numbers that came from nowhere."""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.grounding import Checked
from contracts.reasons import Figure, Loose


@dataclass(frozen=True)
class Piece:
    """Some of a text: plain words, a `figure`, or a number that is `loose`."""

    text: str
    figure: Figure | None = None
    loose: bool = False

    @property
    def source(self) -> str:
        """Where a figure is from: `AAPL.close, AAPL.sma_50; bokeh-sampledata, 2012-06-29 (E0)`."""
        if self.figure is None:
            return "not from evidence" if self.loose else ""
        names = ", ".join(self.figure.facts)
        call = f" ({self.figure.call})" if self.figure.call else ""
        return f"{names}; {self.figure.source}, {self.figure.known}{call}"


def pieces(report: Checked, field: str, text: str) -> Sequence[Piece]:
    """The text of one field of a report, in its pieces.

    A mark that does not fit the text is passed over: the words are shown all the same.
    """
    marks: list[Figure | Loose] = [*report.figures, *report.loose]
    own = sorted((each for each in marks if each.field == field), key=lambda each: each.start)
    found: list[Piece] = []
    done = 0
    for each in own:
        end = each.start + len(each.text)
        if each.start < done or text[each.start : end] != each.text:
            continue
        found.append(Piece(text[done : each.start]))
        found.append(
            Piece(each.text, each) if isinstance(each, Figure) else Piece(each.text, loose=True)
        )
        done = end
    return [each for each in (*found, Piece(text[done:])) if each.text]
