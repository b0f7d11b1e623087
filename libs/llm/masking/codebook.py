"""The codebook of one cycle: codes in the place of tickers and sectors, sessions in that of dates.

Its key is the date's: all arms, samples and studies of one date have the same codes, so that what
one study has asked no other pays again, and no two dates have. Nothing of the key stands in a
request. Pure.
"""

import hmac
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Protocol

from contracts.facts import UNKNOWN_SECTOR

CODES_MAX = 999
"""Entities of one kind that have a code: more than one request can be about."""
SECTORS_MAX = 99
DAYS_MAX = 10_000
"""A day farther from as_of than this has no label: it is left out."""
PRESENT = "T+0"
"""As_of's session."""
WITHHELD = "(withheld)"
"""Stands in a sentence for a date, an amount of money or a name that has no code."""
_DAY = timedelta(days=1)
_CODED = re.compile(
    r"(?<![A-Za-z0-9])(?P<code>[SG]\d{2,3})"
    r"(?P<rest>\.[A-Za-z0-9_]+(?:@T[+-]\d{1,5})?)?(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_TELLING = re.compile(
    # A date, an amount of money, a year, a month or a weekday by name.
    r"\d{4}-\d{2}-\d{2}(?:T[0-9:.+Z-]+)?|[-+]?\d[\d,]*(?:\.\d+)? [A-Z]{3}\b|\b(?:19|20)\d{2}\b"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b"
)


class SessionCalendar(Protocol):
    """An exchange's calendar."""

    def is_session(self, day: date) -> bool:
        """True where the exchange trades on `day`."""
        ...


@dataclass(frozen=True)
class Masking:
    """How the tasks of one command are masked: `as_of` is the present. `asks_who`: the task is to
    tell it all the same."""

    as_of: date
    sessions: SessionCalendar
    asks_who: bool = False


@dataclass
class Dates:
    """Dates as sessions before or after the present."""

    as_of: date
    sessions: SessionCalendar
    _counted: dict[date, int] = field(default_factory=dict, init=False)

    def label(self, day: date) -> str | None:
        """`T-12` for the twelfth session before the present, `T+5` for the fifth after it; a day
        without trading counts as the session that is next on its side. None for one too far."""
        away = (day - self.as_of).days
        if abs(away) > DAYS_MAX:
            return None
        if not away:
            return PRESENT
        return f"T-{self._count(day)}" if away < 0 else f"T+{self._count(day)}"

    def _count(self, day: date) -> int:
        """The sessions between: after the earlier of the two days, up to the later one."""
        if day not in self._counted:
            self._walk(day)
        return self._counted[day]

    def _walk(self, day: date) -> None:
        step = _DAY if day > self.as_of else -_DAY
        count, at = 0, self.as_of
        while at != day:
            # Backwards the later day of each step counts, forwards the day that is reached.
            entered = at if step < timedelta(0) else at + step
            count += self.sessions.is_session(entered)
            at += step
            self._counted[at] = count


@dataclass(frozen=True)
class Codebook:
    """Codes by ticker and by sector, and what each stands for.

    `names` are words that tell who is meant and have no code: companies, publishers.
    """

    masking: Masking
    tickers: Mapping[str, str]
    sectors: Mapping[str, str]
    names: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        masking: Masking,
        tickers: Iterable[str],
        sectors: Iterable[str] = (),
        names: Iterable[str] = (),
    ) -> "Codebook":
        """The codebook of these entities. A code depends on the key and the entity, and on the
        others only where two fall on the same."""
        known = {name for name in tickers if name}
        kinds = {name for name in sectors if name and name != UNKNOWN_SECTOR}
        return cls(
            masking,
            _codes(masking, "S", known, CODES_MAX, known),
            _codes(masking, "G", kinds, SECTORS_MAX, known),
            frozenset(name for name in names if name) - known,
        )

    @cached_property
    def dates(self) -> Dates:
        """Labels of dates."""
        return Dates(self.masking.as_of, self.masking.sessions)

    def ticker(self, name: str) -> str | None:
        """A ticker's code; None for a stranger's."""
        return self.tickers.get(name)

    def sector(self, name: str) -> str | None:
        """A sector's code; what is unknown stays so."""
        return UNKNOWN_SECTOR if name == UNKNOWN_SECTOR else self.sectors.get(name)

    def day(self, value: object) -> str | None:
        """The label of a date or a moment, given as such or in ISO's form; None for neither."""
        if isinstance(value, str):
            try:
                value = date.fromisoformat(value[:10])
            except ValueError:
                return None
        return self.dates.label(value) if isinstance(value, date) else None

    def words(self, text: str) -> str:
        """A sentence of the desk's without what tells who or when: its own names become codes."""
        return _TELLING.sub(self._when, self._names.sub(self._who, text))

    def meant(self, code: str) -> str | None:
        """The ticker that a code stands for, whatever its letters' case; None for no code."""
        return self._meant.get(code.strip().upper())

    def heard(self, text: str, facts: Mapping[str, str]) -> str:
        """A model's text with real names for the codes in it, and nothing for the real names that
        it had on its own. `facts` are those it was shown, by the name that it was shown, in small
        letters."""

        def real(match: re.Match[str]) -> str:
            whole, rest = match.group(0), match.group("rest") or ""
            name = facts.get(whole.lower())
            if name is not None:
                return name
            entity = self._meant.get(match.group("code").upper())
            return whole if entity is None else f"{entity}{rest}"

        return _CODED.sub(real, self._names.sub(WITHHELD, text))

    def _who(self, match: re.Match[str]) -> str:
        name = match.group(0)
        return self.tickers.get(name) or self.sectors.get(name) or WITHHELD

    def _when(self, match: re.Match[str]) -> str:
        return self.day(match.group(0)) or WITHHELD

    @cached_property
    def _meant(self) -> Mapping[str, str]:
        return {
            code: name for codes in (self.tickers, self.sectors) for name, code in codes.items()
        }

    @cached_property
    def _names(self) -> re.Pattern[str]:
        known = sorted({*self.tickers, *self.sectors, *self.names}, key=len, reverse=True)
        if not known:
            return re.compile(r"(?!)")
        names = "|".join(map(re.escape, known))
        # The T of a label is nobody's ticker, though AT&T's is written so.
        return re.compile(rf"(?<![A-Za-z0-9])(?!T[+-]\d)(?:{names})(?![A-Za-z0-9])")


def _codes(
    masking: Masking, letter: str, entities: Set[str], most: int, taken: Set[str]
) -> Mapping[str, str]:
    """Codes for the entities. One that reads like a ticker of the task is given to nobody."""
    digits = len(str(most))
    ordered = sorted((_place(masking, letter, name), name) for name in entities)
    free = {number: f"{letter}{number:0{digits}d}" for number in range(1, most + 1)}
    free = {number: code for number, code in free.items() if code not in taken}
    codes: dict[str, str] = {}
    for place, name in ordered[: len(free)]:
        number = next(at for at in _from(place % most + 1, most) if at in free)
        codes[name] = free.pop(number)
    return codes


def _from(first: int, most: int) -> Iterator[int]:
    yield from range(first, most + 1)
    yield from range(1, first)


def _place(masking: Masking, letter: str, name: str) -> int:
    key = f"study/{masking.as_of.isoformat()}".encode()
    return int.from_bytes(hmac.digest(key, f"{letter}/{name}".encode(), "sha256")[:8], "big")
