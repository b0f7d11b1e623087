"""The exit rules as one table: what each looks at, and when it fires. Pure.

docs/exit-signals.md says the same in words. All prices are those known at as_of's close.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from contracts.exit_signal import ExitSignal
from libs.quant.exits.terms import ExitTerms, SellTerms, TermsPart

MOMENTUM, REGIME = "momentum", "regime"
STOP_LOSS, TAKE_PROFIT = "stop_loss", "take_profit"
HOLD_PERIOD, TRAILING_STOP = "hold_period", "trailing_stop"

MONTHS_BEFORE = 3
"""Months that the last complete one is held against; also those of the regime."""
MONTHS_SPREAD = 12
"""Months before the last one that its gap is measured against, as far as they are known: the
deviation of three numbers is hardly known itself, that of a year is to about a fifth."""
FLAT_SEVERITY = 0.5
"""Of a gap that no spread measures."""
REGIME_SCALE = 10.0
WIDE_GAP = 0.05
"""Five percentage points."""
WIDE_GAP_SELL_PCT, SELL_PCT = Decimal(75), Decimal(50)
RETURN_MAX = 1_000.0
"""A month that made a thousandfold is damaged data, and counts as not known."""
NAMED_MAX = 5
"""Members of the basket that a rule's words name."""
_BLUR = 1e-12
"""The last bits of floats that should be equal; a smaller difference is none."""


@dataclass(frozen=True, slots=True)
class ExitFacts:
    """All that the rules may look at for one position, as known at as_of's close.

    `months` are the returns of the last MONTHS_SPREAD + 1 complete months, oldest first, None where
    one is not known, and `month` names the last of them; `basket` the months of each of its
    members. `price` and `average_cost` are in
    the account's currency. `peak` is the highest close since `opened_on` and `close` the last, both
    adjusted alike; `sessions_held` counts those after `opened_on`. `closes_since` are those after
    the first exit that acted on the position, adjusted likewise.
    """

    months: Sequence[float | None]
    basket: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    price: float = 0.0
    average_cost: float = 0.0
    opened_on: date | None = None
    sessions_held: int | None = None
    close: float | None = None
    peak: float | None = None
    month: str = ""
    closes_since: Mapping[date, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fired:
    """The rule says sell: how urgently (0 to 1), how much of the position, and why."""

    severity: float
    sell_pct: Decimal
    detail: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class NoSignal:
    """The rule was evaluated and sees nothing to do."""

    detail: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """The rule could not be evaluated, which is not the same as quiet."""

    reason: str


Finding = Fired | NoSignal | NotEvaluated


@dataclass(frozen=True, slots=True)
class ExitRule:
    """One row: its name, whether it decides (primary) or only warns, and how it judges.

    `monthly`: it looks at complete months, so what it says stays the same until the next is over.
    `once`: it acts once on a position. `limit` is its threshold in the words of its terms.
    """

    name: str
    is_primary: bool
    judge: Callable[[ExitFacts], Finding]
    monthly: bool = False
    once: bool = False
    limit: str = ""


def rules_of(terms: ExitTerms) -> tuple[ExitRule, ...]:
    """The rules of one position: momentum and regime always, the others where they are named."""
    further: Sequence[tuple[str, SellTerms | None, Callable[[ExitFacts], Finding]]] = (
        (STOP_LOSS, terms.stop_loss, lambda facts: _stop_loss(facts, terms)),
        (TAKE_PROFIT, terms.take_profit, lambda facts: _take_profit(facts, terms)),
        (HOLD_PERIOD, terms.hold_period, lambda facts: _hold_period(facts, terms)),
        (TRAILING_STOP, terms.trailing_stop, lambda facts: _trailing_stop(facts, terms)),
    )
    return (
        ExitRule(
            MOMENTUM,
            True,
            lambda facts: _momentum(facts, terms),
            monthly=True,
            limit=_limit(terms.momentum),
        ),
        ExitRule(REGIME, False, _regime, monthly=True),
        *(
            ExitRule(name, own.primary, judge, limit=_limit(own))
            for name, own, judge in further
            if own is not None
        ),
    )


def _limit(terms: TermsPart) -> str:
    """The thresholds of a rule, as its terms name them: `pct 8`."""
    stated = {name: value for name, value in terms if name not in SellTerms.model_fields}
    return ", ".join(f"{name} {value:g}" for name, value in stated.items())


def exit_signal(rule: ExitRule, finding: Finding) -> ExitSignal:
    """The finding of a rule, as the rest of the desk reads it."""
    if isinstance(finding, NotEvaluated):
        return ExitSignal(
            rule=rule.name,
            primary=rule.is_primary,
            failed=True,
            detail=finding.reason,
            limit=rule.limit,
        )
    return ExitSignal(
        rule=rule.name,
        primary=rule.is_primary,
        triggered=isinstance(finding, Fired),
        severity=finding.severity if isinstance(finding, Fired) else 0.0,
        detail=finding.detail,
        limit=rule.limit,
    )


def _momentum(facts: ExitFacts, terms: ExitTerms) -> Finding:
    """The last complete month's return against the mean of the three before it.

    A gap below the least one is noise: acting on it costs more than it can tell.
    """
    *before, last = _known(facts.months[-MONTHS_BEFORE - 1 :]) or (None,)
    if last is None or len(before) < MONTHS_BEFORE:
        return NotEvaluated(
            f"{len(_returns(facts.months))} of {MONTHS_BEFORE + 1} complete months are known"
        )
    mean = statistics.fmean(before)
    spread = statistics.stdev(_returns(facts.months[-MONTHS_SPREAD - 1 : -1]))
    gap, least = last - mean, terms.momentum.least_gap_pct / 100
    values = {
        "last_month": last,
        "mean_before": mean,
        "gap": gap,
        "least_gap": least,
        "spread_before": spread,
    }
    reason = f"last month {_pct(last)}, the {MONTHS_BEFORE} before it {_pct(mean)} on average"
    if -gap < max(least - _BLUR, _BLUR):
        return NoSignal(reason, values)
    severity = FLAT_SEVERITY if spread < _BLUR else min(-gap / spread, 1.0)
    sell_pct = WIDE_GAP_SELL_PCT if -gap > WIDE_GAP + _BLUR else SELL_PCT
    return Fired(severity, sell_pct, reason, values)


def _regime(facts: ExitFacts) -> Finding:
    """The basket's return of three months: equal weights, rebalanced each month, compounded."""
    members, without = [], []
    for ticker, known in facts.basket.items():
        row = _known(known[-MONTHS_BEFORE:])
        if row is not None and len(row) == MONTHS_BEFORE:
            members.append(row)
        else:
            without.append(ticker)
    left_out = ", ".join(without[:NAMED_MAX]) + (", ..." if without[NAMED_MAX:] else "")
    if not members:
        of = f"{len(without)} in all{': ' if without else ''}{left_out}"
        return NotEvaluated(f"no member of the basket ({of}) has {MONTHS_BEFORE} complete months")
    months = [statistics.fmean(returns) for returns in zip(*members, strict=True)]
    compounded = math.prod(1 + month for month in months) - 1
    reason = f"the basket of {len(members)} returned {_pct(compounded)} in {MONTHS_BEFORE} months"
    if without:
        reason += f"; {len(without)} without all of these months left out: {left_out}"
    values = {"basket_return": compounded, "members": float(len(members))}
    if compounded >= 0:
        return NoSignal(reason, values)
    return Fired(min(REGIME_SCALE * -compounded, 1.0), SELL_PCT, reason, values)


def _stop_loss(facts: ExitFacts, terms: ExitTerms) -> Finding:
    own = terms.stop_loss
    gain = _gain(facts)
    if own is None or gain is None:
        return NotEvaluated("what the position cost is not known")
    return _beyond(-gain, own.pct / 100, own, f"{_pct(gain)} since it was bought", "loss")


def _take_profit(facts: ExitFacts, terms: ExitTerms) -> Finding:
    own = terms.take_profit
    gain = _gain(facts)
    if own is None or gain is None:
        return NotEvaluated("what the position cost is not known")
    return _beyond(gain, own.pct / 100, own, f"{_pct(gain)} since it was bought", "gain")


def _hold_period(facts: ExitFacts, terms: ExitTerms) -> Finding:
    own, held = terms.hold_period, facts.sessions_held
    if own is None or held is None:
        return NotEvaluated("when the position was opened is not known")
    reason = f"held for {held} sessions, limit {own.sessions}"
    return _beyond(float(held), float(own.sessions), own, reason, "sessions_held")


def _trailing_stop(facts: ExitFacts, terms: ExitTerms) -> Finding:
    own, peak, close = terms.trailing_stop, facts.peak, facts.close
    if own is None or peak is None or close is None or peak <= 0:
        return NotEvaluated("the highest close since the position was opened is not known")
    fall = 1 - close / peak
    reason = f"{_pct(-fall)} from the highest close since it was opened"
    return _beyond(fall, own.pct / 100, own, reason, "fall", peak=peak)


def _beyond(
    value: float, limit: float, terms: SellTerms, reason: str, name: str, **seen: float
) -> Finding:
    """Fires at the limit and beyond it; half as severe at the limit as at twice the limit."""
    values = {name: value, "limit": limit, **seen}
    if value < limit - _BLUR:
        return NoSignal(reason, values)
    return Fired(min(value / (2 * limit), 1.0), terms.sell_pct, reason, values)


def _gain(facts: ExitFacts) -> float | None:
    if facts.average_cost <= 0 or facts.price <= 0:
        return None
    return facts.price / facts.average_cost - 1


def _known(months: Sequence[float | None]) -> Sequence[float] | None:
    """The months where all of them are known; None where one is not."""
    returns = _returns(months)
    return returns if len(returns) == len(months) else None


def _returns(months: Sequence[float | None]) -> Sequence[float]:
    return [month for month in months if month is not None and -1 <= month <= RETURN_MAX]


def _pct(value: float) -> str:
    # z: what rounds to zero has no sign.
    return f"{100 * value:+z.2f}%"
