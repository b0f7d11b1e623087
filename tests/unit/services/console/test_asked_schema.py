"""What fits the published document is taken: the document says what the desk refuses."""

import json
from typing import Any

import jsonschema
import pytest

from contracts.constraints import ENFORCED
from contracts.http import _CONSTRAINTS, CycleWish, ProposalApproval, Trigger
from contracts.message import Message
from libs.bus.codec import MessageInvalid, decode
from services.console.asked_schema import Asked

HASH = "0" * 64


def fits(model: type[Message], body: Any) -> bool:
    schema = model.model_json_schema(schema_generator=Asked)
    return jsonschema.Draft202012Validator(schema).is_valid(body)


def taken(model: type[Message], body: Any) -> bool:
    try:
        decode(model, json.dumps(body).encode())
    except MessageInvalid:
        return False
    return True


def money(amount: Any) -> dict[str, Any]:
    return {"budgets": {"money": {"amount": amount}}}


def edit(quantity: Any) -> dict[str, Any]:
    return {"proposal_hash": HASH, "edits": [{"asset": "AAPL", "quantity": quantity}]}


SPEC = {"name": "a", "hypothesis": "b", "universe": ["AAPL"], "features": [{"indicator": "rsi"}]}
SPEC |= {"model": {"kind": "mlp"}, "entry": {"long": [{"of": "probability", "above": 0.5}]}}
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
    ],
)
def test_what_is_meant_fits_it_and_is_taken(model: type[Message], body: Any) -> None:
    assert fits(model, body)
    assert taken(model, body)


def test_every_constraint_that_code_enforces_is_described() -> None:
    assert set(_CONSTRAINTS) == set(ENFORCED)
