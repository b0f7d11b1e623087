"""A model's text on the terminal, its numbers without a source dimmed."""

from rich.text import Text

from libs.facts import amounts
from libs.report.sections import Line, text_of

LOOSE = "dim underline"
"""A number in a model's words that no fact has."""


def cited(line: Line) -> Text:
    """The whole text."""
    return Text.assemble(
        *((amounts.plain(piece.text), LOOSE if piece.loose else "") for piece in line)
    )


def cut(line: Line, chars_max: int) -> Text:
    """The text on one line, with … where it was longer."""
    text = Text(amounts.cut(text_of(line), chars_max))
    before = ""
    for piece in line:
        before += piece.text
        if piece.loose:
            end, size = len(_one_line(before)), len(_one_line(piece.text))
            text.stylize(LOOSE, end - size, end)
    return text


def _one_line(text: str) -> str:
    return amounts.cut(text, len(text) + 1)
