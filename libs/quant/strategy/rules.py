"""A strategy's entry and exit rules: from what is known at each close to the side wanted then.

Sides change at a close and are filled at the next open. A position is left where any condition or
limit of its side is met, and entered where all conditions of one side, and not of the other, are.
Where one close asks for both on the same side, it is left.
"""

from collections.abc import Mapping

import numpy as np

from contracts.strategy import Condition, EntryRules, ExitRules
from libs.quant.arrays import Array, Mask
from libs.quant.strategy.backtest import Places, Sides
from libs.quant.strategy.fills import FillTerms
from libs.quant.strategy.panel import Panel

LONG, SHORT = 1, -1


class UnknownReading(KeyError):
    """A rule reads what was not given."""


def sides(
    entry: EntryRules,
    exit_: ExitRules,
    readings: Mapping[str, Array],
    prices: Panel,
    terms: FillTerms,
) -> Sides:
    """The side wanted at each close: -1, 0 or 1, a row a ticker.

    `readings` hold `probability` and the features by key, shaped as the panel; NaN meets no
    condition. `terms` say what an entry pays, which stop-loss and take-profit compare with.
    """
    shape = prices.close.shape
    enter = _enter(entry, readings, shape)
    leave = {
        LONG: _any(exit_.long, readings, shape),
        SHORT: _any(exit_.short, readings, shape),
    }
    if not entry.short and not _has_limits(exit_):
        return latest_of(enter[LONG], leave[LONG])
    return _walk(enter, leave, exit_, prices, terms)


def latest_of(enter: Mask, leave: Mask) -> Sides:
    """1 from a close that enters up to one that leaves; leaving goes before entering."""
    decided = enter | leave
    decided[:, 0] = True
    places = np.flatnonzero(decided)
    after = (enter & ~leave).ravel()[places].astype(np.int8)
    return np.repeat(after, np.diff(places, append=decided.size)).reshape(decided.shape)


def _has_limits(exit_: ExitRules) -> bool:
    limits = (exit_.hold_bars_max, exit_.stop_loss_pct, exit_.take_profit_pct)
    return any(limit is not None for limit in limits)


def _enter(
    entry: EntryRules, readings: Mapping[str, Array], shape: tuple[int, ...]
) -> dict[int, Mask]:
    long, short = _all(entry.long, readings, shape), _all(entry.short, readings, shape)
    return {LONG: long & ~short, SHORT: short & ~long}


def _all(
    conditions: tuple[Condition, ...], readings: Mapping[str, Array], shape: tuple[int, ...]
) -> Mask:
    met = np.full(shape, bool(conditions))
    for condition in conditions:
        met &= holds(condition, readings)
    return met


def _any(
    conditions: tuple[Condition, ...], readings: Mapping[str, Array], shape: tuple[int, ...]
) -> Mask:
    met = np.zeros(shape, dtype=bool)
    for condition in conditions:
        met |= holds(condition, readings)
    return met


def holds(condition: Condition, readings: Mapping[str, Array]) -> Mask:
    """Where the condition is met; never before there are `bars_ago` closes. Raises UnknownReading.

    Both ends are left out: `above: 70` needs more than 70.
    """
    if condition.of not in readings:
        raise UnknownReading(f"{condition.of}; there are {', '.join(sorted(readings))}")
    values = readings[condition.of]
    met = np.isfinite(values)
    if condition.above is not None:
        met &= values > condition.above
    if condition.below is not None:
        met &= values < condition.below
    if not condition.bars_ago:
        return met
    late = np.zeros_like(met)
    late[:, condition.bars_ago :] = met[:, : -condition.bars_ago]
    return late


def _walk(
    enter: dict[int, Mask],
    leave: dict[int, Mask],
    exit_: ExitRules,
    prices: Panel,
    terms: FillTerms,
) -> Sides:
    """Close by close, all tickers at once: what is held decides what may end it."""
    tickers, sessions = prices.close.shape
    wanted = np.zeros((sessions, tickers), dtype=np.int8)
    side = np.zeros(tickers, dtype=np.int8)
    paid, since = np.zeros(tickers), np.zeros(tickers, dtype=np.int64)
    opens, closes = prices.open.T, prices.close.T
    flags = {key: np.ascontiguousarray(mask.T) for key, mask in enter.items()}
    ends = {key: np.ascontiguousarray(mask.T) for key, mask in leave.items()}
    for at in range(sessions):
        # What was decided at the close before has been filled at this open.
        new = since == at
        if new.any():
            paid = np.where(new, terms.price(opens[at], side.astype(np.float64)), paid)
        left = ((side == LONG) & ends[LONG][at]) | ((side == SHORT) & ends[SHORT][at])
        left |= _over_limits(exit_, side, closes[at], paid, at - since + 1)
        turned = (flags[LONG][at] & (side != LONG)).astype(np.int8)
        turned -= (flags[SHORT][at] & (side != SHORT)).astype(np.int8)
        # Held and not left: it stays. Left or flat: the other side, or none.
        side = np.where((side != 0) & ~left, side, turned)
        wanted[at] = side
        changed = side != (wanted[at - 1] if at else 0)
        since = np.where(changed, at + 1, since)
    return np.ascontiguousarray(wanted.T)


def _over_limits(exit_: ExitRules, side: Sides, closes: Array, paid: Array, held: Places) -> Mask:
    over: Mask = np.zeros(side.shape, dtype=bool)
    gain_pct = side * (closes / np.where(paid > 0, paid, closes) - 1) * 100
    if exit_.hold_bars_max is not None:
        over |= held >= exit_.hold_bars_max
    if exit_.stop_loss_pct is not None:
        over |= gain_pct <= -exit_.stop_loss_pct
    if exit_.take_profit_pct is not None:
        over |= gain_pct >= exit_.take_profit_pct
    over &= side != 0
    return over
