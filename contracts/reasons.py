"""Reasons: why a judgement was made, by the names of facts, and the figures that code wrote for it.

A model names facts and says in a few words what it makes of them; code looks the facts up, relates
them and writes the numbers (docs/grounding.md).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field

from contracts.message import Contract
from contracts.types import ShortText, Text, Value

REASONS_MAX = 6
"""Reasons that count for one judgement; a model that gives more is heard on the first ones."""
FINDING_REASONS_MAX = 12
"""For a finding, which speaks of prices, figures, news and reports alike."""
WORDS_CHARS_MAX = 140
NAME_CHARS_MAX = 100
FIGURES_MAX = 600
LOOSE_MAX = 200
CORRECTED_MAX = 60
"""Corrections told of one answer."""


class Speaks(StrEnum):
    """Which way a reason speaks: for what is proposed (a rise, a buy, a sale), or against it."""

    FOR = "for"
    AGAINST = "against"


def _cut_words(value: Any) -> Any:
    return value.replace("\x00", "")[:WORDS_CHARS_MAX] if isinstance(value, str) else value


def _cut_name(value: Any) -> Any:
    return value[:NAME_CHARS_MAX] if isinstance(value, str) else value


def _first(most: int) -> BeforeValidator:
    def cut(value: Any) -> Any:
        several = isinstance(value, Sequence) and not isinstance(value, str)
        return list(value)[:most] if several else value

    return BeforeValidator(cut)


Words = Annotated[str, BeforeValidator(_cut_words), Field(max_length=WORDS_CHARS_MAX)]
"""A few words of a model's own. What is longer is cut: it is no reason to ask again."""
FactName = Annotated[str, Field(max_length=NAME_CHARS_MAX)]
"""The name of a fact, such as `AAPL.close`, or of no fact: empty."""
NameDraft = Annotated[FactName, BeforeValidator(_cut_name)]
"""The same as a model gives it: what is longer is no name, and need not spoil the answer."""


class ReasonDraft(Value):
    """One reason of a model: the name of a fact, of a second one to hold it against where that says
    more, which way they speak, and a few words why.
    """

    fact: NameDraft
    beside: NameDraft = ""
    speaks: Speaks
    why: Words = ""


class Reason(ReasonDraft):
    """A reason that cites facts by name; `about` is the ticker of the first."""

    about: ShortText


Reasons = Annotated[tuple[ReasonDraft, ...], Field(max_length=REASONS_MAX), _first(REASONS_MAX)]
"""The reasons of one judgement, the weightiest first."""
FindingReasons = Annotated[
    tuple[ReasonDraft, ...], Field(max_length=FINDING_REASONS_MAX), _first(FINDING_REASONS_MAX)
]
"""Those of a finding."""


class Figure(Value):
    """A number in a text, and its source.

    `field` is the text's place in its contract (`tickers.0.summary`), `start` the figure's place in
    the text, `text` how it is written. `value` is its number (None for a quotation or a day) in
    `unit`; `facts` are the names of the facts that it was written from, which `source` had at
    `known`. `call` is the id of the tool result (E0, E1, ...), empty for what the task itself held.
    `op_id` is the operation that has it, where that is another one than the contract's own.
    """

    field: ShortText
    start: int = Field(ge=0)
    text: ShortText
    value: float | None = None
    unit: ShortText = ""
    facts: tuple[FactName, ...] = Field(min_length=1, max_length=2)
    source: ShortText = ""
    known: ShortText = ""
    call: ShortText = ""
    op_id: UUID | None = None


class Loose(Value):
    """A number in a model's own words that none of its reason's facts has: not from evidence."""

    field: ShortText
    start: int = Field(ge=0)
    text: ShortText


class Reasoned(Contract):
    """A contract whose texts code composed from a model's reasons.

    `figures` are those that code wrote into the texts, each with its facts; `loose` are numbers of
    the model's own words that no fact has. `corrected` says in a sentence each what code left out
    of the answer or set to its bound: what could only be trusted less needs no second answer.
    """

    figures: tuple[Figure, ...] = Field(default=(), max_length=FIGURES_MAX)
    loose: tuple[Loose, ...] = Field(default=(), max_length=LOOSE_MAX)
    corrected: tuple[Text, ...] = Field(default=(), max_length=CORRECTED_MAX)
