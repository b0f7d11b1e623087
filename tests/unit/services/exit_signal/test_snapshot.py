"""The snapshot: what to decide by (test cases 1 to 6 of the plan that exit signals come from)."""

import math

import pytest

from services.exit_signal.report import ACTIONS_MAX, SIGNALS_MAX, error_of, snapshot_of
from tests.unit.services.exit_signal.conftest import (
    BAD,
    CRASHING,
    FALLING,
    NAMED,
    RISING,
    result,
)


def test_a_check_in_which_nothing_fires_says_hold_and_is_no_trade() -> None:  # 1
    snapshot = snapshot_of(result(RISING))

    assert snapshot["verdict"] == "AAPL: HOLD"
    assert snapshot["trade_eligible"] is False
    assert snapshot["recommended_actions"] == []
    assert snapshot["sell_quantity"] == 0


@pytest.mark.parametrize(
    ("shares", "sold"), [("10.5", "5.25"), ("100000000.123456", "50000000.061728")]
)
def test_parts_of_a_share_are_told_to_the_last_place(shares: str, sold: str) -> None:
    snapshot = snapshot_of(result(FALLING, shares=shares, rest_shares_min=0, rest_value_min=0))

    assert snapshot["verdict"].endswith(f"sell {sold} of {shares} shares")
    assert (snapshot["shares"], snapshot["sell_quantity"]) == (float(shares), float(sold))
    tiny = snapshot_of(result(FALLING, shares="0.000001"))
    assert tiny["verdict"].endswith("sell 0.000001 of 0.000001 shares")


def test_a_primary_rule_that_fires_says_how_many_shares_to_sell() -> None:  # 2
    snapshot = snapshot_of(result(FALLING))

    assert snapshot["verdict"] == "AAPL: EXIT (momentum) — sell 26 of 53 shares"
    assert snapshot["trade_eligible"] is True
    assert snapshot["shares"] == 53
    assert snapshot["sell_quantity"] == 26
    assert snapshot["recommended_actions"] == [
        {"action": "sell", "ticker": "AAPL", "quantity": 26, "order_type": "market"}
    ]


def test_a_check_that_could_not_be_made_says_so_and_has_no_signals() -> None:  # 3
    snapshot = snapshot_of(error_of(NAMED, "not_held", "nothing of it is held"))

    assert snapshot == {
        "ticker": "AAPL",
        "status": "error",
        "verdict": "Exit signal check failed for AAPL: nothing of it is held",
        "overall_assessment": "UNKNOWN",
        "signal_count": 0,
        "signals": [],
        "trade_eligible": False,
        "recommended_actions": [],
    }


def test_each_signal_is_told_by_rule_trigger_severity_rank_and_status() -> None:  # 4
    snapshot = snapshot_of(result(FALLING, BAD))

    assert snapshot["signal_count"] == 2
    assert snapshot["signals"] == [
        {
            "rule_name": "momentum",
            "triggered": True,
            "severity": 1.0,
            "is_primary": True,
            "status": "ok",
        },
        {
            "rule_name": "regime",
            "triggered": True,
            "severity": pytest.approx(0.297, abs=1e-4),
            "is_primary": False,
            "status": "ok",
        },
    ]


def test_at_most_three_actions_and_five_signals_are_told_but_all_signals_are_counted() -> None:  # 5
    full = result(CRASHING, stop_pct=8)
    full["recommended_actions"] = full["recommended_actions"][:1] * 5
    full["signals"] = full["signals"][:1] * 7

    snapshot = snapshot_of(full)

    assert len(snapshot["recommended_actions"]) == ACTIONS_MAX == 3
    assert len(snapshot["signals"]) == SIGNALS_MAX == 5
    assert snapshot["signal_count"] == 7


@pytest.mark.parametrize(
    "severity", [None, math.nan, math.inf, -math.inf, "nan", "much", [], {}, True, 10**400]
)
def test_a_severity_that_is_no_number_is_told_as_nought(severity: object) -> None:  # 6
    full = result(FALLING)
    full["signals"][0]["severity"] = severity

    assert snapshot_of(full)["signals"][0]["severity"] == 0.0


def test_a_sale_and_its_stop_are_both_told() -> None:
    actions = snapshot_of(result(CRASHING, stop_pct=8))["recommended_actions"]

    assert [(each["action"], each["quantity"], each["order_type"]) for each in actions] == [
        ("sell", 39, "market"),
        ("stop", 14, "stop"),
    ]


SIX = {
    "stop_loss": {"pct": 60},
    "take_profit": {"pct": 200},
    "hold_period": {"sessions": 5_000},
    "trailing_stop": {"pct": 5},
}
"""With momentum and the regime more rules than a snapshot has room for."""
FALLEN = {"sessions_held": 3, "close": 90.0, "peak": 100.0}


def test_a_rule_that_fired_is_shown_first_however_many_are_quiet() -> None:
    snapshot = snapshot_of(result(RISING, seen=FALLEN, **SIX))

    assert snapshot["overall_assessment"] == "EXIT (trailing_stop)"
    assert snapshot["signal_count"] == 6
    assert len(snapshot["signals"]) == SIGNALS_MAX
    assert snapshot["signals"][0]["rule_name"] == "trailing_stop"
    assert snapshot["signals"][0]["triggered"] is True


def test_a_rule_that_could_not_be_evaluated_is_shown_before_quiet_ones() -> None:
    snapshot = snapshot_of(result(RISING, **SIX))  # when it was opened, and its peak: not known

    assert [each["status"] for each in snapshot["signals"]] == ["error", "error", "ok", "ok", "ok"]


def test_the_price_of_the_stop_is_told_beside_the_actions() -> None:
    assert snapshot_of(result(CRASHING, stop_pct=8))["stop_price"] == "92.00"
    assert snapshot_of(result(CRASHING))["stop_price"] is None
