"""Who answers a stage: another provider as it is set, or once after the stage has failed."""

from datetime import date
from typing import Any

import pytest

from contracts.cycle import Budgets, CycleRequest, CycleStatus
from contracts.message import Pipeline
from contracts.stages import Stage
from libs.llm.provider import ModelReply, ModelRequest
from libs.llm.rules.provider import RulesProvider
from services.orchestrator.group.rows import CycleRow, dump_state, load_state
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.fakes.paid_rules import USED, PaidRules
from tests.flat_settings import settings_with
from tests.flow.conftest import thinking_routes

DAY = date(2012, 6, 29)
DECISION_STAGES: tuple[Stage, ...] = ("planner", "quant", "research", "trader", "risk", "memory")
STEPS = {
    "planner": "plan",
    "quant": "quant",
    "research": "analyst",
    "trader": "picks",
    "risk": "review",
    "memory": "memorize",
}


class Wordy(PaidRules):
    """Answers some agents in words that hold no answer, and is paid for it."""

    def __init__(self, *agents: str) -> None:
        super().__init__("wordy")
        self.agents = agents
        self.calls: list[str] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.calls.append(request.agent)
        reply = await super().complete(request)
        if request.agent not in self.agents or request.tools:
            return reply
        return reply.model_copy(update={"text": f"I would rather not say, {len(self.calls)}."})


async def desk_of(
    monkeypatch: pytest.MonkeyPatch, *providers: PaidRules, **settings: Any
) -> InProcessDesk:
    known = {"rules": RulesProvider(), **{provider.name: provider for provider in providers}}
    monkeypatch.setattr("libs.llm.registry.all_providers", lambda _: known)
    used = settings_with(**settings)
    routes = await thinking_routes(used)
    return InProcessDesk([*routes, *broker_of_the_imagination()], used)


async def ran(desk: InProcessDesk, pipeline: Pipeline, **fields: Any) -> CycleRow:
    request = CycleRequest(idempotency_key="a", as_of=DAY, pipelines=(pipeline,), **fields)
    return await desk.run(request)


def marks(contract: Any) -> list[tuple[str, str, str]]:
    return [(one["stage"], one["by"], one["why"]) for one in contract.get("substitutes", ())]


@pytest.mark.parametrize("stage", DECISION_STAGES)
async def test_any_stage_may_be_given_to_the_rules_and_costs_nothing_then(
    monkeypatch: pytest.MonkeyPatch, stage: Stage
) -> None:
    paid = PaidRules()
    desk = await desk_of(monkeypatch, paid)

    cycle = await ran(desk, Pipeline(name="paid", provider="paid", models={stage: "rules"}))

    assert cycle.state.status is CycleStatus.COMPLETED
    journal = desk.named(STEPS[stage]).journal
    assert {entry.provider for entry in journal if entry.kind == "model"} == {"rules"}
    kept = desk.contract("memorize")
    assert marks(kept) == [(stage, "rules", "setting")]
    decision = desk.contract("validate")
    assert marks(decision) == ([] if stage == "memory" else [(stage, "rules", "setting")])


async def test_a_stage_given_to_another_endpoint_is_paid_from_the_same_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paid, dear = PaidRules(), PaidRules("dear")
    desk = await desk_of(monkeypatch, paid, dear)

    cycle = await ran(desk, Pipeline(name="paid", provider="paid", stages={"trader": "dear"}))

    assert cycle.state.status is CycleStatus.COMPLETED
    assert dear.asked > 0
    assert cycle.purse.tokens_spent == (paid.asked + dear.asked) * USED.tokens
    assert desk.contract("picks")["llm"] == "dear"


async def test_a_failed_stage_is_answered_once_by_its_fallback_where_the_user_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wordy = Wordy("planner")
    desk = await desk_of(monkeypatch, wordy, model_plan_attempts_max=2)

    cycle = await ran(desk, Pipeline(name="wordy", provider="wordy", fallback={"planner": "rules"}))

    assert cycle.state.status is CycleStatus.COMPLETED
    plans = [it for it in desk.operations.values() if it.row.step == "plan"]
    assert [it.row.status for it in plans] == ["failed", "failed", "completed"]
    [mark] = desk.contract("validate")["substitutes"]
    assert (mark["stage"], mark["by"], mark["why"]) == ("planner", "rules", "fallback")
    assert mark["reason"].startswith("answer_invalid: planner")
    stored = load_state(cycle.cycle_id, dump_state(cycle.state), "running", None)
    assert stored.lanes["wordy"] == cycle.state.lanes["wordy"]
    assert stored.lanes["wordy"].substitutes == (mark,)


async def test_without_a_fallback_the_stage_fails_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = await desk_of(monkeypatch, Wordy("planner"))

    cycle = await ran(desk, Pipeline(name="wordy", provider="wordy", fallback={"trader": "rules"}))

    assert cycle.state.status is CycleStatus.FAILED
    assert "(answer_invalid)" in cycle.state.reason


async def test_a_fallback_that_fails_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    wordy, other = Wordy("planner"), Wordy("planner")
    other.name = "other"
    desk = await desk_of(monkeypatch, wordy, other, model_plan_attempts_max=3)

    cycle = await ran(desk, Pipeline(name="wordy", provider="wordy", fallback={"planner": "other"}))

    assert cycle.state.status is CycleStatus.FAILED
    assert cycle.state.reason.endswith("; it was the fallback")
    plans = [it for it in desk.operations.values() if it.row.step == "plan"]
    assert len(plans) == 4
    assert cycle.purse.tokens_spent == (wordy.asked + other.asked) * USED.tokens


async def test_a_spent_budget_is_no_reason_for_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = await desk_of(monkeypatch, PaidRules())
    pipeline = Pipeline(name="paid", provider="paid", fallback={"planner": "rules"})

    cycle = await ran(desk, pipeline, budgets=Budgets(tokens=1))

    assert cycle.state.status is CycleStatus.FAILED
    assert "(budget_exhausted)" in cycle.state.reason
    assert marks(desk.contract("memorize")) == [("memory", "rules", "fallback")]


async def test_the_settings_of_the_day_a_cycle_was_accepted_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"stages": {"planner": "rules", "memory": "rules"}, "fallback": {"trader": "rules"}}
    endpoint = {"base_url": "http://127.0.0.1:1/v1", **given}
    desk = await desk_of(monkeypatch, PaidRules(), providers={"paid": endpoint})

    cycle = await ran(desk, Pipeline(name="paid", provider="paid", models={"memory": "own"}))

    kept = cycle.pipelines["paid"]
    assert kept["stages"] == {"planner": "rules"}, "a model that the request names goes before"
    assert kept["fallback"] == {"trader": "rules"}
    assert marks(desk.contract("validate")) == [("planner", "rules", "setting")]
