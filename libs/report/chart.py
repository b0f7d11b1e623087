"""Small charts as HTML: shapes in an SVG that fits any width, words beside it in plain HTML.

An SVG that is stretched would stretch its text and its marks too. So lines keep their width
(`non-scaling-stroke`), a mark is a line without length and with round ends, and every label stands
outside, placed in percent. Colours are classes; the page's style says what they are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

WIDE, HIGH = 1000, 300
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
class Line:
    """Values at equal distances, in a colour; `filled` down to the chart's floor or up to 0."""

    values: Sequence[float]
    colour: str
    filled: bool = False


@dataclass(frozen=True)
class Trade:
    """From a place and value to another, in a colour, with what is said of it."""

    start: tuple[int, float]
    end: tuple[int, float]
    colour: str
    said: str


@dataclass(frozen=True)
class Chart:
    """Lines over the same `places`, ticks of the horizontal axis as (place, label), what the strips
    say by place, and how values are written.
    """

    lines: Sequence[Line]
    said: Callable[[int], str]
    shown: Callable[[float], str]
    ticks: Sequence[tuple[int, str]] = ()
    trades: Sequence[Trade] = ()
    label: str = ""
    tall: bool = False
    places: int = field(default=0)

    def html(self) -> str:
        """The chart as a block."""
        places = self.places or max(len(line.values) for line in self.lines)
        scale = _Scale.of([value for line in self.lines for value in line.values], places)
        shapes = [
            *(f'<path class="grid" d="M0 {scale.y(at):.1f}H{WIDE}"/>' for at in scale.ticks()),
            *(_line(line, scale) for line in self.lines),
            *(_trade(trade, scale) for trade in self.trades),
            *_bands(places, scale, self.said),
        ]
        svg = (
            f'<svg viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none" role="img" '
            f'aria-label="{escape(self.label)}">{"".join(shapes)}</svg>'
        )
        values = "".join(
            f'<span style="top:{scale.y(at) / HIGH:.2%}">{escape(self.shown(at))}</span>'
            for at in scale.ticks()
        )
        names = "".join(
            f'<span style="left:{scale.x(place) / WIDE:.2%}">{escape(name)}</span>'
            for place, name in self.ticks
        )
        size = "plot tall" if self.tall else "plot"
        return (
            f'<div class="{size}"><div class="values">{values}</div>'
            f'<div class="drawing">{svg}</div><div class="names">{names}</div></div>'
        )


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
        return WIDE * place / max(self.places - 1, 1)

    def y(self, value: float) -> float:
        return HIGH * (1 - (value - self.low) / (self.high - self.low))

    def ticks(self) -> Sequence[float]:
        """Round values inside the range, about `TICKS` of them."""
        rough = (self.high - self.low) / TICKS
        ten = 10.0 ** math.floor(math.log10(rough))
        step = next(ten * each for each in (1, 2, 2.5, 5, 10) if ten * each >= rough)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]


def thinned(values: Sequence[float], pick: Pick) -> Sequence[tuple[float, float]]:
    """(place, value), at most `POINTS_MAX`; `pick` chooses which one stands for its neighbours."""
    step = max(math.ceil(len(values) / POINTS_MAX), 1)
    found = [
        (min(at + step, len(values)) - 1.0, pick(values[at : at + step]))
        for at in range(0, len(values), step)
    ]
    return [(0.0, values[0]), *found] if step > 1 else found


def _line(line: Line, scale: _Scale) -> str:
    points = thinned(line.values, min if line.filled else lambda group: group[-1])
    path = "L".join(f"{scale.x(place):.1f} {scale.y(value):.1f}" for place, value in points)
    drawn = f'<path class="line {line.colour}" d="M{path}"/>'
    if not line.filled:
        return drawn
    top = scale.y(min(max(0.0, scale.low), scale.high))
    end = scale.x(points[-1][0])
    return f'<path class="fill {line.colour}" d="M0 {top:.1f}L{path}L{end:.1f} {top:.1f}Z"/>{drawn}'


def _trade(trade: Trade, scale: _Scale) -> str:
    (first, paid), (last, got) = trade.start, trade.end
    begin = f"{scale.x(first):.1f} {scale.y(paid):.1f}"
    end = f"{scale.x(last):.1f} {scale.y(got):.1f}"
    return (
        f'<g class="trade {trade.colour}"><title>{escape(trade.said)}</title>'
        f'<path class="way" d="M{begin}L{end}"/><path class="mark" d="M{begin}h0"/>'
        f'<path class="mark out" d="M{end}h0"/></g>'
    )


def _bands(places: int, scale: _Scale, said: Callable[[int], str]) -> Sequence[str]:
    count = min(places, BANDS_MAX)
    wide = WIDE / count
    found = []
    for number in range(count):
        place = round(number * (places - 1) / max(count - 1, 1))
        left = min(max(scale.x(place) - wide / 2, 0), WIDE - wide)
        found.append(
            f'<rect class="band" x="{left:.1f}" y="0" width="{wide:.1f}" height="{HIGH}">'
            f"<title>{escape(said(place))}</title></rect>"
        )
    return found
