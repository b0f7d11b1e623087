"""Small charts: where the shapes of an SVG that fits any width lie, and the labels beside it.

templates/chart.html draws them. An SVG that is stretched would stretch its text and its marks too.
So lines keep their width (`non-scaling-stroke`), a mark is a line without length and with round
ends, and every label stands outside, placed in percent. Colours are classes; the page's style says
what they are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

WIDTH, HEIGHT = 1000, 300
"""The SVG's own units."""
POINTS_MAX = 1_000
"""Of a line: more are not seen on a screen."""
BANDS_MAX = 120
"""Strips that say what is there, where the pointer rests."""
TICKS = 4
AIR = 0.04
"""Of the range, above and below what is drawn."""

Pick = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class ChartLine:
    """Values at equal distances, in a colour; `filled` down to the chart's floor or up to 0."""

    values: Sequence[float]
    colour: str
    filled: bool = False


@dataclass(frozen=True)
class Trade:
    """From a place and value to another, in a colour, with its title."""

    start: tuple[int, float]
    end: tuple[int, float]
    colour: str
    title: str


@dataclass(frozen=True)
class Path:
    """A line as it is drawn; `area` is the shape below it, empty where it is not filled."""

    colour: str
    path: str
    area: str


@dataclass(frozen=True)
class Way:
    """A trade as it is drawn."""

    start: str
    end: str
    colour: str
    title: str


@dataclass(frozen=True)
class Band:
    """A strip over the chart that shows its title where the pointer rests."""

    x: str
    width: str
    title: str


@dataclass(frozen=True)
class Chart:
    """Lines over the same places, each place's title, how values are written, the labels of the
    horizontal axis as (place, label), and trades.
    """

    lines: Sequence[ChartLine]
    titles: Sequence[str]
    written: Callable[[float], str]
    labels: Sequence[tuple[int, str]] = ()
    drawn_trades: Sequence[Trade] = ()
    label: str = ""
    tall: bool = False
    width: int = WIDTH
    height: int = HEIGHT

    @cached_property
    def _scale(self) -> "_Scale":
        values = [value for line in self.lines for value in line.values]
        return _Scale.of(values, max(len(line.values) for line in self.lines))

    @property
    def grid(self) -> Sequence[str]:
        """The height of each horizontal line."""
        return [f"{self._scale.y(at):.1f}" for at in self._scale.ticks()]

    @property
    def value_ticks(self) -> Sequence[tuple[str, str]]:
        """Round values: how far from the top, and in words."""
        at = self._scale.ticks()
        return [(f"{self._scale.y(v) / HEIGHT:.2%}", self.written(v)) for v in at]

    @property
    def place_ticks(self) -> Sequence[tuple[str, str]]:
        """The labels: how far from the left, and in words."""
        return [(f"{self._scale.x(at) / WIDTH:.2%}", label) for at, label in self.labels]

    @property
    def paths(self) -> Sequence[Path]:
        """The lines."""
        return [_path(line, self._scale) for line in self.lines]

    @property
    def trades(self) -> Sequence[Way]:
        """The trades."""
        point = self._scale.point
        return [Way(point(*t.start), point(*t.end), t.colour, t.title) for t in self.drawn_trades]

    @property
    def bands(self) -> Sequence[Band]:
        """The strips, at most `BANDS_MAX`."""
        count = min(self._scale.places, BANDS_MAX)
        wide = WIDTH / count
        return [
            Band(
                f"{min(max(self._scale.x(place) - wide / 2, 0), WIDTH - wide):.1f}",
                f"{wide:.1f}",
                self.titles[place],
            )
            for place in (
                round(number * (self._scale.places - 1) / max(count - 1, 1))
                for number in range(count)
            )
        ]


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    places: int

    @classmethod
    def of(cls, values: Sequence[float], places: int) -> "_Scale":
        low, high = min(values), max(values)
        air = (high - low) * AIR or abs(high) * AIR or 1.0
        return cls(low - air, high + air, places)

    def x(self, place: float) -> float:
        return WIDTH * place / max(self.places - 1, 1)

    def y(self, value: float) -> float:
        return HEIGHT * (1 - (value - self.low) / (self.high - self.low))

    def point(self, place: float, value: float) -> str:
        return f"{self.x(place):.1f} {self.y(value):.1f}"

    def ticks(self) -> Sequence[float]:
        """Round values inside the range, about `TICKS` of them."""
        rough = (self.high - self.low) / TICKS
        ten = 10.0 ** math.floor(math.log10(rough))
        step = next(ten * factor for factor in (1, 2, 2.5, 5, 10) if ten * factor >= rough)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]


def thinned(values: Sequence[float], pick: Pick) -> Sequence[tuple[float, float]]:
    """(place, value), at most `POINTS_MAX`; `pick` chooses which one stands for its neighbours."""
    step = max(math.ceil(len(values) / POINTS_MAX), 1)
    points = [
        (min(at + step, len(values)) - 1.0, pick(values[at : at + step]))
        for at in range(0, len(values), step)
    ]
    return [(0.0, values[0]), *points] if step > 1 else points


def _path(line: ChartLine, scale: _Scale) -> Path:
    points = thinned(line.values, min if line.filled else lambda group: group[-1])
    way = "L".join(scale.point(place, value) for place, value in points)
    if not line.filled:
        return Path(line.colour, f"M{way}", "")
    top = f"{scale.y(min(max(0.0, scale.low), scale.high)):.1f}"
    end = f"{scale.x(points[-1][0]):.1f}"
    return Path(line.colour, f"M{way}", f"M0 {top}L{way}L{end} {top}Z")
