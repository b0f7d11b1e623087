"""Facts as a masked arm sees them, each by the unit of its key. Pure.

A new quantity is shown by its unit too. Texts are never shown, only that there is one; of what a
company is as a whole (shares, revenue, its market value) no level is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from libs.facts.fact import DAY, DAYS, SHARES, TEXT, Fact, FactValue, Key
from libs.facts.market import FIGURES
from libs.llm.masking.codebook import Codebook
from libs.llm.masking.measures import Priced, Scales, exact, part_of, percentile, significant
from libs.llm.masking.words import words_of_contracts

CANDIDATE_SOURCES = ("screener", "news", "earnings")
"""Sources of candidates that the desk comes with: the name of another could tell something."""
OF_THE_DESK = ("account", "market")
"""Entities that are no tickers."""
AHEAD = "days_to_report"
YES = "yes"
INDEX = "% of close"
EQUITY_UNIT = "% of equity"
PERCENTILE = "percentile"
TIMES = "times usual"
CURRENCY_LETTERS = 3
EARNINGS = "eps_"
SCORE = "_score"
PERIODS = frozenset({"period", "fiscal"})
"""Words in names of what ends with a fiscal period: that day would tell the season."""


@dataclass(frozen=True)
class Shown:
    """A fact as it is shown, and the name that it has in code."""

    fact: Fact
    name: str


def scales_of(facts: Sequence[Fact]) -> Scales:
    """The scales that these facts give: each ticker's present close, and the equity."""
    prices: dict[str, list[Priced]] = {}
    equity = None
    for fact in facts:
        amount = exact(fact.value)
        if amount is None or fact.key.on is not None:
            continue
        if fact.key.quantity == "close":
            prices.setdefault(fact.key.entity, []).append(Priced(amount, fact.unit))
        elif fact.key.quantity == "equity":
            equity = Priced(amount, fact.unit)
    return Scales(prices, equity)


@dataclass(frozen=True)
class FactMask:
    """Shows facts on the scales that all facts of a task give; `volumes` are usual ones."""

    codebook: Codebook
    all_facts: Sequence[Fact]
    volumes: Mapping[str, float]

    def shown(self, facts: Sequence[Fact]) -> Iterator[Shown]:
        """Those of the facts that may be shown; of two that look alike the first one."""
        scales = scales_of(self.all_facts)
        names: set[str] = set()
        for fact in facts:
            entity, on = fact.key.entity, fact.key.on
            code = entity if entity in OF_THE_DESK else self.codebook.ticker(entity)
            is_of_period = not PERIODS.isdisjoint(fact.key.quantity.split("_"))
            label = "" if on is None or is_of_period else self.codebook.day(on)
            seen = None if code is None or label is None else self._seen(fact, scales)
            if code is None or seen is None:
                continue
            key = Key(code, f"{fact.key.quantity}@{label}" if label else fact.key.quantity)
            value, unit = seen
            masked = replace(fact, key=key, value=value, unit=unit, source="", known="", note="")
            if masked.name not in names:
                names.add(masked.name)
                yield Shown(masked, fact.name)

    def _seen(self, fact: Fact, scales: Scales) -> tuple[FactValue, str] | None:
        """Its value and unit as they are shown; None where it is not."""
        quantity, unit = fact.key.quantity, fact.unit
        if unit == TEXT:
            return self._text(fact)
        if unit in (DAY, DAYS):
            day = fact.value if unit == DAY else self._ahead(fact)
            label = self.codebook.day(day)
            return None if label is None else (label, TEXT)
        if unit == SHARES:
            return self._shares(fact)
        if len(unit) == CURRENCY_LETTERS and unit.isupper():
            return self._money(fact, scales)
        number = exact(fact.value)
        if quantity in FIGURES:
            return None if number is None else (significant(number), unit)
        source = quantity.removesuffix(SCORE) if fact.label.startswith("score of ") else ""
        return None if source and source not in CANDIDATE_SOURCES else (fact.value, unit)

    def _text(self, fact: Fact) -> tuple[FactValue, str] | None:
        """A sector's code, a word of the contracts, or that there is a text."""
        if fact.is_published:
            return None
        if fact.key.quantity == "sector":
            code = self.codebook.sector(str(fact.value))
            return None if code is None else (code, TEXT)
        return (fact.value if fact.value in words_of_contracts() else YES), TEXT

    def _ahead(self, fact: Fact) -> date | None:
        """The day that is so many calendar days ahead: their number would tell the weekday."""
        days = exact(fact.value)
        if days is None or fact.key.quantity != AHEAD:
            return None
        return self.codebook.masking.as_of + timedelta(days=int(days))

    def _shares(self, fact: Fact) -> tuple[FactValue, str] | None:
        """A day's volume as a multiple of the usual one; of the desk's own that there are some."""
        if fact.key.quantity in FIGURES:
            return None
        if fact.key.quantity != "volume":
            return YES, TEXT
        times = part_of(fact.value, self.volumes.get(fact.key.entity))
        return None if times is None else (round(times / 100, 2), TIMES)

    def _money(self, fact: Fact, scales: Scales) -> tuple[FactValue, str] | None:
        """Money of the account in percent of its equity, of a company as a whole as a percentile
        among the task's, and else a share on its ticker's scale; earnings to two digits."""
        quantity, ticker = fact.key.quantity, fact.key.entity
        if ticker in OF_THE_DESK:
            value = scales.money(fact.value, fact.unit)
            return None if value is None else (value, EQUITY_UNIT)
        value = scales.price(ticker, fact.value, fact.unit)
        if quantity.startswith(EARNINGS):
            return None if value is None else (significant(value), INDEX)
        if quantity not in FIGURES:
            return None if value is None else (value, INDEX)
        alike = (
            exact(other.value)
            for other in self.all_facts
            if other.key.quantity == quantity and other.unit == fact.unit
        )
        number, others = exact(fact.value), [other for other in alike if other is not None]
        place = None if number is None else percentile(number, others)
        return None if place is None else (place, PERCENTILE)
