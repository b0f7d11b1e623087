"""The words and cells for a study's figures. Pure."""

from collections.abc import Callable

from contracts.study import CellKind
from contracts.study_score import Estimate, Measure, NotShown, Shown
from libs.facts import amounts
from libs.report.tones import Tone
from libs.report.view import Cell

MEASURES = {
    Measure.HITS: "right choices",
    Measure.EXCESS: "excess return",
    Measure.BRIER: "Brier loss",
}
P_LEAST = 0.001
Written = Callable[[float], str]


def arm(name: str, kind: CellKind = "decision") -> Cell:
    """An arm, which leads to its cells in the report."""
    return Cell(name, link=f"#{kind}-{name}")


def quiet(words: str) -> Cell:
    """Words that stand back."""
    return Cell(words, tone=Tone.QUIET)


def points(value: float) -> str:
    """`+1.20`: a difference of shares in percentage points."""
    return f"{_signed(value * 100, 2):+.2f}"


def share(value: float) -> str:
    """`52.3%`."""
    return f"{value * 100:.1f}%"


def gain(value: float) -> str:
    """`+0.12%`."""
    return amounts.gain_percent(value * 100)


def plain(value: float) -> str:
    """`+0.0123`: a difference of losses."""
    return f"{_signed(value, 4):+.4f}"


def _signed(value: float, places: int) -> float:
    """Rounded; what rounds to zero is no negative one."""
    return round(value, places) + 0.0


WRITTEN = {Measure.HITS: points, Measure.EXCESS: gain, Measure.BRIER: plain}


def probability(p: float) -> str:
    """`0.03`, `< 0.001`."""
    return f"< {P_LEAST}" if p < P_LEAST else f"{p:.3f}"


def not_shown(of: NotShown) -> str:
    """`not shown: 12 dates, needs 72`."""
    return f"not shown: {of.why}"


def resolution(of: Estimate) -> str:
    """q = N / N*: `1.30`, `0.12`; `0` where no number of dates would do."""
    return "0" if of.needed is None else f"{of.resolution:.2f}"


def verdict(of: Shown, *, lower_is_better: bool = False) -> Cell:
    """Whether a difference is more than luck, in words: which of two is ahead, or how many dates
    would show a difference of this size."""
    if isinstance(of, NotShown):
        return quiet(not_shown(of))
    if not of.resolved:
        if of.low == of.high == 0:
            return quiet(f"no difference at {amounts.count(of.dates, 'date')}")
        if of.needed is None:
            return quiet("not resolved: no difference")
        return quiet(f"not resolved: needs {of.needed:,} dates")
    ahead = (of.estimate < 0) == lower_is_better
    narrowly = ", narrowly" if of.resolution < 1 else ""
    return Cell(f"{'first' if ahead else 'second'} is better{narrowly}", tone=Tone.GOOD)


def measured(of: Shown, write: Written, *, tone: bool = False) -> tuple[Cell, Cell]:
    """The figure as `write` writes it, in a `tone` where it is resolved, and its interval. Empty
    where nothing is shown: the row's verdict, or the report's last sentence, says why."""
    if isinstance(of, NotShown):
        return Cell(), Cell()
    coloured = None
    if tone and of.resolved:
        coloured = Tone.GOOD if of.estimate > 0 else Tone.BAD
    return (
        Cell(write(of.estimate), tone=coloured),
        Cell(f"{write(of.low)} to {write(of.high)}"),
    )


def tested(of: Shown) -> tuple[str, str]:
    """Its p and its q; empty where nothing is shown."""
    return ("", "") if isinstance(of, NotShown) else (probability(of.p), resolution(of))
