"""Price files that were read, shared by all versions that have the same content."""

import threading
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import overload

import polars as pl

from libs.market.replay.formats import PriceFormat

BARS_BYTES_MAX = 256_000_000
"""Of bars that are kept in memory: ten years of about 1,300 tickers."""
OUTLINES_MAX = 20_000
"""Of files whose sessions are kept, which take a twentieth of their bars."""

Key = tuple[str, ...]
"""A content and all else that its reading depends on."""


class Days(Sequence[date]):
    """Ascending dates, four bytes each."""

    __slots__ = ("_ordinals",)

    def __init__(self, days: Iterable[date]) -> None:
        self._ordinals = array("i", (day.toordinal() for day in days))

    def __len__(self) -> int:
        return len(self._ordinals)

    @overload
    def __getitem__(self, at: int) -> date: ...
    @overload
    def __getitem__(self, at: slice) -> "Days": ...
    def __getitem__(self, at: int | slice) -> "date | Days":
        if isinstance(at, slice):
            return Days(map(date.fromordinal, self._ordinals[at]))
        return date.fromordinal(self._ordinals[at])


@dataclass(frozen=True, slots=True)
class Outline:
    """Of the prices of one ticker: the sessions that there are bars of, the splits, and the form
    of the file."""

    dates: Sequence[date]
    splits: Sequence[tuple[date, float]]
    form: PriceFormat


@dataclass(frozen=True, slots=True)
class Parsed:
    """The bars of one ticker with their growth, and their outline."""

    bars: pl.DataFrame
    outline: Outline


class ParsedFiles:
    """The prices that were read last, within BARS_BYTES_MAX; of many threads that ask for the same
    file one reads it, and nobody waits for another file."""

    def __init__(self) -> None:
        self._bars: dict[Key, pl.DataFrame] = {}
        self._bytes = 0
        self._outlines: dict[Key, Outline] = {}
        self._lock = threading.Lock()
        self._reading: dict[Key, threading.Lock] = {}

    def outline(self, key: Key) -> Outline | None:
        """The outline of what was read under a key; None where it must be read."""
        return self._outlines.get(key)

    def bars(self, key: Key) -> pl.DataFrame | None:
        """The bars that were read under a key; None where they must be read."""
        with self._lock:
            at_hand = self._bars.pop(key, None)
            if at_hand is not None:
                self._bars[key] = at_hand  # the one used last goes last
            return at_hand

    def read(self, key: Key, read: Callable[[], Parsed]) -> pl.DataFrame:
        """The bars that are kept under a key, or those that `read` gives."""
        with self._lock:
            own = self._reading.setdefault(key, threading.Lock())
        with own:
            bars = self.bars(key)
            if bars is not None:
                return bars
            try:
                parsed = read()
            finally:
                with self._lock:
                    self._reading.pop(key, None)
            self.put(key, parsed)
            return parsed.bars

    def put(self, key: Key, parsed: Parsed) -> None:
        """Keep what was read; the bars that were not used for longest go."""
        with self._lock:
            if key not in self._bars:
                self._bars[key] = parsed.bars
                self._bytes += _bytes(parsed.bars)
            while self._bytes > BARS_BYTES_MAX and len(self._bars) > 1:
                self._bytes -= _bytes(self._bars.pop(next(iter(self._bars))))
            self._outlines[key] = parsed.outline
            if len(self._outlines) > OUTLINES_MAX:
                del self._outlines[next(iter(self._outlines))]


def _bytes(bars: pl.DataFrame) -> int:
    return int(bars.estimated_size())
