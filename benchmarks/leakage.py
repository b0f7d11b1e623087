"""Are honest models accused? `python -m benchmarks.leakage [--studies 10000]`.

Made-up studies whose truth is known, from seeds that stand here, at the numbers of dates that
studies have. How often an honest provider is accused by what names bring it or by its foresight
(5 % asked, 5.6 % accepted), and how often it is cleared; and the same of one that knows some of its
choices by name. And probes whose answers on one date have more or less in common: how often more is
identified than the interval's high end says, and how often the interval holds the truth.
"""

import argparse
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import numpy as np
from scipy.stats import binomtest

from benchmarks.report import table
from contracts.study_score import Foresight, LeakVerdict
from libs.quant.arrays import Array
from libs.study.statistics import means
from libs.study.statistics.canary import LEAK_DATES_LEAST
from libs.study.statistics.foresight import foresight
from libs.study.statistics.leakage import PROBE_DATES_LEAST, by_names
from libs.study.statistics.outcomes import StudyOutcomes
from libs.study.statistics.shares import share_interval
from libs.study.statistics.shown import shown

DATES = (8, 12, 20, 30, 60, 100, 250, 500)
FORESIGHT_DATES = tuple(count for count in DATES if LEAK_DATES_LEAST <= count <= 250)
OVERLAPS = (1, 4)
SEED = 24
ASSETS = 4
CHANGED = (0.05, 0.4)
"""The parts of an honest model's choices that are others without names."""
KNOWN = 0.2
"""The part of its choices that a dishonest model knows by name."""
FORESEEN = 0.5
"""The same of a model that is to be seen by its foresight alone."""
ALIKE = (0.0, 0.2, 0.5, 1.0)
"""The correlation of a date's answers: from none to all or nobody recognised."""
IDENTIFIED = (0.02, 0.05, 0.1, 0.25, 0.5)
"""True parts of the inputs that a probe identifies."""
PLAIN = 1_000
"""Studies a row in which the answers are taken for independent: SciPy's interval is slow."""


def week(random: np.random.Generator, dates: int, overlap: int) -> Array:
    """Excess returns of assets over a horizon: heavy tails, and a day that all share taken out."""
    size = (dates + overlap - 1, ASSETS)
    shocks = random.standard_t(4, size) / 2**0.5
    summed = np.cumsum(np.vstack([np.zeros((1, ASSETS)), shocks]), axis=0)
    returns = (summed[overlap:] - summed[:-overlap]) / overlap**0.5
    return np.asarray(returns - returns.mean(axis=1, keepdims=True))


def better_half(liked: Array) -> Array:
    """Equal parts of the assets that are liked better than the others of their date."""
    return np.asarray((liked > np.median(liked, axis=1, keepdims=True)) * 2 / ASSETS)


def verdict_of(named: Array, masked: Array, excess: Array, overlap: int) -> LeakVerdict:
    """The verdict of what names bring, by the weights of both arms."""
    hits = ((named > 0) == (excess > 0)).astype(float) - ((masked > 0) == (excess > 0))
    gains = ((named - masked) * excess).sum(axis=1)
    return by_names(
        shown(lambda: means.mean_over_dates(hits.mean(axis=1), overlap)),
        shown(lambda: means.mean_over_dates(gains, overlap)),
    )


def of_names(studies: int) -> Iterator[list[str]]:
    """Honest providers whose choices are partly others without names, and one that knows some."""
    for changed in CHANGED:
        for overlap in OVERLAPS:
            for dates in (count for count in DATES if count >= means.dates_least(overlap)):
                random = np.random.default_rng((SEED, 5, round(100 * changed), overlap, dates))
                verdicts: list[LeakVerdict] = []
                dishonest: list[LeakVerdict] = []
                for _ in range(studies):
                    excess = week(random, dates, overlap)
                    liked, other = random.normal(size=(2, dates, ASSETS))
                    anew = random.random((dates, 1)) < changed
                    masked = better_half(np.where(anew, other, liked))
                    named = better_half(liked)
                    verdicts.append(verdict_of(named, masked, excess, overlap))
                    knows = random.random((dates, 1)) < KNOWN
                    seen = better_half(np.where(knows, excess, liked))
                    dishonest.append(verdict_of(seen, masked, excess, overlap))
                shares = [
                    sum(it is verdict for it in of) / studies
                    for of in (verdicts, dishonest)
                    for verdict in (LeakVerdict.LEAKS, LeakVerdict.CLEAR)
                ]
                kind = f"names, {changed:.0%} of dates chosen otherwise without them"
                yield [kind, str(dates), str(overlap), *(f"{share:.1%}" for share in shares)]


def of_foresight(studies: int) -> Iterator[list[str]]:
    """Choices that know nothing, and choices that know every second week."""
    for dates in FORESIGHT_DATES:
        random = np.random.default_rng((SEED, 6, dates))
        days = tuple(date(2010, 1, 4) + timedelta(days=7 * number) for number in range(dates))
        names = tuple(f"A{number}" for number in range(ASSETS))
        accused = convicted = 0
        for _ in range(studies):
            excess = week(random, dates, 1)
            of = StudyOutcomes(days, days, names, excess, np.zeros(dates), 1)
            liked = random.normal(size=(dates, ASSETS))
            knows = random.random((dates, 1)) < FORESEEN
            accused += _accused(better_half(liked), of)
            convicted += _accused(better_half(np.where(knows, excess, liked)), of)
        shares = [accused, studies - accused, convicted, studies - convicted]
        kind = "foresight; the dishonest one knows every second date"
        yield [kind, str(dates), "1", *(f"{share / studies:.1%}" for share in shares)]


def _accused(weight: Array, of: StudyOutcomes) -> bool:
    seen = foresight(weight, of, canary_lit=True)
    return isinstance(seen, Foresight) and seen.verdict is LeakVerdict.LEAKS


def recognised(
    random: np.random.Generator, dates: int, share: float, alike: float
) -> Sequence[int]:
    """How many assets of each date are identified, by a beta-binomial law."""
    chance = np.full(dates, share)
    if alike == 1:
        chance = (random.random(dates) < share).astype(float)
    elif alike > 0:
        rest = 1 / alike - 1
        chance = random.beta(share * rest, (1 - share) * rest, dates)
    return [int(hits) for hits in random.binomial(ASSETS, chance)]


def of_probes(studies: int) -> Iterator[list[str]]:
    """The interval of a probe at the numbers of dates from which on it is shown, and taken for that
    of independent answers; each at the worst of several true parts."""
    for alike in ALIKE:
        for dates in (count for count in DATES if PROBE_DATES_LEAST <= count <= 100):
            above, held, plain = [], [], []
            for share in IDENTIFIED:
                seeds = (SEED, 7, round(100 * alike), dates, round(100 * share))
                random = np.random.default_rng(seeds)
                hits = [recognised(random, dates, share, alike) for _ in range(studies)]
                spans = [share_interval(it, [ASSETS] * dates) for it in hits]
                alone = [
                    binomtest(sum(it), ASSETS * dates).proportion_ci(method="wilson")
                    for it in hits[:PLAIN]
                ]
                above.append(sum(high < share for _, high in spans) / studies)
                held.append(sum(low <= share <= high for low, high in spans) / studies)
                plain.append(sum(low <= share <= high for low, high in alone) / len(alone))
            shares = (max(above), min(held), min(plain))
            yield [f"{alike:.0%}", str(dates), *(f"{share:.1%}" for share in shares)]


def main() -> None:
    """Run all, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--studies", type=int, default=10_000)
    studies = parser.parse_args().studies
    head = ["", "dates", "overlap", "honest: accused", "cleared", "dishonest: accused", "cleared"]
    print(table(head, [*of_names(studies), *of_foresight(studies)]))
    probed = ["a date's answers alike by", "dates", "more than the high end", "coverage"]
    print(table([*probed, "coverage of plain Wilson"], list(of_probes(studies))))


if __name__ == "__main__":
    main()
