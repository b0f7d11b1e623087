"""The words and cells for a study's figures. Pure."""

from collections.abc import Callable, Iterable, Sequence

from contracts.study_score import Estimate, Measure, NotShown, Shown
from libs.facts import amounts
from libs.report.studies.parts import Cell, Span
from libs.report.tones import Tone

MEASURES = {
    Measure.HITS: "right choices",
    Measure.EXCESS: "excess return",
    Measure.BRIER: "Brier loss",
}
P_LEAST = 0.001
Written = Callable[[float], str]


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


def interval(of: Shown, measure: Measure) -> str:
    """`+0.10% to +0.32%`; empty where nothing is shown."""
    if isinstance(of, NotShown):
        return ""
    write = WRITTEN[measure]
    return f"{write(of.low)} to {write(of.high)}"


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
        return Cell(not_shown(of), Tone.QUIET)
    if not of.resolved:
        if of.low == of.high == 0:
            return Cell(f"no difference at {amounts.count(of.dates, 'date')}", Tone.QUIET)
        if of.needed is None:
            return Cell("not resolved: no difference", Tone.QUIET)
        return Cell(f"not resolved: needs {of.needed:,} dates", Tone.QUIET)
    ahead = (of.estimate < 0) == lower_is_better
    narrowly = ", narrowly" if of.resolution < 1 else ""
    return Cell(f"{'first' if ahead else 'second'} is better{narrowly}", Tone.GOOD)


def spans(shown: Iterable[Shown], nothing: float = 0.0) -> Sequence[Span | None]:
    """The intervals on one scale, which has `nothing` on it."""
    all_of = list(shown)
    drawn = [one for one in all_of if isinstance(one, Estimate)]
    ends = [nothing, *(one.low for one in drawn), *(one.high for one in drawn)]
    low, high = min(ends), max(ends)
    width = high - low or 1.0

    def place(value: float) -> float:
        return (value - low) / width

    return [
        Span(place(one.low), place(one.estimate), place(one.high), place(nothing))
        if isinstance(one, Estimate)
        else None
        for one in all_of
    ]


def estimate(of: Shown, write: Written, arm: str = "", *, tone: bool = False) -> Cell:
    """The figure as `write` writes it, of one `arm`'s cells; in a `tone` where it is resolved.
    Empty where nothing is shown: the row's verdict, or the report's last sentence, says why."""
    if isinstance(of, NotShown):
        return Cell("")
    coloured = None
    if tone and of.resolved:
        coloured = Tone.GOOD if of.estimate > 0 else Tone.BAD
    return Cell(write(of.estimate), coloured, arm)


def share_interval(of: Shown) -> str:
    """`46.2% to 55.1%`; empty where nothing is shown."""
    return "" if isinstance(of, NotShown) else f"{share(of.low)} to {share(of.high)}"


def excess_interval(of: Shown) -> str:
    """The interval of an excess return."""
    return interval(of, Measure.EXCESS)
