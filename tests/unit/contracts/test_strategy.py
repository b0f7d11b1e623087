"""A strategy's design: what is refused, and that each refusal names its field."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from contracts.indicator import INDICATORS
from contracts.strategy import MlpSpec, StrategySpec
from contracts.strategy_result import AssessmentDraft, BacktestResult, loss_decrease

SPEC: dict[str, Any] = {
    "name": "rsi-drift_1",
    "hypothesis": "What has fallen too far comes back within a week.",
    "universe": ["AAPL", "MSFT"],
    "features": [{"indicator": "rsi"}, {"indicator": "return", "parameters": {"bars": 5}}],
    "model": {"kind": "mlp", "hidden": [8]},
    "entry": {"long": [{"of": "probability", "above": 0.55}]},
    "exit": {"long": [{"of": "rsi(14)", "above": 70}], "hold_bars_max": 20},
    "train": {"first": "2005-01-03", "last": "2010-12-31"},
    "held_out": {"first": "2011-01-03", "last": "2012-12-31"},
}
RESULT = {"cycle_id": "0" * 32, "op_id": "1" * 32, "as_of": "2012-12-31"}


def told(**changes: Any) -> tuple[str, str]:
    """Field and words of the first error of the spec with these changes."""
    with pytest.raises(ValidationError) as caught:
        StrategySpec.model_validate(SPEC | changes)
    error = caught.value.errors()[0]
    return ".".join(str(part) for part in error["loc"]), error["msg"]


def feature(indicator: str, **parameters: float) -> dict[str, Any]:
    return {"indicator": indicator, "parameters": parameters}


def test_a_spec_keeps_what_was_said_and_fills_in_the_defaults():
    spec = StrategySpec.model_validate(SPEC)

    assert [each.key for each in spec.features] == ["rsi(14)", "return(5)"]
    assert isinstance(spec.model, MlpSpec)
    assert spec.costs is None, "the desk's, filled in when the design is taken"
    assert spec.held_out.first == date(2011, 1, 3)
    assert StrategySpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    "name", ["../etc", "a/b", "a\\b", "..", "", "A", "1a", "a" * 61, "a b", "a\n"]
)
def test_a_name_with_a_path_or_other_letters_is_refused(name: str):
    field, _ = told(name=name)
    assert field == "name"


def test_a_name_of_sixty_letters_is_taken():
    assert StrategySpec.model_validate(SPEC | {"name": "a" * 60})


def test_an_unknown_indicator_is_named_with_those_that_exist():
    field, words = told(features=[feature("magic")], exit={"hold_bars_max": 5})
    assert field == "features.0.indicator"
    assert "unknown indicator; there are" in words
    assert "rsi" in words


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (feature("rsi", window=5), "rsi takes these parameters only: bars"),
        (feature("gap", bars=5), "gap takes no parameters"),
        (feature("rsi", bars=1), "bars must be 2 to 50"),
        (feature("rsi", bars=51), "bars must be 2 to 50"),
        (feature("rsi", bars=14.5), "must be a whole number"),
        (feature("return", bars=-1), "bars must be 1 to 250"),
        (feature("rsi", bars=float("nan")), "finite"),
        (feature("sma_cross", fast=50, slow=50), "fast must be below slow"),
    ],
)
def test_a_parameter_outside_its_limits_is_named(given: dict[str, Any], words: str):
    field, message = told(features=[given], exit={"hold_bars_max": 5})
    assert field.startswith("features.0.parameters")
    assert words in message


@pytest.mark.parametrize("bars", [2, 50])
def test_the_limits_of_a_parameter_are_allowed(bars: int):
    spec = SPEC | {"features": [feature("rsi", bars=bars)], "exit": {"hold_bars_max": 5}}
    assert StrategySpec.model_validate(spec).features[0].key == f"rsi({bars})"


def test_every_indicator_can_be_asked_for_with_its_defaults():
    spec = SPEC | {"features": [feature(name) for name in INDICATORS], "exit": {"hold_bars_max": 5}}
    keys = [each.key for each in StrategySpec.model_validate(spec).features]
    assert len(set(keys)) == len(INDICATORS)
    assert "bollinger(20, 2)" in keys


@pytest.mark.parametrize(
    ("held_out", "words"),
    [
        ({"first": "2010-12-31", "last": "2012-12-31"}, "they overlap"),
        ({"first": "2003-01-03", "last": "2004-12-31"}, "they overlap, or the held-out"),
    ],
)
def test_periods_that_overlap_or_stand_in_the_wrong_order_are_refused(held_out: Any, words: str):
    field, message = told(held_out=held_out)
    assert field == "held_out"
    assert words in message


def test_a_period_that_ends_before_it_begins_is_refused():
    field, message = told(train={"first": "2010-12-31", "last": "2005-01-03"})
    assert field == "train.last"
    assert "must be after first" in message


def test_a_rule_that_looks_ahead_is_refused():
    field, message = told(entry={"long": [{"of": "probability", "above": 0.5, "bars_ago": -1}]})
    assert field == "entry.long.0.bars_ago"
    assert "looks ahead" in message


@pytest.mark.parametrize("name", ["label", "next_open", "rsi(15)"])
def test_a_rule_on_what_is_not_known_at_the_close_is_refused(name: str):
    field, message = told(entry={"long": [{"of": name, "above": 0.5}]})
    assert field == "entry"
    assert "long.0.of: this is not known at the close" in message
    assert "rsi(14)" in message


def test_a_condition_that_compares_nothing_is_refused():
    field, message = told(entry={"long": [{"of": "probability"}]})
    assert field == "entry.long.0"
    assert "`above` or `below`" in message


def test_a_strategy_that_never_opens_or_never_closes_is_refused():
    assert told(entry={}) == (
        "entry",
        "Value error, names no condition: nothing would ever be traded",
    )
    field, message = told(exit={"stop_loss_pct": 5})
    assert field == "exit"
    assert "long: no condition and no hold_bars_max" in message


def test_what_is_named_twice_is_refused():
    assert "0 and 1 are the same ticker" in told(universe=["AAPL", "AAPL"])[1]
    same = [feature("rsi"), feature("rsi", bars=14)]
    assert "0 and 1 are the same feature" in told(features=same, exit={"hold_bars_max": 5})[1]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"universe": []}, "universe"),
        ({"universe": ["no such"]}, "universe.0"),
        ({"timeframe": "1h"}, "timeframe"),
        ({"model": {"kind": "oracle"}}, "model"),
        ({"model": {"kind": "mlp", "hiden": [3]}}, "model.mlp.hiden"),
        ({"sizing": {"position_pct": 101}}, "sizing.position_pct"),
        ({"sizing": {"capital": float("nan")}}, "sizing.capital"),
        ({"costs": {"fee_bps": -1}}, "costs.fee_bps"),
        ({"label": {"horizon_bars": 0}}, "label.horizon_bars"),
        ({"folds": {"count": 1}}, "folds.count"),
        ({"sead": 1}, "sead"),
    ],
)
def test_any_other_mistake_is_named_by_its_field(changes: dict[str, Any], field: str):
    assert told(**changes)[0] == field


def test_the_decrease_of_a_loss_that_began_at_zero_is_zero():
    assert loss_decrease(0.0, 0.5) == 0
    assert loss_decrease(0.8, 0.6) == pytest.approx(0.25)
    assert loss_decrease(0.5, 0.6) == pytest.approx(-0.2)


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("kind", ["strengths", "weaknesses", "suggestions"])
def test_an_assessment_has_two_to_four_points_of_each_kind(kind: str, count: int):
    full = {"verdict": "poor"} | dict.fromkeys(["strengths", "weaknesses", "suggestions"], "ab")
    good = {key: list(value) if len(value) == 2 else value for key, value in full.items()}
    assert AssessmentDraft.model_validate(good)
    with pytest.raises(ValidationError) as caught:
        AssessmentDraft.model_validate(good | {kind: ["point"] * count})
    assert caught.value.errors()[0]["loc"] == (kind,)


def test_a_backtest_has_one_value_of_each_series_a_session():
    good = RESULT | {
        "strategy_name": "a",
        "held_out": SPEC["held_out"],
        "capital": 1,
        "sharpe_ratio": None,
        "sortino_ratio": None,
        "win_rate": None,
        "max_drawdown": 0,
        "total_return": 0,
        "cagr": 0,
        "turnover": 0,
        "exposure": 0,
        "total_trades": 0,
        "fees": 0,
        "benchmark_return": 0,
        "benchmark_sharpe_ratio": None,
        "sessions": ["2011-01-03", "2011-01-04"],
        "equity": [1, 1],
        "benchmark": [1, 1],
        "currencies": {"AAA": "USD"},
        **dict.fromkeys(["spec_sha256", "data_sha256", "model_sha256"], "0" * 64),
    }
    assert BacktestResult.model_validate(good).total_trades == 0
    with pytest.raises(ValidationError, match="benchmark has not one value"):
        BacktestResult.model_validate(good | {"benchmark": [1]})


def test_the_example_of_the_documentation_is_a_spec():
    page = (Path(__file__).parents[3] / "docs" / "strategies.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    spec = StrategySpec.model_validate(yaml.safe_load(example))
    assert spec.name == "below-average"
