"""What an account's cycles hand on: memories, outcomes, and a plan that is asked for again."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import orjson
import pytest

from contracts.cycle import CycleRequest, CycleStatus
from contracts.message import Pipeline
from libs.llm.provider import ModelReply, ModelRequest
from libs.llm.rules import provider as rules
from libs.runtime import ids
from libs.runtime.settings import Settings
from tests.fakes.in_process_desk import InProcessDesk, Stored, broker_of_the_imagination
from tests.flat_settings import settings_with
from tests.flow.conftest import thinking_routes

DAY = date(2012, 6, 29)
FOURTH, FIFTH, LATER = date(2012, 7, 6), date(2012, 7, 9), date(2012, 7, 30)
"""Independence Day lies between: the fifth session after DAY is a Monday."""


def request(key: str, as_of: date = DAY, account: str = "main") -> CycleRequest:
    pipelines = (Pipeline(name="rules", account=account),)
    return CycleRequest(idempotency_key=key, as_of=as_of, pipelines=pipelines)


def command(stored: Stored) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(stored.command)
    return found


def of_step(desk: InProcessDesk, step: str) -> Sequence[Stored]:
    return [each for each in desk.operations.values() if each.row.step == step]


async def test_the_next_cycles_inputs_carry_the_last_memory_of_the_same_account(
    desk: InProcessDesk,
) -> None:
    await desk.run(request("one"))
    memory = desk.contract("memorize")
    for day, account, expected in (
        (FOURTH, "main", memory),
        (FOURTH, "another", None),
        (DAY, "main", None),
    ):
        await desk.run(request(f"{day}{account}", day, account))
        for step in ("plan", "picks", "memorize"):
            given = command(desk.named(step)).get("agent_memory")
            assert given == expected, (day, account, step)


async def test_an_outcome_is_told_by_the_first_cycle_that_knows_it_and_by_no_other(
    desk: InProcessDesk,
) -> None:
    first = await desk.run(request("first"))
    told = []
    for day in (FOURTH, FIFTH, LATER, date(2012, 7, 31)):
        await desk.run(request(str(day), day))
        outcomes: Any = desk.contract("memorize")["outcomes"]
        told.append([each["sessions"] for each in outcomes if each["as_of"] == str(DAY)])
        assert {each["cycle_id"] for each in outcomes if each["as_of"] == str(DAY)} <= {
            str(first.cycle_id)
        }
    assert told == [[], [5], [20], []]
    given = command(desk.named("plan"))["agent_memory"]
    assert any(line.startswith("2012-06-29 after 20 sessions: ") for line in given["track_record"])


async def test_two_cycles_of_one_day_both_get_their_outcomes(desk: InProcessDesk) -> None:
    cycles = [await desk.run(request(key)) for key in ("a", "b")]
    await desk.run(request("later", FIFTH))
    outcomes: Any = desk.contract("memorize")["outcomes"]
    assert {each["cycle_id"] for each in outcomes} == {str(each.cycle_id) for each in cycles}


# --- the planner ----------------------------------------------------------------------------------


class BadPlanner(rules.RulesProvider):
    """The rules, but for plans that name a ticker nobody offered, `bad` attempts long."""

    def __init__(self, bad: int) -> None:
        self.attempts_left = bad
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await super().complete(request)
        if request.agent != "planner" or request.tools:
            return reply
        self.asked.append(request)
        # One attempt is the first answer and its repair turns.
        attempt = sum(len(each.messages) == 1 for each in self.asked)
        if attempt > self.attempts_left:
            return reply
        plan = orjson.loads(reply.text)
        return reply.model_copy(
            update={"text": orjson.dumps({**plan, "assets": ["TSLA"]}).decode()}
        )


async def planned_by(
    bad: int, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> tuple[InProcessDesk, BadPlanner]:
    model = BadPlanner(bad)
    monkeypatch.setattr("libs.llm.registry.RulesProvider", lambda: model)
    made = settings_with(**settings)
    desk = InProcessDesk([*await thinking_routes(made), *broker_of_the_imagination()], made)
    return desk, model


async def test_a_plan_that_is_not_valid_is_asked_for_again_with_its_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk, model = await planned_by(2, monkeypatch)
    cycle = await desk.run(request("one"))
    assert cycle.state.status is CycleStatus.COMPLETED
    plans = of_step(desk, "plan")
    assert [each.row.attempt for each in plans] == [1, 2, 3]
    assert [each.row.status for each in plans] == ["failed", "failed", "completed"]
    assert [each.row.op_id for each in plans] == [
        ids.operation_id(cycle.cycle_id, "rules", "planning", "plan", attempt)
        for attempt in (1, 2, 3)
    ]
    assert command(plans[0])["errors"] == []
    for again in plans[1:]:
        (error,) = command(again)["errors"]
        assert "nor held" in error
    prompt = model.asked[-1].messages[0]
    assert "Your previous answer was not accepted" in getattr(prompt, "text", "")
    assert "nor held" in getattr(prompt, "text", "")


@pytest.mark.parametrize("attempts", [1, 2, 4])
async def test_after_the_last_attempt_the_cycle_fails_with_what_was_wrong_and_what_to_do(
    attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, _ = await planned_by(99, monkeypatch, model_plan_attempts_max=attempts)
    cycle = await desk.run(request("one"))
    assert cycle.state.status is CycleStatus.FAILED
    assert [each.row.attempt for each in of_step(desk, "plan")] == [*range(1, attempts + 1)]
    reason = cycle.state.reason
    assert reason.startswith("planning/plan failed: planner (rules) ")
    assert "nor held" in reason
    assert "(answer_invalid)" in reason
    assert ("plan_attempts_max" in reason) == (attempts > 1)
    assert desk.contract("memorize")["decision"] is None


# --- a memory that fails --------------------------------------------------------------------------


class Forgetful(rules.RulesProvider):
    """A model that decides as the rules do and never writes a valid memory."""

    name = "forgetful"

    async def complete(self, request: ModelRequest) -> ModelReply:
        if request.agent == "memory":
            return ModelReply(text='{"short_term_summary": ""}')
        return await super().complete(request)


async def test_where_a_model_writes_no_memory_the_rules_do_and_the_orders_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("libs.llm.registry.CoinProvider", Forgetful)
    made = Settings()
    desk = InProcessDesk([*await thinking_routes(made), *broker_of_the_imagination()], made)
    pipelines = (Pipeline(name="forgetful", provider="coin", account="main"),)
    cycle = await desk.run(CycleRequest(idempotency_key="one", as_of=DAY, pipelines=pipelines))
    assert cycle.state.status is CycleStatus.COMPLETED
    tried = of_step(desk, "memorize")
    assert [each.row.status for each in tried] == ["failed", "completed"]
    memory: Any = desk.contract("memorize")
    [mark] = memory["substitutes"]
    assert (mark["stage"], mark["by"], mark["why"]) == ("memory", "rules", "fallback")
    assert mark["reason"].startswith("answer_invalid: memory (forgetful) ")
    assert memory["decision"]["picks"]
