"""Costs of cycles of which nothing was paid."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import uuid4

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.http import CostRow
from contracts.operation import OperationStatus, OperationView
from contracts.types import Usage
from libs.report import costs, model_costs
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


def row(model: str | None, tokens: int, cost_usd: str | None) -> CostRow:
    spent = Usage(input_tokens=tokens, cost_usd=None if cost_usd is None else Decimal(cost_usd))
    day, provider = date(2012, 6, 29), "claude"
    return CostRow(day=day, provider=provider, model=model, stage="plan", calls=1, usage=spent)


def test_what_cost_most_stands_first_with_its_share_of_the_whole() -> None:
    rows = [row("small", 10, "0.1"), row("large", 20, "0.2"), row("large", 30, "0.1")]
    shown = model_costs.by_key(rows, "Model", lambda one: str(one.model))
    assert [[cell.text for cell in one.cells] for one in shown.rows] == [
        ["large", "2", "50", "0.3000", "75%"],
        ["small", "1", "10", "0.1000", "25%"],
    ]


def test_no_share_is_known_where_one_model_has_no_price() -> None:
    rows = [row("small", 10, "0.1"), row("own", 20, None)]
    shown = model_costs.by_key(rows, "Model", lambda one: str(one.model))
    assert {one.cells[-1].value for one in shown.rows} == {None}
