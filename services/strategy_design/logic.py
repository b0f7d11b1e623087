"""Limits of a design, and the task of a designer. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from pydantic import JsonValue

from contracts.indicator import INDICATORS
from contracts.strategy import CostSpec, Period, SizingSpec, StrategyDraft, StrategySpec
from libs.llm.naming import strangers
from libs.quant.strategy.training import PERIOD_SLACK_DAYS

WARM_UP_DAYS = 400
"""Left before training, for features that look back: about 270 sessions."""
SIZE = "position_pct"
SHARED_DAYS_MIN = 30
"""Of prices that all tickers of a design have, behind the warm-up. It leaves room for both periods;
the training says whether there is enough to learn from."""
TRAINED_DAYS = 5 * 365
HELD_OUT_DAYS = 3 * 365
HELD_OUT_PART = 0.3
"""Of a shorter time than both: what of it is held out."""


@dataclass(frozen=True)
class Terms:
    """By what every designer of this desk is judged."""

    costs: CostSpec
    capital: float


def taken(spec: StrategySpec, terms: Terms) -> StrategySpec:
    """A request's own spec; where it says nothing of costs, with the desk's."""
    return spec.model_copy(update={"costs": spec.costs or terms.costs})


def filled(draft: StrategyDraft, histories: JsonValue, terms: Terms) -> StrategySpec:
    """The spec of a draft without `draft_problems`: what is no idea of the designer's is filled in.

    The last years of the time that its tickers share are held out, those before them are learned
    from. The folds and the seed are the same for all: nobody draws again for luck.
    """
    first, last = _shared(draft.universe, histories)
    begin = first + timedelta(days=WARM_UP_DAYS)
    turn = max(last - timedelta(days=HELD_OUT_DAYS), begin + (last - begin) * (1 - HELD_OUT_PART))
    learned = max(begin, turn - timedelta(days=TRAINED_DAYS))
    return StrategySpec(
        **{name: getattr(draft, name) for name in StrategyDraft.model_fields if name != SIZE},
        sizing=SizingSpec(capital=terms.capital, position_pct=draft.position_pct),
        costs=terms.costs,
        train=Period(first=learned, last=turn),
        held_out=Period(first=turn + timedelta(days=1), last=last),
    )


def draft_problems(draft: StrategyDraft, histories: JsonValue) -> Sequence[str]:
    """The parts of a draft that the histories do not allow, a sentence each with the field."""
    if unknown := _unknown(draft.universe, histories):
        return unknown
    first, last = _shared(draft.universe, histories)
    needed = WARM_UP_DAYS + SHARED_DAYS_MIN
    if (last - first).days >= needed:
        return ()
    known = _known(histories)
    young = max(draft.universe, key=lambda ticker: str(known[ticker]["first"]))
    text = (
        f"universe: all of them have prices from {first} to {last} only; {needed} days are needed "
        f"for warm-up, training and held-out period: leave out {young}"
    )
    return [text]


def _shared(tickers: Sequence[str], histories: JsonValue) -> tuple[date, date]:
    known = _known(histories)
    firsts = [date.fromisoformat(str(known[ticker]["first"])) for ticker in tickers]
    lasts = [date.fromisoformat(str(known[ticker]["last"])) for ticker in tickers]
    return max(firsts), min(lasts)


def _known(histories: JsonValue) -> Mapping[str, Mapping[str, JsonValue]]:
    entries = histories if isinstance(histories, dict) else {}
    return {ticker: entry for ticker, entry in entries.items() if isinstance(entry, dict)}


def _unknown(tickers: Sequence[str], histories: JsonValue) -> Sequence[str]:
    return strangers("universe", tickers, sorted(_known(histories)), "it has no prices here")


def sha256_of(spec: StrategySpec) -> str:
    """The spec's hash: the same design, under the same name, has the same."""
    return hashlib.sha256(spec.model_dump_json().encode()).hexdigest()


def indicators_told() -> dict[str, JsonValue]:
    """Every indicator: what it tells, and its parameters with their default and both ends."""
    return {
        name: {
            "tells": row.tells,
            "parameters": {
                key: {"default": bounds.default, "least": bounds.least, "most": bounds.most}
                for key, bounds in row.parameters.items()
            },
        }
        for name, row in INDICATORS.items()
    }


def problems(spec: StrategySpec, histories: JsonValue) -> Sequence[str]:
    """The parts of a given spec that the histories do not allow, a sentence each with the field."""
    errors = list(_unknown(spec.universe, histories))
    known = _known(histories)
    for ticker in spec.universe:
        errors += _outside(spec, ticker, known.get(ticker))
    return errors


def _outside(
    spec: StrategySpec, ticker: str, history: Mapping[str, JsonValue] | None
) -> Sequence[str]:
    if history is None:
        return ()
    first = date.fromisoformat(str(history["first"]))
    last = date.fromisoformat(str(history["last"]))
    errors = []
    slack = timedelta(days=PERIOD_SLACK_DAYS)
    if spec.train.first + slack < first:
        errors.append(f"train.first: {spec.train.first} is before {ticker}'s first bar ({first})")
    if spec.held_out.last - slack > last:
        errors.append(f"held_out.last: {spec.held_out.last} is after {ticker}'s last bar ({last})")
    return errors
