"""Probes: does a model recognise who and when a masked input is?"""

from datetime import date

from pydantic import Field

from contracts.cycle import CycleRequest
from contracts.message import Command, Contract
from contracts.sentiment import CANDIDATES_MAX, SignalDigest
from contracts.types import ShortText, Ticker, Value


class GuessDraft(Value):
    """A model's best guess of the company behind a code, and of the present date; empty where it
    has none."""

    code: ShortText
    ticker: ShortText = ""
    name: ShortText = ""
    industry: ShortText = ""
    on: ShortText = ""


class ProbeDraft(Value):
    """A model's guesses, one for each code of its task."""

    guesses: tuple[GuessDraft, ...] = Field(default=(), max_length=CANDIDATES_MAX)


class Guess(Value):
    """A model's guess of `ticker`, whose name and date it was not told. `guessed` is the ticker of
    the study's that it means, where it means one, else its own words; `days_off` how far its date
    is away, None without one. `industry_right` is None where nobody knows the ticker's."""

    ticker: Ticker
    guessed: ShortText = ""
    name: ShortText = ""
    industry: ShortText = ""
    on: date | None = None
    days_off: int | None = None
    industry_right: bool | None = None

    @property
    def right(self) -> bool:
        """Whether it was identified."""
        return self.guessed == self.ticker


class MaskProbe(Contract):
    """A model's guesses about the masked input of a date; one it said nothing of has no words."""

    llm: ShortText
    guesses: tuple[Guess, ...] = Field(default=(), max_length=CANDIDATES_MAX)


class ProbeInputs(Command):
    """Ask who and when the masked input of a study's date is."""

    request: CycleRequest
    signal_digest: SignalDigest
