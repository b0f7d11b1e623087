"""What a node of the operation tree says of an operation."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest

from services.console.views import strategy
from services.console.views.tree import operation_node

AT = datetime(2026, 11, 22, tzinfo=UTC)
CYCLE = UUID(int=1)
ASSESSMENT = {
    "verdict": "mediocre",
    "strengths": ["a", "b"],
    "weaknesses": ["c", "d"],
    "suggestions": ["e", "f"],
    "path": "/desk/strategies/mine/assessment.json",
}


def row(**changes: Any) -> dict[str, Any]:
    """A finished assessment as the table has it."""
    return {
        "op_id": UUID(int=2),
        "cycle_id": CYCLE,
        "pipeline": "claude",
        "state": "assessing",
        "step": "assess",
        "service": "assessment",
        "attempt": 1,
        "status": "completed",
        "epoch": 1,
        "progress": None,
        "tokens": 1200,
        "cost_usd": 0,
        "input_tokens": 1000,
        "output_tokens": 200,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "result": orjson.dumps(ASSESSMENT),
        "failure": None,
        "created_at": AT,
        "started_at": AT,
        "finished_at": AT,
        **changes,
    }


def test_an_assessments_summary_has_all_that_was_thought_where_it_is_and_what_it_used() -> None:
    node = operation_node(row())

    assert node.result_summary == {
        "success": True,
        **{name: ASSESSMENT[name] for name in ("verdict", "strengths", "weaknesses")},
        "suggestions": ASSESSMENT["suggestions"],
        "assessment_path": ASSESSMENT["path"],
        "input_tokens": 1000,
        "output_tokens": 200,
    }


def test_a_step_of_a_strategy_cycle_names_its_parent() -> None:
    assert operation_node(row()).metadata == {"parent_operation_id": str(CYCLE)}
    assert operation_node(row(step="plan", result=None)).metadata == {}


def test_a_design_that_a_later_version_wrote_takes_no_strategy_cycle_from_the_list() -> None:
    lanes = {"claude": {"name": "claude", "state": "training"}}
    cycle = {"state": orjson.dumps({"lanes": lanes}), "status": "running"}
    design = row(step="design", state="designing", result=b'{"of": "a later version"}')

    node = strategy.parent(operation_node(row()), cycle, [design])

    assert (node.type, node.metadata["phase"]) == (strategy.PARENT, "training")
    assert node.metadata["design_op_id"] == str(design["op_id"])


@pytest.mark.parametrize("told", [None, b'{"percentage": 90.0, "step": "figures"}'])
def test_what_is_completed_is_done_to_a_hundred_percent(told: bytes | None) -> None:
    assert operation_node(row(progress=told)).progress.percentage == 100
    running = operation_node(row(progress=told, status="running", result=None))
    assert running.progress.percentage == (90 if told else 0)
