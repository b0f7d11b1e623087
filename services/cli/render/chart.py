"""A line of numbers as a small chart in the terminal: block characters, or ASCII. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from rich.console import Console, ConsoleOptions
from rich.text import Text

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " .:#"
HEIGHT = 5
COLUMNS_A_POINT_MAX = 3
FOOT = Decimal("0.08")
"""Of the range, below the smallest value: it too is to be seen."""


def levels(encoding: str) -> str:
    """The characters that an output with this encoding can show, from empty to full."""
    try:
        BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


@dataclass(frozen=True)
class TerminalChart:
    """A chart with its highest and lowest value at the left, as `written`, and a caption below."""

    values: Sequence[Decimal]
    written: Callable[[Decimal], str]
    caption: str

    def __rich_console__(self, console: Console, _: ConsoleOptions) -> Iterable[Text]:
        """Its lines, as wide as the console."""
        labels = [self.written(max(self.values)), self.written(min(self.values))]
        margin = max(map(len, labels))
        rows = drawn(self.values, console.width - margin - 4, levels(console.encoding))
        for number, line in enumerate(rows):
            label = labels[0] if number == 0 else labels[1] if number == len(rows) - 1 else ""
            text = Text.assemble((f"{label:>{margin}}  ", "dim"), (line, "cyan"))
            text.no_wrap = True
            yield text
        yield Text(f"{'':>{margin}}  {self.caption}", style="dim")


def drawn(values: Sequence[Decimal], room: int, marks: str = BLOCKS) -> Sequence[str]:
    """The chart's lines from top to bottom, `HEIGHT` of them, at most `room` columns wide.

    Where there are more values than columns, the newest of each column stands for it.
    """
    if not values or room < 1:
        return []
    columns = _columns(values, room)
    low, high = min(columns), max(columns)
    spread = high - low
    floor = low - spread * FOOT if spread else low - 1
    full = len(marks) - 1
    top = high + 1 if not spread else high
    heights = [round((column - floor) / (top - floor) * HEIGHT * full) for column in columns]
    return [
        "".join(marks[min(max(height - row * full, 0), full)] for height in heights).rstrip()
        for row in reversed(range(HEIGHT))
    ]


def sparkline(values: Sequence[Decimal], room: int, marks: str = BLOCKS) -> str:
    """The line in one row, at most `room` columns wide; the lowest value is the lowest mark."""
    if not values or room < 1:
        return ""
    columns = _columns(values, room)
    low, spread = min(columns), max(columns) - min(columns)
    full = len(marks) - 1
    # The emptiest mark is a blank, which would look like nothing at all.
    heights = [
        1 + round((column - low) / spread * (full - 1)) if spread else 1 for column in columns
    ]
    return "".join(marks[height] for height in heights)


def _columns(values: Sequence[Decimal], room: int) -> Sequence[Decimal]:
    if len(values) > room:
        return [values[(number + 1) * len(values) // room - 1] for number in range(room)]
    wide = min(room // len(values), COLUMNS_A_POINT_MAX)
    return [value for value in values for _ in range(wide)]
