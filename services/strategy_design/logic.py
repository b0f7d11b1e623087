"""What a design must fit, and what a designer is told. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from pydantic import JsonValue

from contracts.indicator import INDICATORS
from contracts.strategy import StrategySpec
from libs.quant.training import PERIOD_SLACK_DAYS


def sha256_of(spec: StrategySpec) -> str:
    """The spec's hash: the same design, under the same name, has the same."""
    return hashlib.sha256(spec.model_dump_json().encode()).hexdigest()


def indicators_told() -> dict[str, JsonValue]:
    """Every indicator: what it tells, and its parameters with their default and both ends."""
    return {
        name: {
            "tells": row.tells,
            "parameters": {
                key: {"default": each.default, "least": each.least, "most": each.most}
                for key, each in row.parameters.items()
            },
        }
        for name, row in INDICATORS.items()
    }


def problems(spec: StrategySpec, histories: JsonValue) -> Sequence[str]:
    """What of a spec the histories do not allow, a sentence each with the field."""
    known: Mapping[str, JsonValue] = histories if isinstance(histories, dict) else {}
    there_are = ", ".join(sorted(known))
    found = [
        f"universe: {ticker} is none of those with prices: {there_are}"
        for ticker in spec.universe
        if ticker not in known
    ]
    for ticker in spec.universe:
        found += _outside(spec, ticker, known.get(ticker))
    return found


def _outside(spec: StrategySpec, ticker: str, history: JsonValue) -> Sequence[str]:
    if not isinstance(history, dict):
        return ()
    first = date.fromisoformat(str(history["first"]))
    last = date.fromisoformat(str(history["last"]))
    found = []
    slack = timedelta(days=PERIOD_SLACK_DAYS)
    if spec.train.first + slack < first:
        found.append(f"train.first: {spec.train.first} is before {ticker}'s first bar ({first})")
    if spec.held_out.last - slack > last:
        found.append(f"held_out.last: {spec.held_out.last} is after {ticker}'s last bar ({last})")
    return found
