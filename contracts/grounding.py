"""Grounding: which figures of a model's answer could not be traced to what it was given."""

from enum import StrEnum

from pydantic import Field

from contracts.message import Contract
from contracts.reasons import FIGURES_MAX, LOOSE_MAX, Figure, Loose
from contracts.types import ShortText, Text, Ticker, Value

CORRECTED_MAX = 60
"""Corrections told of one answer."""
MARKS_MAX = 100
"""Marks carried with one answer; `marks_omitted` counts the rest."""


class MarkKind(StrEnum):
    """What was looked for: a figure, or a ticker that a text names."""

    FIGURE = "figure"
    TICKER = "ticker"


class Ungrounded(Value):
    """A figure or ticker of an answer that the evidence does not say.

    `field` is where it stands, `about` the ticker of the finding, view or pick that it is in, and
    `sought` what was looked for in the evidence.
    """

    figure: ShortText
    kind: MarkKind = MarkKind.FIGURE
    field: ShortText
    about: Ticker | None = None
    sought: ShortText = ""


class Grounding(Value):
    """What the check of one answer found. `unread` counts texts that were too much to check."""

    checked: int = Field(ge=0)
    ungrounded: tuple[Ungrounded, ...] = Field(default=(), max_length=MARKS_MAX)
    marks_omitted: int = Field(default=0, ge=0)
    unread: int = Field(default=0, ge=0)

    def marks_on(self, ticker: str) -> tuple[Ungrounded, ...]:
        """The figures that could not be traced in what the answer says of one ticker."""
        return tuple(
            mark
            for mark in self.ungrounded
            if mark.about == ticker and mark.kind is MarkKind.FIGURE
        )


class Checked(Contract):
    """A contract that a model wrote, with the facts that code filled in.

    `corrected` says in a sentence each what code left out of the answer or set to its bound: what
    could only be trusted less needs no second answer. `figures` are those that code wrote into the
    texts, each with its facts; `loose` are numbers of the model's own words that no fact has.
    """

    grounding: Grounding | None = None
    figures: tuple[Figure, ...] = Field(default=(), max_length=FIGURES_MAX)
    loose: tuple[Loose, ...] = Field(default=(), max_length=LOOSE_MAX)
    corrected: tuple[Text, ...] = Field(default=(), max_length=CORRECTED_MAX)
