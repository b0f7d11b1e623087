"""How many designs by rules pass each gate on the bundled prices: `python -m benchmarks.designs`.

Each design knows those before it, as on a desk, and is trained and tried as the services do it, but
in this process. A strict desk's thresholds are held against the same results, with every design
counted. Nothing here is a measure of speed.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean, variance
from typing import Any, Final
from uuid import UUID

from pydantic import JsonValue

from benchmarks.report import table
from contracts.gate import DEFAULT, STRICT, GateResult, GateThresholds
from contracts.strategy import CostSpec, StrategySpec
from contracts.strategy_cycle import PAST_STRATEGIES_MAX, Trials
from contracts.strategy_result import BacktestResult, TrainingResult
from libs.llm.rules import designer
from libs.llm.rules.rule_set import EvidenceIndex
from libs.market.panels import bars_of
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.quant.strategy.gates import backtest_gate, training_gate
from libs.quant.strategy.held_out import try_held_out
from libs.quant.strategy.models import to_bytes
from libs.quant.strategy.panel import Panel, panel
from libs.quant.strategy.training import train
from libs.runtime.journal import Journal
from services.strategy.logic import (
    DesignTerms,
    backtest_result,
    filled,
    sha256_of,
    training_result,
)

AS_OF: Final = date(2013, 3, 1)
DESIGNS_DEFAULT: Final = 20
SESSIONS: Final = 6_000
TERMS: Final = DesignTerms(CostSpec(), capital=100_000)
IDS: Final[Mapping[str, Any]] = {"cycle_id": UUID(int=1), "op_id": UUID(int=2), "as_of": AS_OF}


@dataclass(frozen=True)
class Tried:
    """One design and what it came to; the backtest is made whatever the training gate says."""

    spec: StrategySpec
    trained: TrainingResult
    tested: BacktestResult

    def gate(self, thresholds: GateThresholds) -> tuple[GateResult, GateResult]:
        """What both gates say."""
        return (
            training_gate(self.trained, thresholds),
            backtest_gate(self.tested, thresholds),
        )

    def told(self) -> dict[str, JsonValue]:
        """What the next design is told of it, as far as the rules read it."""
        first, second = self.gate(DEFAULT)
        ended = "assessed" if second.passed else "backtest_gate"
        return {
            "features": [feature.key for feature in self.spec.features],
            "horizon_bars": self.spec.label.horizon_bars,
            "model": self.spec.model.kind,
            "ended": ended if first.passed else "training_gate",
            "verdict": "mediocre",
        }


def main() -> None:
    """Try designs and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=DESIGNS_DEFAULT)
    tried = asyncio.run(_tried(parser.parse_args().designs))
    print(render(tried))


def render(tried: Sequence[Tried]) -> str:
    """How many passed, and which rules the others failed."""
    rows = [
        (name, str(training), str(both), f"{failed}")
        for name, thresholds in (("default", DEFAULT), ("strict", STRICT))
        for training, both, failed in [_passed(tried, thresholds)]
    ]
    head = (f"profile, of {len(tried)} designs", "training gate", "both gates", "rules failed")
    return "\n\n".join([table(head, rows), *(_line(each) for each in tried)])


def _passed(tried: Sequence[Tried], thresholds: GateThresholds) -> tuple[int, int, str]:
    gates = [each.gate(thresholds) for each in tried]
    failed = Counter(
        check.rule for pair in gates for gate in pair for check in gate.checks if not check.passed
    )
    said = ", ".join(f"{rule} {count}" for rule, count in failed.most_common())
    return (
        sum(first.passed for first, _ in gates),
        sum(first.passed and second.passed for first, second in gates),
        said or "none",
    )


def _line(each: Tried) -> str:
    found, tested = each.trained, each.tested
    return (
        f"{each.spec.name}: loss -{found.loss_decrease:.0%}, accuracy {found.accuracy:.1%} (base "
        f"{found.base_rate:.1%}), Sharpe {tested.sharpe_ratio}, deflated {tested.deflated_sharpe}"
    )


async def _tried(count: int) -> Sequence[Tried]:
    market = ReplayMarket(ReplayStore())
    histories = await _histories(market)
    found: list[Tried] = []
    for number in range(count):
        past: list[JsonValue] = [each.told() for each in found[::-1][:PAST_STRATEGIES_MAX]]
        task: dict[str, JsonValue] = {"draw": f"{number}", "histories": histories, "past": past}
        spec = filled(designer.answer(task, EvidenceIndex(())), histories, TERMS)
        bars = await bars_of(Journal((), _forget), market, spec.universe, AS_OF, spec.train)
        found.append(_try(spec, panel(bars, spec.universe), found))
    return found


def _try(spec: StrategySpec, prices: Panel, before: Sequence[Tried]) -> Tried:
    trained = train(spec, prices)
    body = to_bytes(trained.model)
    hashes = {"spec_sha256": sha256_of(spec)}
    result = TrainingResult.model_validate(
        {**IDS, **hashes, **training_result(spec, trained, body)}
    )
    hashes["model_sha256"] = result.model_sha256
    tested = backtest_result(spec, try_held_out(spec, prices, trained.model), _others(before))
    return Tried(spec, result, BacktestResult.model_validate({**IDS, **hashes, **tested}))


def _others(before: Sequence[Tried]) -> Trials:
    ratios = [each.tested.sharpe_ratio for each in before if each.tested.sharpe_ratio is not None]
    return Trials(
        count=len(before),
        with_ratio=len(ratios),
        ratio_mean=fmean(ratios) if ratios else 0.0,
        ratio_variance=variance(ratios) if len(ratios) > 1 else 0.0,
    )


async def _histories(market: ReplayMarket) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for listing in await market.universe(AS_OF):
        days = (await market.bars(listing.ticker, AS_OF, SESSIONS))["date"]
        found[listing.ticker] = {"first": str(days[0]), "last": str(days[-1]), "bars": len(days)}
    return found


async def _forget(*_: object) -> None:
    """Nothing is kept: these are no operations of a desk."""


if __name__ == "__main__":
    main()
