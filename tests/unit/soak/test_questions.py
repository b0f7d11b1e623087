"""The five questions of `make soak` know every cause that a ticker was not bought for."""

import pytest

from contracts.not_bought import Cause
from libs.report.reports import CANNOT_BE_READ
from tests.chaos.questions import Answers, Json, _Lane

LOST = {"cut": True, "size_bytes": 9_000_000, "preview": "{"}


def lane(**contracts: Json) -> _Lane:
    view = {"as_of": "2012-06-29", "kind": "decision"}
    one = {"name": "rules", "status": "completed", "contracts": contracts}
    return _Lane(Answers(), "/cycles/1", view, one)


def cause(kind: Cause, why: str = "") -> Json:
    return {"ticker": "IBM", "cause": kind.value, "name": "", "limit": "", "why": why}


@pytest.mark.parametrize("kind", Cause)
def test_every_cause_is_judged(kind: Cause) -> None:
    known = lane(daily_picks={"unstable": []}, plan={"assets": []})
    assert isinstance(known._is_true(cause(kind)), bool)


@pytest.mark.parametrize(
    ("contracts", "is_true"),
    [
        ({"daily_picks": LOST, "plan": LOST}, True),
        ({"daily_picks": LOST}, False),
        ({"plan": LOST}, False),
        ({}, False),
    ],
)
def test_what_cannot_be_read_is_on_record_and_cannot(
    contracts: dict[str, Json], is_true: bool
) -> None:
    why = f"daily picks and plan {CANNOT_BE_READ}"
    assert lane(**contracts)._is_true(cause(Cause.UNREADABLE, why)) is is_true
