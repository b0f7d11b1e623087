"""The desk's own risk score: each step from both sides, and nothing that makes it lower."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.facts import RISK_UNKNOWN
from libs.quant.risk.score import (
    RISK_CLOSES_MIN,
    RISK_CLOSES_WANTED,
    STEPS,
    RiskStep,
    measured_risk,
)

PRICES = st.lists(
    st.floats(0.01, 10_000, allow_nan=False), min_size=RISK_CLOSES_MIN, max_size=RISK_CLOSES_WANTED
)


def swinging(volatility_pct: float) -> list[float]:
    """Closes whose last 63 log returns have that volatility, and end at their high."""
    # Alternating moves of size a have the sample deviation a * sqrt(n / (n - 1)), near enough.
    move = volatility_pct / 100 / math.sqrt(252)
    return [100 * math.exp(move / 2 * (-1) ** step) for step in range(1, RISK_CLOSES_MIN + 1)]


def fallen(drawdown_pct: float) -> list[float]:
    """A year that fell evenly by that much, too slowly to be volatile."""
    last = 1 - drawdown_pct / 100
    return [last ** (day / (RISK_CLOSES_WANTED - 1)) for day in range(RISK_CLOSES_WANTED)]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.score))
def test_a_step_is_reached_by_its_volatility_and_not_just_below_it(step: RiskStep) -> None:
    assert measured_risk(swinging(step.volatility_pct * 1.02)).score == step.score
    if step.score > 0:
        assert measured_risk(swinging(step.volatility_pct * 0.98)).score == step.score - 1


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.score))
def test_a_step_is_reached_by_its_fall_from_the_high_and_not_just_below_it(step: RiskStep) -> None:
    assert measured_risk(fallen(step.drawdown_pct + 0.01)).score == step.score
    if step.score > 0:
        assert measured_risk(fallen(step.drawdown_pct - 0.01)).score == step.score - 1


@pytest.mark.parametrize(
    "closes",
    [
        [],
        [100.0] * (RISK_CLOSES_MIN - 1),
        [100.0] * RISK_CLOSES_MIN + [0.0],
        [100.0] * RISK_CLOSES_MIN + [math.nan],
        [math.inf] + [100.0] * RISK_CLOSES_MIN,
    ],
)
def test_what_cannot_be_measured_is_the_worst(closes: list[float]) -> None:
    found = measured_risk(closes)
    assert found.score == RISK_UNKNOWN == STEPS[-1].score
    assert found.volatility_pct is None
    assert found.reason


def test_a_price_that_never_moved_has_no_risk() -> None:
    assert measured_risk([10.0] * RISK_CLOSES_WANTED).score == 0


def test_only_the_last_year_counts() -> None:
    assert measured_risk([1e6] + [10.0] * RISK_CLOSES_WANTED).score == 0


@given(PRICES)
def test_every_score_is_a_step_of_the_scale_and_the_unit_of_prices_does_not_matter(
    closes: list[float],
) -> None:
    found = measured_risk(closes)
    assert found.score in {step.score for step in STEPS}
    assert found == measured_risk(closes)


@given(PRICES, st.floats(0.01, 0.99))
def test_a_further_fall_never_lowers_the_part_of_the_drawdown(
    closes: list[float], part: float
) -> None:
    lower = [*closes[1:], closes[-1] * part]
    before, after = measured_risk(closes[1:] + closes[-1:]), measured_risk(lower)
    assert (
        after.drawdown_pct is None
        or before.drawdown_pct is None
        or (after.drawdown_pct >= before.drawdown_pct)
    )
