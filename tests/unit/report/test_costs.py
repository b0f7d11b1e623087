"""Costs of cycles of which nothing was paid."""

from datetime import UTC, datetime
from uuid import uuid4

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.operation import OperationStatus, OperationView
from libs.report import costs
from libs.report.sections import text_of

CYCLE = uuid4()


def node(type: str, name: str) -> OperationView:  # noqa: A002 - the view's own word
    return OperationView(
        op_id=uuid4(),
        cycle_id=CYCLE,
        type=type,
        name=name,
        status=OperationStatus.COMPLETED,
        state="memorizing",
        created_at=datetime(2026, 11, 27, tzinfo=UTC),
    )


def test_calls_are_those_of_the_provider_that_was_asked() -> None:
    """A model that could not pay its first call was not asked; the rules wrote the memory."""
    view = CycleView(
        cycle_id=CYCLE,
        pipelines=(
            PipelineView(
                name="claude",
                account="main",
                provider="claude",
                state="memorizing",
                status=CycleStatus.FAILED,
            ),
        ),
    )
    nodes = [node("operation", "memorizing/memorize"), node("model", "rules:rules")]
    told = costs.of(view, nodes).facts[0]
    assert "; 1 call of the rules provider" in text_of(told.lines.items[0])
