"""The parts that a study's report is made of; each edge draws them in its own way. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from libs.report.tones import Tone

TEMPLATES = Path(__file__).with_name("templates")
"""Among them `study_parts.html`: the drawings, which the console's pages share."""

STATISTICS = frozenset({"p", "q"})


@dataclass(frozen=True)
class Span:
    """An interval as it is drawn: its ends, the estimate and nothing (0, or what is by chance) as
    parts of a common width."""

    low: float
    middle: float
    high: float
    nothing: float


@dataclass(frozen=True)
class Cell:
    """A cell of a table. `arm` is whose cells of the study the figure is from, its probes where it
    `is_probed`; `on` their date."""

    text: str
    tone: Tone | None = None
    arm: str = ""
    on: date | None = None
    span: Span | None = None
    is_probed: bool = False


@dataclass(frozen=True)
class Column:
    """A column; one that is `wide` is left out where there is little room."""

    title: str
    right: bool = False
    wide: bool = False

    @property
    def head(self) -> str:
        """The title as pages begin it: with a capital, but for the letter of a statistic."""
        first, _, _ = self.title.partition(" ")
        return self.title if first in STATISTICS else self.title[:1].upper() + self.title[1:]


@dataclass(frozen=True)
class Table:
    """Rows under columns; the first cell of a row names it. `title` tells it from others of its
    section."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""

    def draws(self, at: int) -> bool:
        """Whether a column draws intervals."""
        return any(row[at].span is not None for row in self.rows)


@dataclass(frozen=True)
class Curve:
    """A line over the report's points."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class Curves:
    """Lines over the same dates, in percent, with the words that say what they are."""

    label: str
    points: Sequence[date]
    lines: Sequence[Curve]


@dataclass(frozen=True)
class Reliability:
    """How often came true what was stated, of one arm: (stated, happened, low, high), as parts."""

    arm: str
    points: Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True)
class Missing:
    """A part that the report does not show, and why: the last sentence of a report names it."""

    part: str
    why: str


@dataclass(frozen=True)
class Section:
    """A part of the report: what it is about in a sentence, its tables and pictures, and notes."""

    title: str
    about: str
    tables: Sequence[Table] = ()
    curves: Curves | None = None
    reliability: Sequence[Reliability] = ()
    notes: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class StudyReport:
    """A study's report: its name, what was asked in a few lines, the answer in short, sections."""

    name: str
    asked: Sequence[str]
    answer: Sequence[Cell]
    sections: Sequence[Section]
