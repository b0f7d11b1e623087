"""Facts as a masked arm sees them: which quantities are shown, and on which scale. Pure.

What stands in no table is not shown: a new quantity is hidden until somebody has thought about it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from libs.facts.fact import TEXT, Fact, Key
from libs.facts.market import INDICATORS
from libs.llm.masking.codebook import Codebook
from libs.llm.masking.measures import Priced, Scales, exact, part_of, percentile, significant

CANDIDATE_SOURCES = ("screener", "news", "earnings")
"""Sources of candidates that the desk comes with: the name of another could tell something."""
KEPT = frozenset(
    {
        *(quantity for quantity, unit, _ in INDICATORS.values() if unit != "money"),
        "change_1d_pct",
        "change_5d_pct",
        "below_high_pct",
        "rank_change_63d",
        "rank_change_21d",
        "rank_volatility_3m",
        "cash_pct",
        "positions",
        "held_pct",
        "gain_held_pct",
        "sessions_since_sold",
        "sessions_to_report",
        "room_pct",
        "technical_score",
        "fundamental_score",
        "risk_score",
        "measured_risk",
        "mentions",
        "sentiment",
        "sentiment_confidence",
        "quant_signal",
        "quant_confidence",
        "allocation_pct",
        "pick_confidence",
        *(f"{source}_score" for source in CANDIDATE_SOURCES),
    }
)
"""Scores, shares, returns, counts and verdicts: the same whoever they are of."""
PRICES = frozenset(
    {
        *(quantity for quantity, unit, _ in INDICATORS.values() if unit == "money"),
        "recent_high",
        "recent_low",
        "cost",
        "stop",
    }
)
"""Money a share, shown on the ticker's own scale."""
EARNINGS = frozenset({"eps_ttm", "eps_fiscal_year", "eps_estimate", "eps_actual"})
"""Likewise, to two digits: an earnings yield."""
RATIOS = frozenset(
    {
        "pe_ratio",
        "profit_margin_pct",
        "operating_margin_pct",
        "debt_to_equity",
        "dividend_yield_pct",
        "profit_growth_pct",
        "revenue_growth_pct",
    }
)
"""Fundamentals, to two digits."""
SIZES = frozenset({"market_cap", "revenue_ttm"})
"""Shown as percentiles of those that are shown together."""
FLAGS = frozenset({"not_to_buy", "halt", "being_sold", "being_bought"})
"""Shown to be so, without the reason or the number of shares."""
DAYS = frozenset(
    {"entered_on", "review_by", "review_due", "sold_on", "next_report", "report", "announced"}
)
"""Days, shown as sessions."""
YES = "yes"
INDEX = "% of close"
EQUITY_UNIT = "% of equity"
PERCENTILE = "percentile"
TIMES = "times usual"


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
            entity = self._entity(fact.key.entity)
            seen = None if entity is None else self._seen(fact, scales)
            if entity is None or seen is None:
                continue
            masked = replace(
                seen,
                key=Key(entity, fact.key.quantity + self._on(fact)),
                source="",
                known="",
                note="",
            )
            if masked.name not in names:
                names.add(masked.name)
                yield Shown(masked, fact.name)

    def _entity(self, entity: str) -> str | None:
        return entity if entity in ("account", "market") else self.codebook.ticker(entity)

    def _on(self, fact: Fact) -> str:
        label = None if fact.key.on is None else self.codebook.day(fact.key.on)
        return f"@{label}" if label else ""

    def _seen(self, fact: Fact, scales: Scales) -> Fact | None:
        """The fact's value as it is shown; None where it is not."""
        if fact.is_published or (
            fact.key.on is not None and self.codebook.day(fact.key.on) is None
        ):
            return None
        quantity, ticker = fact.key.quantity, fact.key.entity
        if quantity in KEPT:
            return fact
        if quantity in FLAGS:
            return replace(fact, value=YES, unit=TEXT)
        show = _WAYS.get(quantity)
        value = None if show is None else show(self, fact, scales)
        if value is None:
            return None
        return replace(value, key=Key(ticker, quantity, fact.key.on, fact.key.mark))

    def price(self, fact: Fact, scales: Scales) -> Fact | None:
        """Money a share on its ticker's scale."""
        value = scales.price(fact.key.entity, fact.value, fact.unit)
        return None if value is None else replace(fact, value=value, unit=INDEX)

    def earnings(self, fact: Fact, scales: Scales) -> Fact | None:
        """Earnings a share likewise, to two digits."""
        value = scales.price(fact.key.entity, fact.value, fact.unit)
        return None if value is None else replace(fact, value=significant(value), unit=INDEX)

    def ratio(self, fact: Fact, _: Scales) -> Fact | None:
        """A fundamental to two digits."""
        value = exact(fact.value)
        return None if value is None else replace(fact, value=significant(value))

    def size(self, fact: Fact, _: Scales) -> Fact | None:
        """The percentile among all of the task that have one in the same currency."""
        alike = (
            exact(other.value)
            for other in self.all_facts
            if other.key.quantity == fact.key.quantity and other.unit == fact.unit
        )
        value, others = exact(fact.value), [other for other in alike if other is not None]
        place = None if value is None else percentile(value, others)
        return None if place is None else replace(fact, value=place, unit=PERCENTILE)

    def money(self, fact: Fact, scales: Scales) -> Fact | None:
        """Money of the account in percent of its equity."""
        value = scales.money(fact.value, fact.unit)
        return None if value is None else replace(fact, value=value, unit=EQUITY_UNIT)

    def volume(self, fact: Fact, _: Scales) -> Fact | None:
        """A day's volume as a multiple of the usual one."""
        usual = self.volumes.get(fact.key.entity)
        times = part_of(fact.value, usual)
        if times is None:
            return None
        return replace(fact, value=round(times / 100, 2), unit=TIMES)

    def day(self, fact: Fact, _: Scales) -> Fact | None:
        """A day as a session."""
        label = self.codebook.day(fact.value)
        return None if label is None else replace(fact, value=label, unit=TEXT)

    def sector(self, fact: Fact, _: Scales) -> Fact | None:
        """A sector's code."""
        code = self.codebook.sector(str(fact.value))
        return None if code is None else replace(fact, value=code, unit=TEXT)

    def sessions_ahead(self, fact: Fact, _: Scales) -> Fact | None:
        """Calendar days ahead as the session that they end at: days would tell the weekday."""
        days = exact(fact.value)
        if days is None:
            return None
        label = self.codebook.day(self.codebook.masking.as_of + timedelta(days=int(days)))
        return None if label is None else replace(fact, value=label, unit=TEXT)


Way = Callable[[FactMask, Fact, Scales], Fact | None]
_WAYS: Mapping[str, Way] = {
    **dict.fromkeys(PRICES, FactMask.price),
    **dict.fromkeys(EARNINGS, FactMask.earnings),
    **dict.fromkeys(RATIOS, FactMask.ratio),
    **dict.fromkeys(SIZES, FactMask.size),
    **dict.fromkeys(("cash", "equity"), FactMask.money),
    **dict.fromkeys(DAYS, FactMask.day),
    "volume": FactMask.volume,
    "sector": FactMask.sector,
    "days_to_report": FactMask.sessions_ahead,
}
