"""What is wrong is told in plain words, the same at every door, and never quotes what was given."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from contracts.cycle import CycleRequest
from contracts.cycle_query import CyclesQuery
from contracts.strategy import StrategySpec
from libs.bus.codec import MessageInvalid, decode
from libs.runtime.wording import ERRORS_MAX, describe

PYDANTICS = ("Field required", "Input should", "Extra inputs", "should be a valid", "String should")
SPEC: dict[str, Any] = {
    "name": "a",
    "hypothesis": "b",
    "universe": ["AAPL"],
    "features": [{"indicator": "rsi"}],
    "model": {"kind": "mlp"},
    "entry": {"long": [{"of": "probability", "above": 0.55}]},
    "exit": {"hold_bars_max": 20},
    "train": {"first": "2005-01-03", "last": "2010-12-31"},
    "held_out": {"first": "2011-01-03", "last": "2012-12-31"},
}


def told(model: type[BaseModel], /, **given: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate_json(json.dumps(given), extra="forbid")
    return describe(caught.value, model)


def test_a_list_of_faulty_entries_is_not_called_empty() -> None:
    assert told(CycleRequest, idempotency_key="a", pipelines=[{"provider": "rules"}]) == (
        "pipelines.0.name: is missing"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "idempotency_key: is missing"),
        ({"as_off": 1}, "as_off: unknown field; the fields are version, idempotency_key, kind"),
        ({"as_off": 1}, "did you mean as_of?"),
        ({"as_of": "2012-02-30"}, "as_of: takes a day, as in 2012-06-29"),
        ({"as_of": True}, "as_of: takes a day, as in 2012-06-29"),
        ({"universe": "AAPL"}, "universe: takes a list"),
        ({"universe": []}, "universe: must not be empty"),
        ({"universe": ["A"] * 10_000}, "universe: takes at most"),
        ({"universe": ["no ticker"]}, "universe.0: takes a ticker, such as AAPL or BRK.B"),
        ({"kind": "No Name"}, "kind: takes a name: a letter, then up to 39 of a-z, 0-9, _ and -"),
        ({"kind": 7}, "kind: takes a text"),
        ({"timeout_s": "soon"}, "timeout_s: takes a number"),
        ({"timeout_s": 0}, "timeout_s: must be more than 0"),
        ({"timeout_s": 1e9}, "timeout_s: must be at most 86400"),
        ({"approval_required": "perhaps"}, "approval_required: takes true or false"),
        ({"budgets": 7}, "budgets: takes fields with values"),
        ({"budgets": {"tokenz": 7}}, "budgets.tokenz: unknown field; the fields are "),
        ({"budgets": {"tokenz": 7}}, "did you mean tokens?"),
        ({"budgets": {"tokens": 1.5}}, "budgets.tokens: takes a whole number"),
        ({"budgets": {"money": {"amount": "x"}}}, "budgets.money.amount: takes a number"),
        ({"pipelines": [{"nam": "a"}]}, "pipelines.0.nam: unknown field; the fields are "),
    ],
)
def test_every_error_says_where_and_what_would_do(given: dict[str, Any], said: str) -> None:
    sentence = told(CycleRequest, **given)
    assert said in sentence
    assert not [each for each in PYDANTICS if each in sentence]


def test_of_a_choice_all_are_told_and_the_nearest() -> None:
    said = told(CyclesQuery, status="complted")
    assert said.startswith("status: takes running, ")
    assert said.endswith("; did you mean completed?")
    assert "'" not in said
    assert "did you mean" not in told(CyclesQuery, status="zzzz")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": {"kind": "mlp", "hiden": [8]}}, "did you mean hidden?"),
        ({"model": {"kind": "lstm"}}, "model: kind is one of mlp, logistic, gradient_boosting"),
        ({"model": {}}, "model: kind is missing"),
        ({"features": [{"indicator": "rsi", "paramters": {}}]}, "did you mean parameters?"),
        ({"entry": {"long": [{"of": "probability", "abov": 1}]}}, "did you mean above?"),
        ({"entry": {"long": [{"of": "probability"}]}}, "needs `above` or `below`"),
        ({"train": {"first": "2005-01-03"}}, "train.last: is missing"),
    ],
)
def test_fields_deep_inside_are_told_by_those_beside_them(
    changes: dict[str, Any], said: str
) -> None:
    sentence = told(StrategySpec, **(SPEC | changes))
    assert said in sentence
    assert not [each for each in PYDANTICS if each in sentence]


def test_what_is_no_json_is_told_so_with_its_place() -> None:
    with pytest.raises(MessageInvalid) as caught:
        decode(CycleRequest, b'{"idempotency_key": ')
    assert caught.value.message.startswith(
        "body: is not valid JSON: EOF while parsing a value at line 1"
    )


@pytest.mark.parametrize("secret", ["hunter2-hunter2", "x" * 5_000])
def test_no_value_is_quoted(secret: str) -> None:
    given = {"kind": secret, "as_of": secret, "universe": [secret], "timeout_s": secret}
    assert secret[:12] not in told(CycleRequest, idempotency_key="k", **given)
    assert secret[:12] not in told(CyclesQuery, status=secret, limit=secret)


def test_a_thousand_errors_are_not_all_told() -> None:
    said = told(CycleRequest, universe=["no ticker"] * 50)
    assert said.count("takes a ticker") <= ERRORS_MAX
    assert "more" in said
