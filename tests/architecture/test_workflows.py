"""The subject table and the workflows fit together, and `check` sees where one does not."""

from dataclasses import replace

from contracts.cycle import KINDS, PREVIEW, PROBE
from contracts.subjects.commands import COMMANDS, EXECUTE_DECISIONS, PICK_TRADES
from contracts.subjects.events import EVENTS
from contracts.subjects.subject import SERVICES, Class
from contracts.subjects.table import QUERIES, REQUESTS
from services.orchestrator.machine.workflow import State, Step, Workflow, check
from services.orchestrator.machine.workflows import DECISION, WORKFLOWS


def steps(*workflows: Workflow) -> list[Step]:
    return [
        step
        for workflow in workflows
        for state in (*workflow.shared, *workflow.states, *filter(None, (workflow.closing,)))
        for step in state.steps
    ]


def test_the_workflows_are_sound() -> None:
    assert [problem for workflow in WORKFLOWS for problem in check(workflow)] == []


def test_the_kinds_that_a_question_may_name_are_those_of_the_workflows() -> None:
    assert {*KINDS, PREVIEW, PROBE} == {workflow.kind for workflow in WORKFLOWS}


def test_every_command_is_a_step_of_the_newest_workflows_and_once_in_each() -> None:
    newest = {workflow.kind: workflow for workflow in WORKFLOWS}
    assert newest["decision"] is DECISION
    sent = [
        [step.serves.address for step in steps(workflow) if not step.asks]
        for workflow in newest.values()
    ]
    assert {each for one in sent for each in one} == {row.address for row in COMMANDS}
    assert all(len({*one}) == len(one) for one in sent)


def test_every_older_version_sends_only_commands_that_are_still_served() -> None:
    sent = {step.serves.address for step in steps(*WORKFLOWS) if not step.asks}
    assert sent <= {row.address for row in COMMANDS}
    assert len({(each.kind, each.version) for each in WORKFLOWS}) == len(WORKFLOWS)


def test_what_an_optional_state_makes_is_never_required_later() -> None:
    optional = replace(DECISION.states[1], optional=True)
    workflow = replace(DECISION, states=(DECISION.states[0], optional, *DECISION.states[2:]))
    assert any("nothing before makes plan" in problem for problem in check(workflow))


def test_only_a_pipelines_state_may_be_optional() -> None:
    closing = State("closing", (), optional=True)
    assert "closing is optional; only a pipeline's states may be" in check(
        replace(DECISION, closing=closing)
    )


def test_no_two_rows_share_an_address_or_a_consumer() -> None:
    addresses = [row.address for row in (*REQUESTS, *COMMANDS, *QUERIES, *EVENTS)]
    assert len(addresses) == len(set(addresses))
    assert len({row.durable for row in COMMANDS}) == len(COMMANDS)


def test_every_command_goes_to_a_service_that_runs() -> None:
    assert {row.owner for row in COMMANDS} <= set(SERVICES)


def test_every_address_has_as_many_tokens_as_its_class() -> None:
    for row in (*REQUESTS, *COMMANDS, *QUERIES, *EVENTS):
        assert row.address.count(".") == 4, row.address
        assert row.kind in Class


def test_a_step_whose_contract_nobody_makes_is_named() -> None:
    early = State("early", (Step(PICK_TRADES),))
    workflow = replace(DECISION, states=(early, *DECISION.states[:3]))
    assert (
        "early/picks never starts: nothing before makes "
        "plan, portfolio, quant_report, research_report, sentiment_report" in check(workflow)
    )


def test_a_step_may_wait_for_another_of_its_state() -> None:
    *before, validating, _, _ = DECISION.states
    together = State("validating", validating.steps)
    assert check(replace(DECISION, states=(*before, together))) == []


def test_a_closing_step_may_need_nothing() -> None:
    workflow = replace(DECISION, closing=State("closing", (Step(PICK_TRADES),)))
    assert any(problem.startswith("closing/picks never starts") for problem in check(workflow))


def test_an_effect_outside_a_pipeline_is_named() -> None:
    effect = State("early", (Step(EXECUTE_DECISIONS),))
    problems = check(replace(DECISION, shared=(*DECISION.shared, effect)))
    assert any("early/execute has effects" in problem for problem in problems)


def test_a_state_or_a_contract_that_comes_twice_is_named() -> None:
    again = DECISION.states[1]
    problems = check(replace(DECISION, states=(*DECISION.states, again)))
    assert "planning makes plan again" in problems
    assert "state 'planning' comes twice" in problems
