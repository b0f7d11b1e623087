"""A strategy on its held-out period: its features, its model and its rules, seen once."""

from dataclasses import dataclass

import numpy as np

from contracts.strategy import PROBABILITY, CostSpec, SizingSpec, StrategySpec
from libs.quant.strategy.backtest import ALL_IN, Backtest, EntrySizing, Sides, backtest
from libs.quant.strategy.features import features
from libs.quant.strategy.fills import FillTerms
from libs.quant.strategy.models import BadModel, Model
from libs.quant.strategy.panel import Panel
from libs.quant.strategy.rules import sides
from libs.quant.strategy.training import places


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """The period's prices, the side wanted at each of its closes, what that came to, and what
    buying the same universe at the first open and holding it would have come to.
    """

    prices: Panel
    sides: Sides
    strategy: Backtest
    benchmark: Backtest


def try_held_out(spec: StrategySpec, prices: Panel, model: Model) -> HeldOut:
    """Run the strategy over its held-out period, from cash. Bars before it warm the features up.

    Raises training.CannotTrain where the prices do not cover the period, and BadModel where the
    model reads other features than the spec names.
    """
    first, end = places(spec.held_out, prices, "held_out")
    if model.features != tuple(feature.key for feature in spec.features):
        raise BadModel(f"the model reads {', '.join(model.features)}, not the spec's features")
    readings = features(prices.cut(0, end), spec.features)
    readings[PROBABILITY] = model.probability(readings)
    seen = {name: np.ascontiguousarray(values[:, first:]) for name, values in readings.items()}
    period, terms = prices.cut(first, end), terms_of(spec.costs or CostSpec())
    wanted = sides(spec.entry, spec.exit, seen, period, terms)
    hold = np.ones_like(wanted)
    return HeldOut(
        prices=period,
        sides=wanted,
        strategy=backtest(period, wanted, sizing_of(spec.sizing), terms),
        benchmark=backtest(period, hold, EntrySizing(spec.sizing.capital, ALL_IN), terms),
    )


def terms_of(costs: CostSpec) -> FillTerms:
    """A spec's costs as the engine's terms; fractions are kept, as prices are adjusted."""
    return FillTerms(costs.fee_bps, costs.slippage_bps)


def sizing_of(sizing: SizingSpec) -> EntrySizing:
    """A spec's sizing as the engine's."""
    return EntrySizing(sizing.capital, sizing.position_pct / 100)
