"""Does a model know the future by heart? Pure.

Three looks at it: whether it can say who and when a masked input is (A. Lopez-Lira, Y. Tang,
M. Zhu, The Memorization Problem, 2025; Entity Neutering, SSRN 5182756), whether it does better with
names than without, and whether it did better before its knowledge ended than after. The second can
be negative, since names also distract (P. Glasserman, C. Lin, 2023).

The verdict on a provider is by its choices: by what names bring it, and by the look for foresight
(libs/study/statistics/foresight.py). Before and after the cutoff is shown apart and decides
nothing, since the market was another one too.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date, timedelta
from math import sqrt

from contracts.probe import Guess
from contracts.study import StudyArm
from contracts.study_score import LeakVerdict, NotShown, Probe, Shown
from libs.quant.arrays import Array
from libs.study.statistics.means import Mean, mean_over_dates
from libs.study.statistics.shares import share_interval

DAYS_OFF_MAX = 90
"""A guessed date is right where it is no farther away."""
CUTOFF_GUARD = timedelta(days=90)
"""Models know something of the weeks behind their stated cutoff: these count for neither side."""
IDENTIFIED_MAX = 0.1
"""An input is blind where at most this part of it is identified, at the bound of its interval."""
PROBE_DATES_LEAST = 30
"""From so many dates on the interval holds the truth in 93 % of studies, however much the answers
of a date have in common (`python -m benchmarks.leakage`)."""

NAMES_WORTH_MAX = 0.05
"""Names tell nothing where they bring at most this part of right choices, at the high end."""
NAMES_DATES_LEAST = 30
"""With fewer dates nobody is cleared: what names change on one of ten dates, worth half the choices
there, would not be among them in more than 1 of 20 studies."""


def identification(arm: StudyArm, dates: Sequence[Sequence[Guess]]) -> Probe:
    """How much of what it was asked in probes an arm's model identified: of each date its guesses.

    Guessing is the mean share that is right when every answer is held against every other input's
    truth.
    """
    guesses = [guess for date_ in dates for guess in date_]
    if not guesses:
        raise ValueError("identification needs at least one answer")
    count = len(guesses)
    hits = sum(it.right for it in guesses)
    answers = Counter(it.guessed for it in guesses)
    truths = Counter(it.ticker for it in guesses)
    others = sum(times * truths[answer] for answer, times in answers.items()) - hits
    low = high = None
    if len(dates) >= PROBE_DATES_LEAST:
        by_date = [sum(it.right for it in date_) for date_ in dates]
        low, high = share_interval(by_date, [len(date_) for date_ in dates])
    guessing = others / (count * (count - 1)) if count > 1 else 0.0
    industries = [it.industry_right for it in guesses if it.industry_right is not None]
    return Probe(
        provider=arm.provider,
        arm=arm.name,
        cells=len(dates),
        needed=PROBE_DATES_LEAST,
        hits=hits,
        asked=count,
        low=low,
        high=high,
        by_guessing=guessing,
        industries=sum(industries),
        industries_asked=len(industries),
        dates=sum(it.days_off is not None and it.days_off <= DAYS_OFF_MAX for it in guesses),
        blind=None if high is None else high - guessing <= IDENTIFIED_MAX,
    )


def by_names(hits: Shown, excess: Shown) -> LeakVerdict:
    """The verdict of what names bring: a leak where a named arm is above its masked one, in right
    choices or in excess return, by more than luck. Both looked at from this side alone, honest arms
    are accused in LEVEL of studies at most. Cleared where names bring NAMES_WORTH_MAX at most, over
    NAMES_DATES_LEAST dates.
    """
    if isinstance(hits, NotShown) or isinstance(excess, NotShown):
        return LeakVerdict.NOT_SHOWN
    if any(one.resolved and one.estimate > 0 for one in (hits, excess)):
        return LeakVerdict.LEAKS
    little = hits.high <= NAMES_WORTH_MAX and hits.dates >= NAMES_DATES_LEAST
    return LeakVerdict.CLEAR if little else LeakVerdict.NOT_RESOLVED


def of_provider(
    foresight: Collection[LeakVerdict], names: LeakVerdict, blind: bool | None = None
) -> LeakVerdict:
    """The verdict on a provider by all of its arms' foresight and by what names bring it, which
    clears nobody who is not `blind` without them."""
    if LeakVerdict.LEAKS in {*foresight, names}:
        return LeakVerdict.LEAKS
    sighted = blind is False or {*foresight} != {LeakVerdict.CLEAR}
    if names is LeakVerdict.CLEAR and sighted:
        return LeakVerdict.NOT_SHOWN
    return names


def sides_of_cutoff(
    dated: Sequence[tuple[date, date, float]], cutoff: date
) -> tuple[Sequence[float], Sequence[float]]:
    """The values before a model's knowledge ended and those CUTOFF_GUARD after it, by date.

    Each has the date of its decision and the end of its horizon: before are those whose whole
    outcome the model may know. Of what crosses the cutoff it may know a part: neither side.
    """
    ordered = sorted(dated)
    before = [value for _, end, value in ordered if end <= cutoff]
    return before, [value for on, _, value in ordered if on > cutoff + CUTOFF_GUARD]


def before_less_after(
    before: Sequence[float] | Array, after: Sequence[float] | Array, overlap: int = 1
) -> Mean:
    """How much better it was before the cutoff than after; both one value a date, in their order.

    Two means of independent dates with variances of their own (B. L. Welch, Biometrika 34, 1947).
    `needed` is for both sides together, divided as they are. Raises TooFewDates.
    """
    sides = [mean_over_dates(before, overlap), mean_over_dates(after, overlap)]
    estimate, dates = sides[0].estimate - sides[1].estimate, sides[0].dates + sides[1].dates
    total = sum(mean.error**2 for mean in sides)
    spread = sum(mean.error**4 / mean.freedom for mean in sides)
    degrees = total**2 / spread if spread else float(dates - 2)
    return Mean.of(estimate, sqrt(total), degrees, dates)
