"""What models used and may still use, answered from a real Postgres over a real bus."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from contracts.operation import OperationQuery, OperationsQuery
from contracts.subjects.operations import OPERATION, OPERATIONS
from contracts.subjects.upkeep import BUDGET
from contracts.types import Usage
from contracts.upkeep import BudgetQuery
from libs.runtime import ids

if TYPE_CHECKING:
    from libs.bus.client import Client
    from libs.postgres.pool import PoolConnection
    from libs.runtime.settings import Settings
    from tests.integration.console.conftest import Made


async def test_every_level_of_the_tree_tells_its_usage_by_sort(
    client: Client, db: PoolConnection, made: Made
) -> None:
    first = await made.operation("planning", "plan")
    second = await made.operation("deciding", "picks")
    for op_id, tokens in ((first, 60), (second, 30)):
        await db.execute(
            "update operations set input_tokens = $2, cache_read_tokens = 5 where op_id = $1",
            op_id,
            tokens,
        )

    page = await client.ask(OPERATIONS, OperationsQuery(cycle_id=made.cycle_id))
    detail = await client.ask(OPERATION, OperationQuery(op_id=first))

    nodes = {node.op_id: node for node in page.operations}
    of_first = Usage(
        input_tokens=60, cache_read_tokens=5, unsorted_tokens=35, cost_usd=Decimal("0.5")
    )
    of_second = of_first.model_copy(update={"input_tokens": 30, "unsorted_tokens": 65})
    assert (nodes[first].usage, nodes[second].usage) == (of_first, of_second)
    assert nodes[ids.pipeline_id(made.cycle_id, "rules")].usage == of_first + of_second
    assert all(node.usage.tokens == node.tokens for node in page.operations)
    assert detail.operation is not None
    assert detail.operation.usage == of_first


async def test_the_budget_says_what_is_left_of_today(
    client: Client, db: PoolConnection, settings: Settings
) -> None:
    today = datetime.now(UTC).date()
    spent = "tokens_spent, tokens_reserved, cost_usd_spent, cost_usd_reserved, input_tokens"
    for day, tokens in ((today, 700), (date(2001, 1, 2), 90), (date(2001, 1, 1), 80)):
        await db.execute(
            f"insert into day_budgets (day, {spent}) values ($1, $2, 250, 1.5, 0.25, $2)",
            day,
            tokens,
        )

    view = await client.ask(BUDGET, BudgetQuery(days=2))
    await db.execute("delete from day_budgets where day = $1", today)
    fresh = await client.ask(BUDGET, BudgetQuery())

    assert (view.today, view.resets_at.date()) == (today, today + timedelta(days=1))
    assert (view.tokens_max, view.tokens_held) == (settings.budget.day_tokens_max, 250)
    assert view.tokens_left == settings.budget.day_tokens_max - 950
    assert view.cost_usd_left == settings.budget.day_cost_usd_max - Decimal("1.75")
    assert [(each.day, each.usage.tokens) for each in view.days] == [
        (today, 700),
        (date(2001, 1, 2), 90),
    ]
    assert (fresh.tokens_left, fresh.cost_usd_held) == (settings.budget.day_tokens_max, 0)
