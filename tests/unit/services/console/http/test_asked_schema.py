"""What fits the published document is taken: the document says what the desk refuses."""

import json
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from contracts.constraints import ENFORCED
from contracts.http import _CONSTRAINTS, CycleWish, ProposalApproval, Trigger
from contracts.message import Message
from libs.bus.codec import MessageInvalid, decode
from services.console.http.asked_schema import RequestSchema

HASH = "0" * 64


def fits(model: type[Message], body: Any) -> bool:
    schema = model.model_json_schema(schema_generator=RequestSchema)
    return jsonschema.Draft202012Validator(schema).is_valid(body)


def taken(model: type[Message], body: Any) -> bool:
    try:
        made = decode(model, json.dumps(body).encode())
        if isinstance(made, CycleWish | Trigger):
            made.request("key")
    except (MessageInvalid, ValidationError):
        return False
    return True


def money(amount: Any) -> dict[str, Any]:
    return {"budgets": {"money": {"amount": amount}}}


def edit(quantity: Any) -> dict[str, Any]:
    return {"proposal_hash": HASH, "edits": [{"asset": "AAPL", "quantity": quantity}]}


def feature(name: str, **parameters: Any) -> dict[str, Any]:
    return {"indicator": name, "parameters": parameters}


LIKELY = {"of": "probability", "above": 0.5}
SPEC: dict[str, Any] = {
    "name": "a",
    "hypothesis": "b",
    "universe": ["AAPL"],
    "features": [{"indicator": "rsi"}],
}
SPEC |= {"model": {"kind": "mlp"}, "entry": {"long": [LIKELY]}}
SPEC |= {"exit": {"hold_bars_max": 5}, "train": {"first": "2005-01-03", "last": "2010-12-31"}}
SPEC |= {"held_out": {"first": "2011-01-03", "last": "2012-12-31"}}


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (CycleWish, money("")),
        (CycleWish, money("1.0000001")),
        (CycleWish, money("9" * 15)),
        (CycleWish, {"budgets": {"cost_usd": "-1"}}),
        (CycleWish, {"budgets": {"cost_usd": "NaN"}}),
        (CycleWish, {"budgets": {"cost_usd": 10**6}}),
        (CycleWish, {"budgets": {"what": 1}}),
        (CycleWish, {"strategy": {}}),
        (CycleWish, {"kind": "exit", "strategy": {"attempts": 2}}),
        (CycleWish, {"kind": "strategy", "pipelines": [{"name": "a"}, {"name": "b"}]}),
        (CycleWish, {"constraints": {"max_positions": "few"}}),
        (CycleWish, {"constraints": {"max_positions": "501"}}),
        (CycleWish, {"constraints": {"max_sector_pct": "101"}}),
        (CycleWish, {"constraints": {"exclude_tickers": "no ticker"}}),
        (CycleWish, {"constraints": {"no_buys": "perhaps"}}),
        (CycleWish, {"constraints": {"note": "a\0b"}}),
        (CycleWish, {"constraints": {"a\0b": "note"}}),
        (ProposalApproval, edit("")),
        (ProposalApproval, edit("-1")),
        (ProposalApproval, {"proposal_hash": HASH, "reason": "\0"}),
        (Trigger, {"spec": SPEC | {"name": "../etc"}}),
        (Trigger, {"spec": SPEC | {"features": [{"indicator": "tea_leaves"}]}}),
        (Trigger, {"spec": SPEC | {"features": [feature("rsi", bars=0)]}}),
        (Trigger, {"spec": SPEC | {"features": [feature("rsi", bars=2.5)]}}),
        (Trigger, {"spec": SPEC | {"features": [feature("rsi", days=5)]}}),
        (Trigger, {"spec": SPEC | {"universe": ["AAPL", "AAPL"]}}),
        (Trigger, {"spec": SPEC | {"model": {}}}),
        (Trigger, {"spec": SPEC | {"model": {"hidden": [8]}}}),
        (Trigger, {"spec": SPEC | {"entry": {}}}),
        (Trigger, {"spec": SPEC | {"entry": {"long": []}}}),
        (Trigger, {"spec": SPEC | {"entry": {"long": [{"of": "probability"}]}}}),
        (Trigger, {"spec": SPEC | {"entry": {"long": [{"of": "probability", "above": None}]}}}),
        (Trigger, {"spec": SPEC | {"exit": {}}}),
        (Trigger, {"spec": SPEC | {"exit": {"hold_bars_max": None, "long": []}}}),
        (Trigger, {"spec": SPEC | {"exit": {"short": [LIKELY]}}}),
        (Trigger, {"spec": SPEC, "attempts": 2}),
        (CycleWish, {"kind": "strategy", "strategy": {"spec": SPEC, "attempts": 2}}),
    ],
)
def test_what_is_refused_does_not_fit_the_document(model: type[Message], body: Any) -> None:
    assert not taken(model, body)
    assert not fits(model, body)


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (CycleWish, {}),
        (CycleWish, money("50000.25")),
        (CycleWish, money(0)),
        (CycleWish, {"budgets": {"cost_usd": "0.5", "tokens": 7}}),
        (CycleWish, {"kind": "strategy", "strategy": {"attempts": 2}}),
        (CycleWish, {"kind": "strategy", "strategy": None}),
        (CycleWish, {"constraints": {"max_positions": "3", "exclude_sectors": "Energy, Health"}}),
        (CycleWish, {"constraints": {"max_sector_pct": "12.5%", "note": "no tobacco"}}),
        (CycleWish, {"constraints": {"exclude_tickers": "AAPL, BRK.B", "no_buys": "true"}}),
        (ProposalApproval, edit("10.5")),
        (ProposalApproval, edit(3)),
        (Trigger, {}),
        (Trigger, {"spec": SPEC}),
        (Trigger, {"spec": SPEC, "attempts": 1}),
        (Trigger, {"spec": None, "attempts": 2}),
        (Trigger, {"spec": SPEC | {"entry": {"short": [LIKELY]}, "exit": {"short": [LIKELY]}}}),
        (Trigger, {"spec": SPEC | {"entry": {"long": [LIKELY]}, "exit": {"long": [LIKELY]}}}),
        (Trigger, {"spec": SPEC | {"entry": {"long": [{"of": "probability", "below": 1}]}}}),
        (Trigger, {"spec": SPEC | {"features": [feature("rsi", bars=5), feature("gap")]}}),
    ],
)
def test_what_is_meant_fits_it_and_is_taken(model: type[Message], body: Any) -> None:
    assert fits(model, body)
    assert taken(model, body)


def test_every_constraint_that_code_enforces_is_described() -> None:
    assert set(_CONSTRAINTS) == set(ENFORCED)
