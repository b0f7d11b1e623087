"""The score of decisions that were made elsewhere: their money, beside coins and controls."""

from collections.abc import Sequence
from datetime import date
from math import ceil, isfinite, log

import numpy as np
from pydantic import Field

from contracts.study_score import CURVE_POINTS_MAX, NotShown, Shown
from contracts.types import Value
from libs.facts import amounts
from libs.quant.arrays import Array
from libs.quant.strategy.performance import YEAR_SESSIONS, cagr, max_drawdown
from libs.study.decisions.priced import PricedDecisions
from libs.study.decisions.stated import DecisionForm, StatedFile, Untraded
from libs.study.statistics.means import LEVEL, dates_needed, mean_over_dates
from libs.study.statistics.shown import DATES_MAX, shown, thinned
from libs.study.statistics.walks import OnPart, Orders, Walk, WalkTerms, coins, turned, walk

WEEK = 5
"""Sessions of one number that two paths are compared by."""
UNPLACED_MAX = 200
"""Decisions that were not traded and are named; the others are counted."""
FILE, COIN, HOLD, EQUAL = "the file", "coin", "holding", "equal parts"
DRAWS_LEAST = int(2 / LEVEL)
"""With fewer coins none can be told from luck."""
SAME = 1e-9


class MoneyPath(Value):
    """The money of one way to decide, from before the first open to the last close. `exposure` is
    the mean part of it in shares, `turnover` what was traded over its mean. Of coins all are
    of the middle one, but for `low` and `high`: between them lie 90 % of the last amounts."""

    name: str
    money: float
    total_return: float
    annual_return: float | None
    drawdown: float
    exposure: float
    turnover: float
    costs: float
    low: float | None = None
    high: float | None = None
    curve: tuple[float, ...] = Field(max_length=CURVE_POINTS_MAX)


class CoinScore(Value):
    """The file beside `draws` coins: which part of them `earned_less`, and the probability `p` that
    a coin is as far from the middle as the file, on either side. `low` and `high` hold 95 % of the
    differences of returns, file less coin. `needed` is how many weeks would show a true difference
    of this size with a chance of 80 %; None where none would. With one ticker the coins choose the
    times (`is_timing`), else the tickers."""

    draws: int
    earned_less: float
    difference: float
    low: float
    high: float
    p: float
    weeks: int
    needed: int | None
    is_timing: bool

    @property
    def resolved(self) -> bool:
        """Whether it can be told from luck."""
        return self.p < LEVEL


class DecisionScore(Value):
    """All that a file of decisions shows. `first` is the first session that is traded at, `last`
    the one with whose close it ends. `differences` has by path the growth of the file less that of
    the path, a year, by the weeks of both."""

    file: str
    form: DecisionForm
    written_by: str
    prices: str
    decisions: int
    times: int
    trades: int
    tickers: tuple[str, ...]
    first: date
    last: date
    cash: float
    currency: str
    cost_bps: float
    seed: int
    paths: tuple[MoneyPath, ...]
    coin: CoinScore | NotShown
    differences: dict[str, Shown]
    points: tuple[date, ...] = Field(max_length=CURVE_POINTS_MAX)
    untraded: tuple[Untraded, ...] = ()
    untraded_more: int = 0
    absent: dict[str, str] = Field(default_factory=dict)
    ended: dict[str, date] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()


def score_decisions(
    name: str,
    read: StatedFile,
    of: PricedDecisions,
    terms: WalkTerms,
    prices: str,
    lot: tuple[int, int],
    on_part: OnPart = lambda _: None,
) -> DecisionScore:
    """The score of a file's decisions, the same for the same `lot`: how many coins, and the seed of
    their drawing. `on_part` is told how much of the coins is done."""
    draws, seed = lot
    own = walk(of.panel, of.orders, terms)
    held, equal = (walk(of.panel, orders, terms) for orders in _controls(of))
    is_timing = len(of.tickers) == 1
    if is_timing and len(of.orders) <= DRAWS_LEAST:
        times = amounts.count(len(of.orders), "time")
        few = f"one ticker and {times}: a coin of times needs {DRAWS_LEAST + 1}"
        coin: CoinScore | NotShown = NotShown(why=few)
        lots = None
    else:
        lots = (
            walk(of.panel, turned(of.orders, draws), terms, on_part)
            if is_timing
            else coins(of.panel, of.orders, own, terms, draws, seed, on_part)
        )
        coin = beside_coins(own, lots, is_timing=is_timing)
    walks = {FILE: own, HOLD: held, EQUAL: equal}
    paths = [_path(key, it) for key, it in walks.items()]
    if lots is not None:
        paths.insert(1, _path(COIN, lots))
    untraded = _untraded(of, own)
    return DecisionScore(
        file=name,
        form=read.form,
        written_by=read.written_by,
        prices=prices,
        decisions=len(read.decisions),
        times=len({it.at for it in read.decisions}),
        trades=sum(int(it.sum()) for it in own.acted),
        tickers=tuple(of.tickers),
        first=of.sessions[of.orders[0].session],
        last=of.sessions[-1],
        cash=terms.cash,
        currency=of.currency,
        cost_bps=terms.cost_bps,
        seed=seed,
        paths=tuple(paths),
        coin=coin,
        differences={key: _weekly(own.curve[0], walks[key].curve[0]) for key in (HOLD, EQUAL)},
        points=thinned(of.sessions),
        untraded=tuple(untraded[:UNPLACED_MAX]),
        untraded_more=max(len(untraded) - UNPLACED_MAX, 0),
        absent=dict(of.absent),
        ended=dict(of.ended),
        notes=(*read.notes, *of.notes, *_late(of)),
    )


def _late(of: PricedDecisions) -> Sequence[str]:
    """The tickers that holding cannot buy, in a sentence; none where it can buy all."""
    trades = of.panel.trading(of.orders[0].session)
    late = [name for name, is_so in zip(of.tickers, trades, strict=True) if not is_so]
    names = amounts.cut(", ".join(late), 80)
    return [f"holding is without {names}: no price at the first open"] if late else []


def _controls(of: PricedDecisions) -> tuple[Sequence[Orders], Sequence[Orders]]:
    """The orders of holding and of equal parts: of the tickers that trade at an open."""
    parts = []
    for it in of.orders:
        trades = of.panel.trading(it.session)
        parts.append(
            Orders.exactly(it.session, np.where(trades, 1 / max(int(trades.sum()), 1), np.nan))
        )
    return parts[:1], parts


def beside_coins(own: Walk, lots: Walk, *, is_timing: bool) -> CoinScore | NotShown:
    """The first of the `own` walks beside coins."""
    begin, end = own.curve[0, 0], own.curve[0, -1]
    ends = lots.curve[:, -1]
    if np.abs(lots.curve - own.curve).max() <= SAME * end:
        return NotShown(why="a coin has no choice here: every one holds what the file holds")
    draws, weeks = len(ends), (own.curve.shape[1] - 1) // WEEK
    as_good = int((ends >= end * (1 - SAME)).sum())
    as_bad = int((ends <= end * (1 + SAME)).sum())
    gains = np.log(ends)
    needed = dates_needed(log(end) - float(gains.mean()), float(gains.std()) * weeks**0.5, 1e6)
    low, high = np.quantile(ends, [LEVEL / 2, 1 - LEVEL / 2])
    return CoinScore(
        draws=draws,
        earned_less=1 - as_good / draws,
        difference=float((end - np.median(ends)) / begin),
        low=float((end - high) / begin),
        high=float((end - low) / begin),
        p=min(1.0, 2 * (1 + min(as_good, as_bad)) / (draws + 1)),
        weeks=weeks,
        needed=ceil(needed) if isfinite(needed) and needed < DATES_MAX else None,
        is_timing=is_timing,
    )


def _weekly(own: Array, other: Array) -> Shown:
    """The difference of growth a year, by weeks that do not overlap."""
    growth = [np.diff(np.log(curve[::WEEK])) for curve in (own, other)]
    return shown(lambda: mean_over_dates((growth[0] - growth[1]) * (YEAR_SESSIONS / WEEK)))


def _path(name: str, of: Walk) -> MoneyPath:
    """The figures of a walk; of several the middle of each."""
    curve, ends = of.curve, of.curve[:, -1]
    is_a_year = curve.shape[1] > YEAR_SESSIONS
    several = len(ends) > 1
    return MoneyPath(
        name=name,
        money=_middle(ends),
        total_return=_middle(ends / curve[:, 0] - 1),
        annual_return=_middle(cagr(curve)) if is_a_year else None,
        drawdown=_middle(max_drawdown(curve)),
        exposure=_middle((of.held / curve)[:, 1:].mean(axis=1)),
        turnover=_middle(of.traded / curve.mean(axis=1)),
        costs=_middle(of.costs),
        low=float(np.quantile(ends, 0.05)) if several else None,
        high=float(np.quantile(ends, 0.95)) if several else None,
        curve=thinned([float(it) for it in np.median(curve / curve[:, :1], axis=0)]),
    )


def _middle(of: Array) -> float:
    return float(np.median(of))


def _untraded(of: PricedDecisions, own: Walk) -> list[Untraded]:
    """The decisions that were not traded, or not whole, in the order of their lines."""
    found = [*of.unplaced]
    for place, order in enumerate(of.orders):
        day, lines = of.sessions[order.session], of.lines[place]
        reasons = (
            (own.missed[place][0], f"did not trade at the open of {day}"),
            (own.cut[place][0], f"cut on {day}: more than the cash pays, or than is held"),
        )
        for mask, why in reasons:
            names = [name for name, is_so in zip(of.tickers, mask, strict=True) if is_so]
            found += [Untraded(line=lines.get(it, 0), ticker=it, why=why) for it in names]
    return sorted(found, key=lambda it: (it.line, it.ticker))
