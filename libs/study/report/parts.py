"""The parts of a study's report: tables of libs/report/view, and the drawings beside them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from contracts.study_score import CalibrationScore
from libs.report.view import Cell, Column, Table


@dataclass(frozen=True)
class Curve:
    """A line over the report's points."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class ReportCurves:
    """Lines over the same dates, in percent, with the words that say what they are."""

    label: str
    points: Sequence[date]
    lines: Sequence[Curve]


@dataclass(frozen=True)
class Missing:
    """A part that the report does not show, and why: the last sentence of a report names it."""

    part: str
    why: str


@dataclass(frozen=True)
class StudySection:
    """A part of the report: what it is about in a sentence, its tables and pictures, and notes."""

    title: str
    about: str
    tables: Sequence[Table] = ()
    curves: ReportCurves | None = None
    reliability: Sequence[CalibrationScore] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class StudyReport:
    """A study's report: its name, what was asked in a few lines, the answer in short, sections."""

    name: str
    asked: Sequence[str]
    answer: Sequence[Cell]
    sections: Sequence[StudySection]
    kind: str = "study"


def text(*titles: str, spare: int = 0) -> tuple[Column, ...]:
    """Columns of words."""
    return tuple(Column(title, spare=spare) for title in titles)


def numbers(*titles: str, spare: int = 0) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(title, right=True, spare=spare) for title in titles)
