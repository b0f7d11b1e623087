"""A line of time on which long waits are folded, with its ticks. Pure.

Work lies on one scale. A wait that is longer than all the work together, such as that for a
person, takes a fixed part of the line: it would squeeze everything else to a point.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from libs.facts import amounts

WIDTH = 1000
"""The whole line."""
FOLD_WIDTH = 100
"""Of a wait that is folded."""
FOLDS_MAX = 5
"""The longest waits; others stay on the scale."""
FOLD_MIN_S = 1.0
"""A wait that is not longer is never folded."""
SECONDS_MIN = 0.001
TICKS_WANTED = 6
TICK_GAP = 70
"""Ticks that are nearer to one another would be written over each other."""
SECONDS_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
STEPS_S = (
    *SECONDS_STEPS,
    *(60.0 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600.0 * hours for hours in (1, 2, 4, 6, 12, 24, 48, 168)),
)

Interval = tuple[datetime, datetime]


@dataclass(frozen=True)
class Bar:
    """From where on the line, how wide."""

    x: float
    width: float


@dataclass(frozen=True)
class AxisPiece:
    """A part of the line: so much time on so much width; `folded` where that is not to scale."""

    start: datetime
    end: datetime
    x: float
    width: float
    folded: bool = False

    @property
    def seconds(self) -> float:
        """How much time it stands for."""
        return (self.end - self.start).total_seconds()

    @property
    def label(self) -> str:
        """The time that is folded."""
        return amounts.duration(self.seconds)

    def at(self, moment: datetime) -> float:
        """Where a moment of this piece is."""
        share = (moment - self.start).total_seconds() / self.seconds if self.seconds else 0.0
        return self.x + self.width * min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class Tick:
    """A moment that is named: since the beginning, or since the wait before it."""

    x: float
    label: str


@dataclass(frozen=True)
class Axis:
    """The line of a cycle. Its pieces follow one another without a gap."""

    pieces: Sequence[AxisPiece]

    @property
    def folds(self) -> Sequence[AxisPiece]:
        """The waits that are folded."""
        return [piece for piece in self.pieces if piece.folded]

    def x(self, moment: datetime) -> float:
        """Where a moment lies; one beyond the ends at the nearer of them."""
        within = next((piece for piece in self.pieces if moment <= piece.end), self.pieces[-1])
        return within.at(moment)

    def bar(self, start: datetime, end: datetime, width_min: float) -> Bar:
        """Where a time lies; at least so wide that it is seen, and never beyond the line."""
        first, last = self.x(start), self.x(end)
        left = min(first, WIDTH - width_min)
        return Bar(round(left, 1), round(min(max(last - left, width_min), WIDTH - left), 1))

    @property
    def ticks(self) -> Sequence[Tick]:
        """Named moments at one step: at the beginning, and where there is room."""
        shown = [piece for piece in self.pieces if not piece.folded]
        total = sum(piece.seconds for piece in shown)
        step = next((step for step in STEPS_S if total / step <= TICKS_WANTED), STEPS_S[-1])
        return [tick for piece in shown for tick in _ticks(piece, step, first=not piece.x)]


def axis_of(start: datetime, end: datetime, work: Iterable[Interval]) -> Axis:
    """The line from start to end, on which `work` was done; the longest waits are folded."""
    end = max(end, start + timedelta(seconds=SECONDS_MIN))
    waits = sorted(_waits(start, end, work), key=_length_s, reverse=True)
    total_s = _length_s((start, end))
    work_s = total_s - sum(map(_length_s, waits))
    long = [wait for wait in waits if _length_s(wait) > max(work_s, FOLD_MIN_S)]
    folded = sorted(long[:FOLDS_MAX]) if work_s > 0 else []
    scale_s = total_s - sum(map(_length_s, folded))
    return Axis(_pieces(start, end, folded, max(scale_s, SECONDS_MIN)))


def _length_s(interval: Interval) -> float:
    return (interval[1] - interval[0]).total_seconds()


def _waits(start: datetime, end: datetime, work: Iterable[Interval]) -> Iterable[Interval]:
    """The times in which nothing was done."""
    done = start
    for began, ended in sorted(work):
        if began > done:
            yield done, min(began, end)
        done = max(done, ended)
    if done < end:
        yield done, end


def _pieces(
    start: datetime, end: datetime, folded: Sequence[Interval], scale_s: float
) -> Sequence[AxisPiece]:
    room = WIDTH - FOLD_WIDTH * len(folded)
    pieces: list[AxisPiece] = []
    x, at = 0.0, start
    for began, ended in (*folded, (end, end)):
        if began > at:
            width = room * (began - at).total_seconds() / scale_s
            pieces.append(AxisPiece(at, began, x, width))
            x += width
        if ended > began:
            pieces.append(AxisPiece(began, ended, x, FOLD_WIDTH, folded=True))
            x += FOLD_WIDTH
        at = ended
    return pieces


def _ticks(piece: AxisPiece, step_s: float, *, first: bool) -> Iterable[Tick]:
    """After a wait the time is counted anew: a moment hours later is no number to read."""
    sign = "" if first else "+"
    per_s = piece.width / piece.seconds if piece.seconds else 0.0
    every = max(1, -int(-TICK_GAP // (per_s * step_s))) if per_s else 0
    number = 0
    while every:
        x = piece.x + number * step_s * per_s
        if number and x > piece.x + piece.width - FOLD_WIDTH:
            return
        yield Tick(round(x, 1), f"{sign}{_label(number * step_s)}")
        number += every


def _label(seconds: float) -> str:
    if seconds < 1:
        return f"{round(seconds * 1000)} ms" if seconds else "0"
    if seconds < amounts.MINUTE_S:
        return f"{seconds:.2f}".rstrip("0").rstrip(".") + " s"
    if seconds < amounts.HOUR_S:
        return f"{seconds / 60:.1f}".removesuffix(".0") + " min"
    return f"{seconds / amounts.HOUR_S:.1f}".removesuffix(".0") + " h"
