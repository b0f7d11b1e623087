"""Do the intervals of studies hold? `python -m benchmarks.evidence [--studies 10000]`.

Made-up studies whose truth is known, from seeds that stand here: no effect, the effect that a plan
says it would see, a leak of the future, promises that are too high. For each number of dates: how
often there is an alarm where there is nothing (5 % asked, 5.6 % accepted), how often the effect is
seen (80 % promised), and how often the interval holds the truth (93 % asked). Beside it the
coverage of a bootstrap's percentile interval: for returns of the stationary bootstrap with its
automatic block length, by `arch`; for the reliability curve of curves from resampled dates; of
fewer studies, since one takes 10 ms and more. Overfitting of 200 configurations is timed at the
end.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from arch.bootstrap import StationaryBootstrap, optimal_block_length
from scipy.special import ndtri
from sklearn.isotonic import IsotonicRegression

from benchmarks.report import table
from libs.quant.arrays import Array
from libs.quant.strategy.performance import YEAR_SESSIONS, sharpe_ratio
from libs.study.statistics import calibration, means
from libs.study.statistics.leakage import before_less_after
from libs.study.statistics.overfitting import overfitting
from libs.study.statistics.paired import PairedOutcome, hit_difference
from libs.study.statistics.path import sharpe_interval

Truth = Callable[[Array], Array]

DATES = (8, 12, 20, 30, 60, 120, 250, 500)
OVERLAPS = (1, 2, 5, 20)
SEED = 23
BOOTSTRAPPED = 500
RESAMPLES = 499
CURVES = 100
CURVE_RESAMPLES = 199
"""Studies whose reliability curve is resampled, and how often: one takes 0.1 s."""
AT = (0.45, 0.55, 0.65, 0.75, 0.85)
"""Stated probabilities at which the curve is looked at, of 0.4 to 0.9."""
TRUTHS: Mapping[str, Truth] = {
    "what is stated": lambda stated: stated,
    "10 points less": lambda stated: stated - 0.1,
    "hardly more with confidence": lambda stated: 0.5 + 0.3 * (stated - 0.5),
    "much more with confidence": lambda stated: np.clip(0.1 + 1.6 * (stated - 0.4), 0, 1),
}
"""What comes true of a stated probability. A row of the curve is of the worst of them."""
ALIKE = (0.0, 0.3)
"""The correlation of what comes true on one date."""
SESSIONS = (20, 30, 60, 90, 120, 250, 500)
SHARPES = (0.0, 1.0, 2.0)
"""True ratios of a year. A row is of the worst of them."""
PICKS = 5


@dataclass(frozen=True)
class Row:
    """What studies of one kind show."""

    kind: str
    dates: int
    overlap: int
    alarms: float
    power: float | None
    coverage: float | None
    bootstrap: float | None

    def cells(self) -> list[str]:
        """Its cells of the table."""
        parts = [self.power, self.coverage, self.bootstrap]
        shares = ["-" if part is None else f"{part:.1%}" for part in parts]
        return [self.kind, str(self.dates), str(self.overlap), f"{self.alarms:.1%}", *shares]


def returns(random: np.random.Generator, dates: int, overlap: int, heavy: bool) -> Array:
    """Excess returns a date whose horizons overlap, with a variance of 1; heavy tails as t of 4."""
    size = dates + overlap - 1
    shocks = random.standard_t(4, size) / 2**0.5 if heavy else random.normal(size=size)
    return np.asarray(np.convolve(shocks, np.ones(overlap), "valid") / overlap**0.5)


def bootstrap_covers(values: Array, seed: int) -> bool:
    """Whether the stationary bootstrap's percentile interval holds 0."""
    block = max(round(float(optimal_block_length(values)["stationary"].iloc[0])), 1)
    resampled = StationaryBootstrap(block, values, seed=seed)
    low, high = resampled.conf_int(np.mean, RESAMPLES, method="percentile").ravel()
    return bool(low <= 0 <= high)


def of_returns(studies: int) -> Iterator[Row]:
    """Excess returns: without an effect, and with the one that the plan names."""
    for heavy in (False, True):
        for overlap in OVERLAPS:
            for dates in (count for count in DATES if count >= means.dates_least(overlap)):
                random = np.random.default_rng((SEED, heavy, overlap, dates))
                effect = means.smallest_difference(dates, overlap**0.5, overlap)
                alarms = seen = 0
                covered = []
                for number in range(studies):
                    values = returns(random, dates, overlap, heavy)
                    alarms += means.mean_over_dates(values, overlap).resolved
                    seen += means.mean_over_dates(values + effect, overlap).resolved
                    if number < BOOTSTRAPPED:
                        covered.append(bootstrap_covers(values, number))
                kind = f"returns, {'heavy tails' if heavy else 'normal'}"
                shares = (alarms / studies, seen / studies, 1 - alarms / studies)
                yield Row(kind, dates, overlap, *shares, float(np.mean(covered)))


def of_hits(studies: int) -> Iterator[Row]:
    """Hits of two arms that differ in four of ten picks, five a date that move together."""
    for dates in DATES:
        random = np.random.default_rng((SEED, 2, dates))
        alarms = 0
        for _ in range(studies):
            day = random.normal(size=(dates, 1))
            apart = (day * 0.5 + random.normal(size=(dates, PICKS))) > 0
            differ = random.random((dates, PICKS)) < 0.4
            step = np.where(differ, np.where(apart, 1.0, -1.0), 0.0).mean(axis=1)
            alarms += means.mean_over_dates(step).resolved
        yield Row("hits, five a date", dates, 1, alarms / studies, None, 1 - alarms / studies, None)
        alarms = 0
        for _ in range(min(studies, 2_000)):
            draws = random.random((dates, 2)) < 0.5
            pairs = [
                PairedOutcome(date(2010, 1, 4) + timedelta(days=day), float(one), float(other))
                for day, (one, other) in enumerate(draws)
            ]
            alarms += hit_difference(pairs).resolved
        share = alarms / min(studies, 2_000)
        yield Row("hits, one a date (McNemar)", dates, 1, share, None, 1 - share, None)


def of_leaks(studies: int) -> Iterator[Row]:
    """Before and after a cutoff: no leak, and one that is seen in four of five by its plan."""
    for dates in DATES:
        random = np.random.default_rng((SEED, 3, dates))
        leak = means.smallest_difference(dates, 2**0.5)
        alarms = seen = 0
        for _ in range(studies):
            before, after = random.normal(size=dates), random.normal(size=dates)
            alarms += before_less_after(before, after).resolved
            seen += before_less_after(before + leak, after).resolved
        shares = (alarms / studies, seen / studies, 1 - alarms / studies)
        yield Row("before less after a cutoff", dates, 1, *shares, None)


def of_promises(studies: int) -> Iterator[Row]:
    """Probabilities of five picks a date: honest, and 10 points too high."""
    for dates in DATES:
        random = np.random.default_rng((SEED, 4, dates))
        alarms = seen = 0
        for _ in range(studies):
            chance = random.uniform(0.4, 0.9, (dates, PICKS))
            draw = random.random((dates, PICKS))
            honest, less = (chance - (draw < chance - cut) for cut in (0.0, 0.1))
            alarms += means.mean_over_dates(honest.mean(axis=1)).resolved
            seen += means.mean_over_dates(less.mean(axis=1)).resolved
        shares = (alarms / studies, seen / studies, 1 - alarms / studies)
        yield Row("promises, 10 points too high", dates, 1, *shares, None)


def came_true(
    random: np.random.Generator, truth: Truth, dates: int, overlap: int, alike: float
) -> tuple[Array, Array]:
    """Stated probabilities of five picks a date and whether they came true, a row a date."""
    stated = np.round(random.uniform(0.4, 0.9, (dates, PICKS)), 2)
    day = returns(random, dates, overlap, heavy=False)[:, None]
    own = np.stack([returns(random, dates, overlap, heavy=False) for _ in range(PICKS)], axis=1)
    luck = alike**0.5 * day + (1 - alike) ** 0.5 * own
    return stated, np.asarray(luck < ndtri(truth(stated)), dtype=np.float64)


def of_curves(studies: int) -> Iterator[Row]:
    """The interval of the reliability curve: how often it holds what comes true, at the worst of
    the stated probabilities that it is shown at."""
    for alike in ALIKE:
        for overlap in (1, 5):
            for dates in (count for count in DATES if count >= means.dates_least(overlap)):
                shares = []
                for number, truth in enumerate(TRUTHS.values()):
                    seeds = (SEED, 5, number, round(100 * alike), overlap, dates)
                    random = np.random.default_rng(seeds)
                    drawn = [
                        came_true(random, truth, dates, overlap, alike) for _ in range(studies)
                    ]
                    held = [held_at(truth, calibrated(*it, overlap)) for it in drawn]
                    again = [held_at(truth, resampled(random, *it)) for it in drawn[:CURVES]]
                    shares.append((worst(held), worst(again)))
                share, beside = (min(column) for column in zip(*shares, strict=True))
                kind = f"reliability curve, a date's outcomes alike by {alike:.0%}"
                yield Row(kind, dates, overlap, 1 - share, None, share, beside)


Bounds = tuple[Array, Array, Array]
"""Stated probabilities, and the ends of the interval there."""


def calibrated(stated: Array, happened: Array, overlap: int) -> Bounds:
    """The interval as reports have it."""
    days = np.repeat(np.arange(len(stated)), PICKS)
    curve = calibration.reliability(stated.ravel(), happened.ravel(), days, overlap)
    at, low, high = zip(*((point.stated, point.low, point.high) for point in curve), strict=True)
    return np.array(at), np.array(low), np.array(high)


def resampled(random: np.random.Generator, stated: Array, happened: Array) -> Bounds:
    """The percentile interval of curves from resampled dates."""
    at, curves = np.array(AT), []
    for _ in range(CURVE_RESAMPLES):
        drawn = random.integers(0, len(stated), len(stated))
        curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        curve.fit(stated[drawn].ravel(), happened[drawn].ravel())
        curves.append(curve.predict(at))
    low, high = np.quantile(curves, (means.LEVEL / 2, 1 - means.LEVEL / 2), axis=0)
    return at, low, high


def held_at(truth: Truth, bounds: Bounds) -> dict[float, bool]:
    """Whether the interval holds what comes true, by the probability that was stated."""
    at, low, high = bounds
    held = (low <= truth(at)) & (truth(at) <= high)
    return dict(zip(at.tolist(), held.tolist(), strict=True))


def worst(studies: Sequence[Mapping[float, bool]]) -> float:
    """The smallest share of studies in which the interval of one of AT holds; nan of none."""
    shares = [[held[at] for held in studies if at in held] for at in AT]
    return min((float(np.mean(of)) for of in shares if of), default=float("nan"))


def of_sharpes(studies: int) -> Iterator[Row]:
    """The interval of a year's Sharpe ratio, by so many daily returns."""
    for place, kind in enumerate(("normal", "heavy tails", "skewed to losses")):
        for sessions in SESSIONS:
            held = []
            for number, sharpe in enumerate(SHARPES):
                random = np.random.default_rng((SEED, 6, place, sessions, number))
                covered = 0
                for _ in range(studies):
                    daily = shocks(random, kind, sessions) + sharpe / YEAR_SESSIONS**0.5
                    low, high = sharpe_interval(float(sharpe_ratio(daily)), daily)
                    covered += low <= sharpe <= high
                held.append(covered / studies)
            share = min(held)
            yield Row(f"Sharpe ratio, {kind}", sessions, 1, 1 - share, None, share, None)


def shocks(random: np.random.Generator, kind: str, sessions: int) -> Array:
    """Daily returns with a mean of 0 and a variance of 1."""
    if kind == "normal":
        return random.normal(size=sessions)
    if kind == "heavy tails":
        return np.asarray(random.standard_t(4, sessions) / 2**0.5)
    return np.asarray((2 - random.gamma(2.0, size=sessions)) / 2**0.5)


KINDS = {
    "returns": of_returns,
    "hits": of_hits,
    "leaks": of_leaks,
    "promises": of_promises,
    "curves": of_curves,
    "sharpes": of_sharpes,
}


def main() -> None:
    """Run all, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--only", choices=KINDS, help="statistics of this kind alone")
    asked = parser.parse_args()
    rows = []
    for kind in KINDS if asked.only is None else (asked.only,):
        for row in KINDS[kind](asked.studies):
            rows.append(row)
            print(" | ".join(row.cells()), flush=True)
    head = ["", "dates", "overlap", "false alarms", "effect seen", "coverage", "bootstrap's"]
    print(table(head, [row.cells() for row in rows]))
    random = np.random.default_rng(SEED)
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        overfitting(random.normal(size=(2_500, 200)))
        seconds.append(time.perf_counter() - began)
    print(f"overfitting of 200 configurations over 2,500 sessions: {np.median(seconds):.2f} s")
    began = time.perf_counter()
    rows_stated = [
        calibration.Stated(date(2010, 1, 4) + timedelta(days=day), float(chance), bool(came))
        for day in range(250)
        for chance, came in zip(random.uniform(0, 1, 5), random.random(5) < 0.5, strict=True)
    ]
    calibration.calibration(rows_stated)
    print(f"calibration of 1,250 outcomes with its curve: {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
