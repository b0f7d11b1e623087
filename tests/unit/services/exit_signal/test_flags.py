"""Flags: what to look at first (test cases 7 to 15a)."""

from typing import Any

import pytest

from contracts.exit_signal import ExitFormat
from services.exit_signal.report import error_of, flags_of, shaped, snapshot_of
from tests.unit.services.exit_signal.conftest import (
    BAD,
    CRASHING,
    FALLING,
    NAMED,
    RISING,
    result,
)

UNKNOWN = (None, None, 0.01, 0.02)


def flags(**checked: Any) -> list[tuple[str, str, str]]:
    found = flags_of(snapshot_of(result(**checked)))
    return [(each["severity"], each["flag"], each["message"]) for each in found]


def test_a_check_that_could_not_be_made_is_an_error_and_nothing_else() -> None:  # 7
    snapshot = snapshot_of(error_of(NAMED, "not_held", "nothing of it is held"))
    found = flags_of(snapshot)

    assert found == [
        {
            "flag": "signal_error",
            "severity": "error",
            "message": snapshot["verdict"],
        }
    ]


def test_a_primary_rule_that_could_not_be_evaluated_is_an_error() -> None:  # 8
    assert flags(months=UNKNOWN) == [
        ("error", "primary_rule_error", "Primary rule failed — cannot determine exit status"),
        ("warning", "rule_evaluation_error", "Rule failed to evaluate: momentum"),
    ]


def test_both_rules_firing_is_a_strong_exit() -> None:  # 9
    told = "Both momentum and regime signals triggered — strong exit signal"
    assert ("warning", "strong_exit", told) in flags(months=FALLING, basket=BAD)
    assert "exit_signal" not in [flag for _, flag, _ in flags(months=FALLING, basket=BAD)]


def test_the_primary_rule_firing_alone_is_an_exit() -> None:  # 10
    told = "Primary momentum signal triggered — exit recommended"
    assert ("warning", "exit_signal", told) in flags(months=FALLING)


def test_a_secondary_rule_firing_alone_is_watched() -> None:  # 11
    told = "Secondary signal triggered — monitoring, no action yet"
    assert flags(months=RISING, basket=BAD) == [("info", "monitor", told)]


def test_nothing_firing_is_a_success() -> None:  # 12
    told = "No exit signals triggered — position holds"
    assert flags(months=RISING) == [("success", "hold", told)]


def test_a_proposed_sale_is_information_with_its_share_of_the_position() -> None:  # 13
    told = "Recommended: sell 39 shares (74% of position)"
    assert ("info", "trade_recommended", told) in flags(months=CRASHING)
    assert all(flag != "trade_recommended" for _, flag, _ in flags(months=RISING))


def test_rules_that_could_not_be_evaluated_are_named() -> None:  # 14
    assert ("warning", "rule_evaluation_error", "Rule failed to evaluate: regime") in flags(
        months=RISING, basket={}
    )
    assert (
        "warning",
        "rule_evaluation_error",
        "Rules failed to evaluate: momentum, regime",
    ) in flags(months=UNKNOWN, basket={})


def test_errors_come_before_warnings_information_and_success() -> None:  # 15
    order = ["error", "warning", "info", "success"]
    for checked in (
        {"months": UNKNOWN},
        {"months": CRASHING, "basket": {}},
        {"months": CRASHING, "basket": BAD},
        {"months": RISING, "basket": {}},
    ):
        severities = [severity for severity, _, _ in flags(**checked)]
        assert severities == sorted(severities, key=order.index)
        assert len(severities) >= 2


def test_a_failed_primary_rule_is_not_a_failed_check() -> None:  # 15a
    full = result(UNKNOWN)
    found = [each["flag"] for each in flags_of(snapshot_of(full))]

    assert full["status"] == "success"
    assert full["overall_assessment"] == "ERROR (momentum)"
    assert "primary_rule_error" in found
    assert "signal_error" not in found


def test_other_rules_than_the_two_are_named_in_their_stead() -> None:
    found = flags(months=RISING, stop_loss={"pct": 10}, take_profit={"pct": 20})
    assert (
        "warning",
        "exit_signal",
        "Primary take_profit signal triggered — exit recommended",
    ) in (found)


def test_three_rules_that_fired_are_not_called_both() -> None:
    seen = {"sessions_held": 3, "close": 90.0, "peak": 100.0}
    trailing = {"pct": 5}
    found = [
        (flag, message)
        for _, flag, message in flags(months=FALLING, basket=BAD, seen=seen, trailing_stop=trailing)
    ]
    told = "momentum, trailing_stop and regime signals triggered — strong exit signal"
    assert ("strong_exit", told) in found


def test_the_one_rule_that_fired_of_six_is_the_one_that_is_named() -> None:
    quiet = {"stop_loss": {"pct": 60}, "take_profit": {"pct": 200}, "hold_period": {"sessions": 99}}
    seen = {"sessions_held": 3, "close": 90.0, "peak": 100.0}
    answer = shaped(result(RISING, seen=seen, trailing_stop={"pct": 5}, **quiet), ExitFormat.AGENT)

    told = [each["message"] for each in answer["flags"]]
    assert told[0] == "Primary trailing_stop signal triggered — exit recommended"


def test_every_rule_that_failed_is_named_also_those_that_a_snapshot_has_no_room_for() -> None:
    rules = {
        "stop_loss": {"pct": 6},
        "take_profit": {"pct": 20},
        "hold_period": {"sessions": 9},
        "trailing_stop": {"pct": 5},
    }
    seen = {"average_cost": 0.0}
    answer = shaped(result(UNKNOWN, {}, seen=seen, **rules), ExitFormat.AGENT)

    assert len(answer["snapshot"]["signals"]) == 5
    (failed,) = [each for each in answer["flags"] if each["flag"] == "rule_evaluation_error"]
    for rule in ("momentum", "regime", *rules):
        assert rule in failed["message"]


@pytest.mark.parametrize(
    ("overall", "flag"), [("EXIT", "exit_signal"), ("STRONG EXIT", "strong_exit")]
)
def test_an_assessment_without_signals_is_told_in_the_usual_words(overall: str, flag: str) -> None:
    snapshot = {"status": "success", "overall_assessment": overall}
    assert [each["flag"] for each in flags_of(snapshot)] == [flag]
    assert "momentum" in flags_of(snapshot)[0]["message"]
