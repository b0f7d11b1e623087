"""What holds for any facts and any dict."""

import json
import math
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.exit_signal import ExitFormat
from libs.quant.exits.rules import Fired, rules_of
from libs.quant.exits.terms import ExitTerms
from services.exit_signal.logic import SellablePart, assess
from services.exit_signal.report import SEVERITIES, flags_of, result_of, shaped, snapshot_of
from tests.unit.services.exit_signal.conftest import NAMED, facts, position

ANY_NUMBER = st.floats() | st.none()
MONTHS = st.lists(ANY_NUMBER, max_size=6)
TERMS = st.sampled_from(
    [
        {},
        {"stop_pct": 8},
        {"stop_price": Decimal(40)},
        {"stop_loss": {"pct": 10}, "take_profit": {"pct": 10, "sell_pct": 33}},
        {"hold_period": {"sessions": 3}, "trailing_stop": {"pct": 1, "sell_pct": 0.01}},
    ]
)
FACTS = st.builds(
    facts,
    months=MONTHS,
    basket=st.dictionaries(st.text(max_size=3), MONTHS, max_size=3),
    price=st.floats(0, 1e9),
    average_cost=st.floats(0, 1e9),
    sessions_held=st.integers(0, 10_000) | st.none(),
    close=st.floats(0, 1e9) | st.none(),
    peak=st.floats(0, 1e9) | st.none(),
)

SCALARS = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        7,
        10**400,
        0.5,
        -2.0,
        1e300,
        math.nan,
        math.inf,
        -math.inf,
        "",
        "7",
        "nan",
        "x",
        "\ud800",
        "\x00",
        "long" * 2_000,
        b"x",
        (1,),
        {1},
        Decimal("NaN"),
        [],
        {},
        [None],
        [[]],
        {"severity": math.nan},
        object(),
    ]
)
WORDS = st.sampled_from(
    [
        "status",
        "ticker",
        "error",
        "overall_assessment",
        "signals",
        "trade_eligible",
        "recommended_actions",
        "position",
        "sizing",
        "shares",
        "sell_quantity",
        "severity",
        "rule_name",
        "triggered",
        "is_primary",
        "action",
        "quantity",
        "order_type",
        "verdict",
        "success",
        "STRONG EXIT",
        "EXIT",
        "MONITOR",
        "HOLD",
        "ERROR",
    ]
)
LEAVES = SCALARS | WORDS
BRANCHES = st.dictionaries(WORDS, LEAVES, max_size=6)
TREES = LEAVES | BRANCHES | st.lists(BRANCHES, max_size=7)
ANY_DICT = st.dictionaries(WORDS, TREES, max_size=6)
LIKELY = st.fixed_dictionaries(
    {"status": st.just("success")},
    optional={
        "overall_assessment": WORDS,
        "signals": TREES,
        "recommended_actions": TREES,
        "position": TREES,
        "sizing": TREES,
        "trade_eligible": SCALARS,
    },
)


@given(FACTS, TERMS)
def test_a_severity_lies_between_nought_and_one(given_facts: Any, terms: Any) -> None:
    for rule in rules_of(ExitTerms.model_validate(terms)):
        finding = rule.judge(given_facts)
        if isinstance(finding, Fired):
            assert 0 <= finding.severity <= 1
            assert 0 < finding.sell_pct <= 100


@given(FACTS, TERMS, st.integers(1, 10**12), st.integers(0, 10**12))
def test_a_sale_never_exceeds_what_is_held_and_free(
    given_facts: Any, terms: Any, shares: int, promised: int
) -> None:
    held = SellablePart(position(str(shares)), promised=Decimal(promised))
    sizing = assess(given_facts, ExitTerms.model_validate(terms), held).sizing
    if sizing is not None:
        assert 1 <= sizing.quantity <= held.free
        assert sizing.quantity == int(sizing.quantity)
        assert sizing.quantity + sizing.remaining == shares
        assert sizing.stop_price is None or (sizing.stop_price < 100 and sizing.remaining > 0)


@given(FACTS, TERMS)
def test_a_whole_check_is_fit_for_json_in_every_format(given_facts: Any, terms: Any) -> None:
    held = SellablePart(position())
    found = assess(given_facts, ExitTerms.model_validate(terms), held)
    full = result_of(NAMED, held, (), found)
    for shape in ExitFormat:
        json.dumps(shaped(full, shape), allow_nan=False)


@settings(max_examples=100)
@given(ANY_DICT | LIKELY)
def test_the_snapshot_of_any_dict_is_fit_for_json_and_capped(any_dict: Any) -> None:
    snapshot = snapshot_of(any_dict)

    json.dumps(snapshot, allow_nan=False).encode()
    assert len(snapshot["signals"]) <= 5
    assert len(snapshot["recommended_actions"]) <= 3
    for signal in snapshot["signals"]:
        assert 0 <= signal["severity"] <= 1
        assert math.isfinite(signal["severity"])


@settings(max_examples=100)
@given(ANY_DICT | LIKELY)
def test_flags_are_sorted_by_severity_whatever_they_are_made_of(any_dict: Any) -> None:
    for snapshot in (any_dict, snapshot_of(any_dict)):
        ranks = [SEVERITIES[flag["severity"]] for flag in flags_of(snapshot)]
        assert ranks == sorted(ranks)
        json.dumps(flags_of(snapshot), allow_nan=False).encode()
