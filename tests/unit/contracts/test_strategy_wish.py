"""What a request for a strategy cycle may say, and what other cycles may not."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from contracts.cycle import CycleRequest
from libs.report.strategies.files import spec_of

EXAMPLE = Path(__file__).parents[3] / "services/cli/desk/folder/strategy.yaml"
SPEC = spec_of(EXAMPLE.read_text())


def request(**fields: Any) -> CycleRequest:
    return CycleRequest.model_validate({"idempotency_key": "a", "kind": "strategy", **fields})


def test_a_strategy_cycle_needs_to_say_nothing() -> None:
    assert request().attempts == 1


def test_it_may_bring_a_design_or_ask_for_several() -> None:
    assert request(strategy={"spec": SPEC}).strategy is not None
    assert request(strategy={"attempts": 7}).attempts == 7


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"strategy": {"attempts": 0}}, "attempts"),
        ({"strategy": {"attempts": 21}}, "attempts"),
        ({"strategy": {"spec": SPEC, "attempts": 2}}, "the same design gives the same result"),
        ({"strategy": {"specs": SPEC}}, "specs"),
        ({"strategy": {}, "kind": "decision"}, "only a cycle of kind 'strategy'"),
        (
            {"pipelines": [{"name": "a"}, {"name": "b", "account": "b"}]},
            "a strategy cycle has one",
        ),
    ],
)
def test_what_it_may_not_say_is_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        request(**fields)
