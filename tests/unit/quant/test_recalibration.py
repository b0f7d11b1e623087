"""What to size by instead of a stated confidence: never more, and by what was known before."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.memory import StatedOutcome
from contracts.trader import StockPick
from libs.quant.recalibration import (
    GRID,
    TRUSTED_FROM,
    between,
    in_words,
    isotonic,
    recalibrated,
    recalibration,
    unproven,
)

AS_OF = date(2012, 6, 29)
LEAST = 30
chances = st.floats(0, 1).map(lambda value: round(value, 3))
came_true = st.tuples(chances, st.booleans())
many = st.lists(came_true, min_size=LEAST, max_size=TRUSTED_FROM)


def outcomes(rows: Sequence[tuple[float, bool]], known: int = 1) -> list[StatedOutcome]:
    """Outcomes that were known so many days before AS_OF."""
    known_on = AS_OF - timedelta(days=known)
    return [
        StatedOutcome(
            on=known_on - timedelta(days=28),
            known_on=known_on,
            provider="rules",
            stated=stated,
            beat=beat,
        )
        for stated, beat in rows
    ]


def sized_by(table, stated: float) -> float:
    """The confidence that a buy is sized by."""
    pick = StockPick(ticker="AAA", allocation_pct=Decimal(10), confidence=stated, reasoning="up")
    again = recalibrated(table, stated)
    return pick.model_copy(update={"recalibrated": again}).confidence_to_size_by


@pytest.mark.slow
@given(rows=st.lists(came_true, min_size=1, max_size=60))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_it_is_the_isotonic_regression_of_scikit_learn(rows):
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 - two seconds

    stated, happened = isotonic(rows)
    theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    theirs.fit([row[0] for row in rows], [float(row[1]) for row in rows])
    at = [*GRID, *(row[0] for row in rows)]
    ours = [between(place, stated, happened) for place in at]
    assert ours == pytest.approx(list(theirs.predict(at)), abs=1e-9)


@pytest.mark.slow
@given(rows=many, one=chances, other=chances)
@settings(max_examples=200, derandomize=True, deadline=None)
def test_what_is_sized_by_is_never_more_than_was_stated_and_rises_with_it(rows, one, other):
    table = recalibration(outcomes(rows), "rules", AS_OF, LEAST)
    assert table is not None
    assert list(table.happened) == sorted(table.happened)
    low, high = sorted((one, other))
    assert 0 <= sized_by(table, low) <= low
    assert sized_by(table, low) <= sized_by(table, high) <= high


@pytest.mark.slow
@given(rows=many, later=many, days=st.integers(0, 400))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_nothing_enters_that_was_known_on_its_session_or_after_it(rows, later, days):
    before = outcomes(rows)
    beside = outcomes(later, known=-days)
    table = recalibration(before, "rules", AS_OF, LEAST)
    assert recalibration([*beside, *before], "rules", AS_OF, LEAST) == table
    assert recalibration(beside, "rules", AS_OF, LEAST) is None
    assert table is not None
    assert table.known_until < AS_OF


@pytest.mark.slow
@given(rows=many, theirs=many)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_what_another_provider_stated_does_not_enter(rows, theirs):
    table = recalibration(outcomes(rows), "rules", AS_OF, LEAST)
    others = [row.model_copy(update={"provider": "claude"}) for row in outcomes(theirs)]
    assert recalibration([*others, *outcomes(rows)], "rules", AS_OF, LEAST) == table


@pytest.mark.slow
@given(rows=many, seed=st.randoms(use_true_random=False))
@settings(max_examples=50, derandomize=True, deadline=None)
def test_the_same_outcomes_make_the_same_table_in_any_order(rows, seed):
    shuffled = list(rows)
    seed.shuffle(shuffled)
    table = recalibration(outcomes(rows), "rules", AS_OF, LEAST)
    assert recalibration(outcomes(shuffled), "rules", AS_OF, LEAST) == table


def test_too_few_outcomes_change_nothing_and_neither_do_any_where_it_is_off():
    rows = outcomes([(0.6, False)] * LEAST)
    assert recalibration(rows, "rules", AS_OF, LEAST) is not None
    assert recalibration(rows[1:], "rules", AS_OF, LEAST) is None
    assert recalibration(rows, "rules", AS_OF, 0) is None
    assert recalibration([], "rules", AS_OF, 1) is None


def test_what_was_promised_too_high_is_cut_to_what_came_true():
    random = np.random.default_rng(0)
    said = random.uniform(0.4, 0.9, 200)
    rows = [(stated, bool(random.random() < stated - 0.2)) for stated in said]
    table = recalibration(outcomes(rows), "rules", AS_OF, LEAST)
    promised = np.arange(0.45, 0.9, 0.05)
    sized = np.array([sized_by(table, stated) for stated in promised])
    assert np.abs(sized - (promised - 0.2)).mean() < 0.1


def test_few_outcomes_are_drawn_towards_the_base_rate():
    rows = [(0.5 + step / 100, step % 3 == 0) for step in range(LEAST)]
    table = recalibration(outcomes(rows), "rules", AS_OF, LEAST)
    assert table is not None
    base = np.mean([beat for _, beat in rows])
    assert all(abs(value - base) <= LEAST / TRUSTED_FROM for value in table.happened)


def test_it_says_from_how_many_outcomes_until_when():
    table = recalibration(outcomes([(0.6, False)] * 40), "rules", AS_OF, LEAST)
    assert table is not None
    assert in_words(0.6, recalibrated(table, 0.6)) == (
        "stated 0.60, recalibrated 0.00 from 40 outcomes known until 2012-06-28"
    )


def test_of_a_proposer_with_too_few_outcomes_a_confidence_counts_as_the_lowest() -> None:
    again = unproven((), "proposal", date(2012, 6, 29), 30)
    assert (again.confidence, again.outcomes, again.needed) == (0.0, 0, 30)
    said = in_words(0.9, again)
    assert (
        said == "stated 0.90, counts as 0.00 until 30 outcomes of this proposer are known (0 are)"
    )
