"""Entry and exit rules: the side wanted at each close, from what is known then."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.strategy import Condition, EntryRules, ExitRules
from libs.quant.strategy import rules
from libs.quant.strategy.fills import FillTerms
from tests.unit.quant.strategy import panels

NAN = float("nan")


def sides(
    reading: list[float], entry: dict[str, Any], exit_: dict[str, Any], closes: Any = None
) -> list[int]:
    prices = panels.of(closes or [10.0] * len(reading))
    found = rules.sides(
        EntryRules.model_validate(entry),
        ExitRules.model_validate(exit_),
        {"x": np.array([reading])},
        prices,
        FillTerms(),
    )
    assert found.dtype == np.int8
    return found[0].tolist()


def over(number: float, **more: Any) -> list[dict[str, Any]]:
    return [{"of": "x", "above": number, **more}]


def under(number: float) -> list[dict[str, Any]]:
    return [{"of": "x", "below": number}]


def test_a_position_is_held_from_its_entry_to_its_exit():
    found = sides([0, 6, 5, 4, 3, 6], {"long": over(5)}, {"long": under(4)})
    assert found == [0, 1, 1, 1, 0, 1]


def test_both_ends_of_a_condition_are_left_out():
    assert sides([5, 5, 5], {"long": over(5)}, {"long": under(5)}) == [0, 0, 0]


def test_a_close_that_asks_for_both_leaves():
    assert sides([6, 6, 6], {"long": over(5)}, {"long": over(5)}) == [0, 0, 0]
    assert sides([6, 8, 6], {"long": over(5)}, {"long": over(7), "hold_bars_max": 9}) == [1, 0, 1]


def test_all_conditions_enter_and_any_leaves():
    entry = {"long": [{"of": "x", "above": 2, "below": 5}, {"of": "x", "above": 3}]}
    exit_ = {"long": [*under(1), *over(9)]}
    assert sides([3, 4, 6, 10, 4, 0], entry, exit_) == [0, 1, 1, 0, 1, 0]


def test_what_is_not_known_meets_no_condition():
    assert sides([NAN, 6, NAN, 3], {"long": over(5)}, {"long": under(4)}) == [0, 1, 1, 0]


def test_a_condition_can_look_back_and_not_before_the_first_close():
    assert sides([6, 0, 0, 0], {"long": over(5, bars_ago=2)}, {"long": over(99)}) == [0, 0, 1, 1]


def test_a_turn_goes_from_one_side_to_the_other_when_the_first_is_left():
    entry = {"long": over(5), "short": under(-5)}
    exit_ = {"long": under(0), "short": over(0)}
    assert sides([6, -1, -6, 1, 6, -6], entry, exit_) == [1, 0, -1, 0, 1, -1]


def test_a_close_that_enters_both_sides_enters_none():
    entry = {"long": over(5), "short": over(5)}
    assert sides([6, 6], entry, {"hold_bars_max": 3}) == [0, 0]


def test_a_position_is_held_for_no_more_sessions_than_it_may_be():
    # Decided at close 0, filled at open 1, held for sessions 1 and 2, left at open 3.
    found = sides([6, 0, 0, 0, 0], {"long": over(5)}, {"hold_bars_max": 2})
    assert found == [1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("limit", "closes", "found"),
    [
        ({"stop_loss_pct": 5}, [10, 10, 9.6, 9.4, 10], [1, 1, 1, 0, 0]),
        ({"take_profit_pct": 5}, [10, 10, 10.4, 10.6, 10], [1, 1, 1, 0, 0]),
    ],
)
def test_limits_compare_the_close_with_the_price_paid(limit: Any, closes: Any, found: list[int]):
    assert sides([6, 0, 0, 0, 0], {"long": over(5)}, limit, closes) == found


def test_a_short_is_stopped_by_a_rise():
    exit_ = {"stop_loss_pct": 5}
    assert sides([6, 0, 0, 0], {"short": over(5)}, exit_, [10, 10, 10.4, 10.6]) == [-1, -1, -1, 0]


def test_the_price_paid_is_after_slippage():
    prices = panels.of([[10.0, 10.0, 10.0]])
    entry, exit_ = EntryRules(long=(Condition(of="x", above=5),)), ExitRules(stop_loss_pct=1)
    reading = {"x": np.array([[6.0, 0.0, 0.0]])}
    free, costly = (
        rules.sides(entry, exit_, reading, prices, FillTerms(slippage_bps=bps)) for bps in (0, 150)
    )
    assert free[0].tolist() == [1, 1, 1]
    assert costly[0].tolist() == [1, 0, 0]


def test_a_reading_that_is_not_there_is_named():
    with pytest.raises(rules.UnknownReading, match=r"y; there are x"):
        rules.holds(Condition(of="y", above=0), {"x": np.zeros((1, 1))})


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_the_short_way_and_the_walk_agree(seed: int):
    """Without limits and shorts the sides are found without walking from close to close."""
    prices = panels.walk(seed, 3, 40)
    entry = EntryRules(long=(Condition(of="x", above=0.5),))
    exit_ = ExitRules(long=(Condition(of="x", below=-0.5),))
    never = exit_.model_copy(update={"hold_bars_max": 10_000})
    reading = {"x": np.random.default_rng(seed).normal(size=prices.close.shape)}
    found = [rules.sides(entry, each, reading, prices, FillTerms()) for each in (exit_, never)]
    assert np.array_equal(*found)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), cut=st.integers(1, 39))
def test_what_comes_later_changes_no_side_before(seed: int, cut: int):
    prices = panels.walk(seed, 2, 40)
    entry = EntryRules(long=(Condition(of="x", above=0.5),), short=(Condition(of="x", below=-1),))
    exit_ = ExitRules(long=(Condition(of="x", below=0),), hold_bars_max=7, stop_loss_pct=4)
    reading = np.random.default_rng(seed).normal(size=prices.close.shape)
    full = rules.sides(entry, exit_, {"x": reading}, prices, FillTerms())
    early = rules.sides(entry, exit_, {"x": reading[:, :cut]}, prices.cut(0, cut), FillTerms())
    assert np.array_equal(full[:, :cut], early)
