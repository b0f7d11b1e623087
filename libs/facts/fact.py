"""A fact: one datum that the desk had, under a name that a model can give and code can look up."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import zip_longest
from uuid import UUID

FactValue = Decimal | float | int | date | str

PERCENT = "%"
SCORE = "of 10"
POINTS = "points"
DAYS = "days"
SHARES = "shares"
DAY = "day"
TEXT = "text"
PLAIN = ""
"""Units. Money has its currency's three letters, a rank `of 5`."""


@dataclass(frozen=True, slots=True)
class Key:
    """The identity of a fact: of whom (a ticker, `account`, `market`), which quantity, of which day
    where that is not as_of's close, and which of several (a headline's mark).
    """

    entity: str
    quantity: str
    on: date | None = None
    mark: str = ""

    @property
    def name(self) -> str:
        """As models see it: `AAPL.close`, `AAPL.close@2012-06-01`, `AAPL.headline@2012-06-28.ghij`.

        It is looked up, never taken apart: tickers may have dots in them.
        """
        day = f"@{self.on}" if self.on else ""
        mark = f".{self.mark}" if self.mark else ""
        return f"{self.entity}.{self.quantity}{day}{mark}"


@dataclass(frozen=True, slots=True)
class Fact:
    """One datum. `label` is what people call the quantity.

    `known` says of when it is (a session or a moment), `source` who had it, `call` in which tool
    result (E0, E1, ...) it stands, if in any, and `op_id` which earlier operation it is from.
    `note` is what a model may read beside it and nobody cites: what a headline goes on to say.
    """

    key: Key
    value: FactValue
    unit: str
    label: str
    source: str = ""
    known: str = ""
    call: str = ""
    note: str = ""
    op_id: UUID | None = None

    @property
    def name(self) -> str:
        """Its key's name."""
        return self.key.name

    @property
    def is_published(self) -> bool:
        """True for a text that somebody published on a day: a headline, a filing."""
        return self.unit == TEXT and self.key.mark != ""

    @property
    def number(self) -> float | None:
        """Its value as a number; None for a text or a day."""
        return float(self.value) if isinstance(self.value, Decimal | float | int) else None


@dataclass(frozen=True)
class FactIndex:
    """All facts of one answer, by name; the first of a name counts. `about` are the entities that
    the task is about, the most important first."""

    by_name: Mapping[str, Fact]
    about: Sequence[str] = ()

    @classmethod
    def of(cls, facts: Iterable[Fact], about: Iterable[str] = ()) -> "FactIndex":
        """These facts, with those that come of comparing entities: their ranks."""
        by_name: dict[str, Fact] = {}
        for fact in facts:
            by_name.setdefault(fact.name, fact)
        for fact in _ranks(by_name.values()):
            by_name.setdefault(fact.name, fact)
        return cls(by_name, tuple(dict.fromkeys(about)))

    def get(self, name: str) -> Fact | None:
        """The fact of this name, or None. Blanks, braces and other letter cases are forgiven."""
        plain = name.strip(" {}\t\n")
        return self.by_name.get(plain) or self._lower.get(plain.lower())

    @property
    def values(self) -> dict[str, float | str]:
        """All by name: numbers as they are, days and texts in words."""
        return {
            name: str(fact.value) if fact.number is None else fact.number
            for name, fact in self.by_name.items()
        }

    @property
    def publishers(self) -> dict[str, str]:
        """The publisher of each headline or filing, by its name."""
        return {name: fact.source for name, fact in self.by_name.items() if fact.is_published}

    @cached_property
    def _lower(self) -> Mapping[str, Fact]:
        return {name.lower(): fact for name, fact in self.by_name.items()}

    def of_entity(self, entity: str) -> Iterator[Fact]:
        """The facts of one entity, in their order."""
        return (fact for fact in self.by_name.values() if fact.key.entity == entity)

    def for_prompt(self, most: int) -> tuple[Fact, ...]:
        """At most so many for a prompt: by turns the first ones of each entity, those that the task
        is about before all others; each entity's together."""
        by_entity: dict[str, list[Fact]] = {name: [] for name in self.about}
        for fact in self.by_name.values():
            by_entity.setdefault(fact.key.entity, []).append(fact)
        own = [by_entity[name] for name in self.about]
        others = [facts for name, facts in by_entity.items() if name not in set(self.about)]
        turns = [*_by_turns(own), *_by_turns(others)]
        names = {fact.name for fact in turns[:most]}
        return tuple(fact for facts in by_entity.values() for fact in facts if fact.name in names)


def _by_turns(columns: Sequence[Sequence[Fact]]) -> Iterator[Fact]:
    for row in zip_longest(*columns):
        yield from (fact for fact in row if fact is not None)


RANKED: Mapping[str, str] = {
    "change_63d_pct": "3 months",
    "change_21d_pct": "1 month",
    "volatility_3m_pct": "volatility",
}
"""Quantities by which tickers are ranked, the highest first, and what the rank is called by."""


def _ranks(facts: Iterable[Fact]) -> Iterator[Fact]:
    ranked: dict[str, list[Fact]] = {quantity: [] for quantity in RANKED}
    for fact in facts:
        if fact.key.quantity in RANKED and fact.key.on is None and fact.number is not None:
            ranked[fact.key.quantity].append(fact)
    for quantity, several in ranked.items():
        if len(several) < 2:
            continue
        ordered = sorted(several, key=lambda fact: -(fact.number or 0.0))
        numbers = [fact.number for fact in ordered]
        for fact in ordered:
            # Equals share a rank: a name makes nobody the better one.
            place = numbers.index(fact.number) + 1
            yield Fact(
                Key(fact.key.entity, f"rank_{quantity.removesuffix('_pct')}"),
                place,
                f"of {len(several)}",
                f"rank by {RANKED[quantity]}",
                fact.source,
                fact.known,
                fact.call,
                op_id=fact.op_id,
            )
