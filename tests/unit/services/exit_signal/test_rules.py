"""The exit rules: when each fires, how severely, and when it cannot say."""

import math
import statistics
from datetime import date
from typing import Any

import pytest

from libs.quant.exits.rules import (
    Finding,
    Fired,
    NoSignal,
    NotEvaluated,
    rules_of,
)
from libs.quant.exits.terms import ExitTerms
from tests.unit.services.exit_signal.conftest import BAD, CRASHING, FALLING, RISING, facts


def judged(rule: str, *, terms: dict[str, Any] | None = None, **given: Any) -> Finding:
    rules = {each.name: each for each in rules_of(ExitTerms.model_validate(terms or {}))}
    return rules[rule].judge(facts(**given))


def fired(rule: str, **given: Any) -> Fired:
    found = judged(rule, **given)
    assert isinstance(found, Fired)
    return found


def test_momentum_fires_where_the_last_month_is_below_the_mean_of_the_three_before() -> None:
    found = fired("momentum", months=(0.04, 0.0, 0.02, 0.01))

    assert found.values["mean_before"] == pytest.approx(0.02)
    assert found.values["gap"] == pytest.approx(-0.01)
    assert found.severity == pytest.approx(0.5)  # 1 point, a spread of 2


def test_momentum_is_quiet_at_the_mean_itself_and_above_it() -> None:
    assert isinstance(judged("momentum", months=(0.01, 0.02, 0.03, 0.02)), NoSignal)
    assert isinstance(judged("momentum", months=RISING), NoSignal)


@pytest.mark.parametrize(
    ("gap", "terms", "fires"),
    [
        (0.005, {}, True),
        (0.0049, {}, False),
        (0.02, {"momentum": {"least_gap_pct": 2}}, True),
        (0.0199, {"momentum": {"least_gap_pct": 2}}, False),
        (0.000002, {"momentum": {"least_gap_pct": 0}}, True),
        (0.0, {"momentum": {"least_gap_pct": 0}}, False),
    ],
)
def test_momentum_fires_at_its_least_gap_and_beyond(gap: float, terms: Any, fires: bool) -> None:
    found = judged("momentum", terms=terms, months=(0.01, 0.02, 0.03, 0.02 - gap))
    assert isinstance(found, Fired if fires else NoSignal)


def test_momentums_severity_is_by_the_deviation_of_up_to_a_year() -> None:
    last = (0.01, 0.02, 0.03, -0.01)
    wild = (0.2, -0.2) * 5
    year = fired("momentum", months=(*wild[:9], *last))
    assert year.values["spread_before"] == pytest.approx(statistics.stdev((*wild[:9], *last[:3])))
    assert year.severity == pytest.approx(0.03 / year.values["spread_before"])
    # A thirteenth month before counts no more, and one that is not known is left out.
    assert fired("momentum", months=(9.9, *wild[:9], *last)) == year
    some = fired("momentum", months=(None, *wild[:4], None, *last))
    assert some.values["spread_before"] == pytest.approx(statistics.stdev((*wild[:4], *last[:3])))
    assert fired("momentum", months=last).severity == 1.0


def test_momentums_severity_is_at_most_one() -> None:
    assert fired("momentum", months=CRASHING).severity == 1.0


@pytest.mark.parametrize("before", [0.01, 0.1, -0.07])
def test_momentums_severity_is_a_half_where_the_months_before_are_all_the_same(
    before: float,
) -> None:
    assert fired("momentum", months=(before, before, before, before - 0.2)).severity == 0.5


@pytest.mark.parametrize(("last", "sell_pct"), [(0.0, 50), (-0.03, 50), (-0.031, 75), (-0.9, 75)])
def test_a_gap_of_more_than_five_points_sells_three_quarters(last: float, sell_pct: int) -> None:
    assert fired("momentum", months=(0.02, 0.02, 0.02, last)).sell_pct == sell_pct


@pytest.mark.parametrize(
    "months", [(), (0.1,), (0.1, 0.1, 0.1), (None, 0.1, 0.1, 0.1), (0.1, 0.1, 0.1, math.nan)]
)
def test_momentum_without_four_complete_months_could_not_be_evaluated(months: Any) -> None:
    found = judged("momentum", months=months)
    assert isinstance(found, NotEvaluated)
    assert "4 complete months" in found.reason


def test_the_regime_fires_where_the_basket_lost_over_three_months() -> None:
    found = fired("regime", basket=BAD)

    assert found.values["basket_return"] == pytest.approx(0.99**3 - 1)
    assert found.severity == pytest.approx(10 * (1 - 0.99**3))


def test_the_regimes_severity_is_at_most_one() -> None:
    assert fired("regime", basket={"SPY": (0, -0.2, 0, 0)}).severity == 1.0


def test_the_basket_has_equal_weights_and_is_rebalanced_each_month() -> None:
    # Held without rebalancing, the two would end at (1.1 * 0.9 + 0.9 * 1.1) / 2 - 1 = -1%.
    basket = {"A": (0.0, 0.1, -0.1, 0.0), "B": (0.0, -0.1, 0.1, 0.0)}
    found = judged("regime", basket=basket)

    assert isinstance(found, NoSignal)
    assert found.values["basket_return"] == pytest.approx(0.0)


def test_a_member_without_all_three_months_is_left_out_and_counted() -> None:
    basket = {"A": (None, 0.1, 0.1, 0.1), "B": (0.1, None, 0.1, 0.1), "C": (None,) * 4}
    found = judged("regime", basket=basket)

    assert isinstance(found, NoSignal)
    assert found.values["members"] == 1
    assert "2 without all of these months left out" in found.detail


def test_a_basket_of_which_nobody_has_three_months_could_not_be_evaluated() -> None:
    assert isinstance(judged("regime", basket={}), NotEvaluated)
    assert isinstance(judged("regime", basket={"A": (0.1, None, 0.1, 0.1)}), NotEvaluated)


@pytest.mark.parametrize(("price", "fires"), [(85.0, True), (85.01, False), (60.0, True)])
def test_the_stop_loss_fires_at_its_loss_and_beyond(price: float, fires: bool) -> None:
    terms = {"stop_loss": {"pct": 15}}
    found = judged("stop_loss", terms=terms, price=price, average_cost=100.0)
    assert isinstance(found, Fired if fires else NoSignal)


@pytest.mark.parametrize(("price", "fires"), [(124.99, False), (125.0, True), (250.0, True)])
def test_the_take_profit_fires_at_its_gain_and_beyond(price: float, fires: bool) -> None:
    terms = {"take_profit": {"pct": 25}}
    found = judged("take_profit", terms=terms, price=price, average_cost=100.0)
    assert isinstance(found, Fired if fires else NoSignal)


@pytest.mark.parametrize(("held", "fires"), [(19, False), (20, True), (500, True)])
def test_the_hold_period_fires_once_it_is_over(held: int, fires: bool) -> None:
    terms = {"hold_period": {"sessions": 20}}
    found = judged("hold_period", terms=terms, sessions_held=held)
    assert isinstance(found, Fired if fires else NoSignal)


@pytest.mark.parametrize(("close", "fires"), [(90.01, False), (90.0, True), (10.0, True)])
def test_the_trailing_stop_fires_at_its_fall_from_the_peak(close: float, fires: bool) -> None:
    terms = {"trailing_stop": {"pct": 10}}
    found = judged("trailing_stop", terms=terms, peak=100.0, close=close)
    assert isinstance(found, Fired if fires else NoSignal)


@pytest.mark.parametrize(
    ("rule", "own", "given"),
    [
        ("stop_loss", {"pct": 15}, {"average_cost": 0.0}),
        ("take_profit", {"pct": 15}, {"average_cost": 0.0}),
        ("hold_period", {"sessions": 9}, {"sessions_held": None}),
        ("trailing_stop", {"pct": 15}, {"peak": None, "close": 100.0}),
    ],
)
def test_a_further_rule_without_its_facts_could_not_be_evaluated(
    rule: str, own: Any, given: Any
) -> None:
    assert isinstance(judged(rule, terms={rule: own}, **given), NotEvaluated)


def test_further_rules_are_there_only_where_they_are_named() -> None:
    assert [each.name for each in rules_of(ExitTerms())] == ["momentum", "regime"]
    terms = {"stop_loss": {"pct": 15}, "hold_period": {"sessions": 20, "primary": False}}
    rules = rules_of(ExitTerms.model_validate(terms))
    assert [(each.name, each.is_primary) for each in rules] == [
        ("momentum", True),
        ("regime", False),
        ("stop_loss", True),
        ("hold_period", False),
    ]


def test_a_rule_says_what_it_saw() -> None:
    told = fired("momentum", months=FALLING).detail
    assert told == "last month -1.00%, the 3 before it +2.00% on average"
    assert facts(opened_on=date(2012, 1, 3)).opened_on == date(2012, 1, 3)
