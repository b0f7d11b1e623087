"""What the account's own exit rules would sell at a close is not bought at it, whoever trades."""

from datetime import date
from typing import Any

import pytest

from contracts.cycle import CycleRequest, CycleStatus
from contracts.message import Pipeline
from libs.runtime.settings import Settings
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.flow.conftest import thinking_routes

TURNED = date(2012, 6, 29)
"""AAPL made 1.08% in June, 2.37% a month in the three before: momentum says sell."""
QUIET = date(2012, 8, 31)


@pytest.mark.parametrize("provider", ["rules", "coin"])
async def test_nothing_is_bought_that_an_exit_rule_would_sell_at_the_same_close(
    provider: str,
) -> None:
    settings = Settings()
    bought = {}
    for day in (TURNED, QUIET):
        routes = [*await thinking_routes(settings), *broker_of_the_imagination()]
        desk = InProcessDesk(routes, settings)
        ended = await desk.run(
            CycleRequest(
                idempotency_key="a",
                as_of=day,
                universe=("AAPL",),
                pipelines=(Pipeline(name=provider, provider=provider),),
            )
        )
        assert ended.state.status is CycleStatus.COMPLETED, ended.state.reason
        validation: Any = desk.contract("validate", provider)
        bought[day] = [each["asset"] for each in validation["decisions"]]
        research: Any = desk.contract("analyst", provider)
        (finding,) = research["tickers"]
        assert [each["triggered"] for each in finding["exits"]] == [day == TURNED]
    assert bought == {TURNED: [], QUIET: ["AAPL"]}
