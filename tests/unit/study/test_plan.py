"""What a study would cost: by its file alone, and nobody is asked."""

import asyncio
import re
import socket
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from contracts.study import StepCalls, Study
from deploy.reference.plan_sample import EXAMPLE, ROOT, written
from libs.runtime.settings import Settings
from libs.study import plan as module
from libs.study.estimate import NO_RECORD, STAGES, StageSteps, by_step
from libs.study.plan import NoPlan, StudyPlan
from services.cli.studies.file import read_study

YEAR = {"first": "2011-11-01", "last": "2012-12-31"}
EXAMPLES = sorted((ROOT / "examples" / "studies").glob("*.yaml"))


def plan_of(study: Study, settings: Settings, recorded: StageSteps = NO_RECORD) -> StudyPlan:
    return asyncio.run(module.plan_of(study, settings, recorded))


@pytest.fixture
def nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a connection fails the test."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a plan asks nobody")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("nobody_to_ask")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_each_example_is_a_study_whose_plan_asks_nobody(path: Path) -> None:
    study = read_study(path)

    plan = plan_of(study, Settings())

    assert plan.dates == study.dates.count
    assert plan.usd_most <= study.budget.cost_usd


@pytest.mark.usefixtures("nobody_to_ask")
def test_the_plan_of_a_paid_model_has_its_probes_and_stays_within_its_budget() -> None:
    study = read_study(ROOT / EXAMPLE)

    plan = plan_of(study, Settings())

    named, masked, *controls = plan.arms
    assert (plan.cells, study.probe) == (study.dates.count + study.probe, 40)
    assert (named.probes, masked.probes) == (0, 40)
    assert masked.calls == named.calls + 40
    assert masked.tokens > named.tokens
    spent = [arm.usd for arm in plan.arms if arm.usd is not None]
    assert len(spent) == len(plan.arms), "every model of the example has a price"
    assert Decimal(0) < sum(spent) < study.budget.cost_usd
    assert sum(arm.tokens for arm in plan.arms) < study.budget.tokens
    assert {arm.calls for arm in controls} == {0}


@pytest.mark.slow
def test_the_plan_in_the_docs_is_the_one_that_is_printed() -> None:
    """Where it is not: `make contracts`."""
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")

    assert written(page) == page


def test_what_a_probe_adds_is_counted_for_masked_models_alone() -> None:
    file = {
        "name": "it",
        "dates": {"first": "2012-01-03", "last": "2012-06-29", "count": 5},
        "universe": ["AAPL", "IBM"],
        "arms": [
            {"name": "blind", "provider": "claude", "masked": True},
            {"name": "rules-masked", "masked": True},
        ],
    }
    without = plan_of(Study.model_validate(file), Settings())
    probed = plan_of(Study.model_validate({**file, "probe": 5}), Settings())

    calls = [(a.calls, b.calls) for a, b in zip(without.arms, probed.arms, strict=True)]
    assert calls == [(65, 70), (0, 0)]
    assert probed.minutes > without.minutes


def file_of(**fields: Any) -> Study:
    return Study.model_validate(
        {
            "name": "it",
            "dates": {"first": "2012-01-03", "last": "2012-06-29", "count": 10},
            "universe": ["AAPL", "IBM"],
            "arms": [{"name": "claude", "provider": "claude"}, {"name": "rules"}],
            **fields,
        }
    )


def step(name: str, **fields: Any) -> StepCalls:
    known = {"calls": 20, "calls_a_step": 2, "input_tokens": 1_000, "output_tokens": 100}
    return StepCalls(provider="claude", step=name, **{**known, "seconds": 3, **fields})


def test_what_calls_take_is_read_from_the_record_where_it_has_them_and_the_plan_says_so() -> None:
    whole = by_step([step(stage.step) for stage in STAGES.values()])
    part = by_step([step("picks")])

    by_record, mixed, stated = (
        plan_of(file_of(), Settings(), recorded) for recorded in (whole, part, {})
    )

    claude, rules = by_record.arms
    assert (claude.calls, claude.tokens, claude.recorded) == (140, 140 * 1_100, 140)
    assert (rules.calls, rules.tokens) == (0, 0)
    assert by_record.minutes == pytest.approx(10 * 14 * 3 / 2 / 60, abs=0.1)
    assert by_record.estimates == ("claude: medians of 140 calls on this desk's record",)
    assert "of 20 calls on this desk's record; of sentiment, planner" in mixed.estimates[0]
    assert mixed.arms[0].tokens < stated.arms[0].tokens
    assert "no call is on this desk's record; supposed: 3,000 tokens" in stated.estimates[0]
    assert stated.arms[0].recorded == 0


@pytest.mark.usefixtures("nobody_to_ask")
@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"universe": ["AAPL", "GOOGL"]}, "universe: GOOGL is not in source .* GOOG"),
        ({"dates": {"sessions": ["2031-01-02"]}}, "dates: 2031-01-02 lies after"),
        ({"dates": {"sessions": ["2012-06-30"]}}, "dates: 2012-06-30 is a weekend .*2012-06-29"),
        ({"dates": {"sessions": ["2013-03-01"]}}, "horizons: .* no horizon is over by then"),
        ({"arms": [{"name": "a", "provider": "cluade"}]}, "no provider is named 'cluade'.*claude"),
    ],
)
def test_what_the_recorded_data_does_not_have_is_refused_with_what_was_probably_meant(
    fields: dict[str, Any], why: str
) -> None:
    with pytest.raises(NoPlan) as refused:
        plan_of(file_of(**fields), Settings())

    assert re.search(why, refused.value.message)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"arms": [{"name": "rules"}]}, "rules is the only arm"),
        ({"arms": [{"name": "m", "provider": "claude", "masked": True}]}, "m has no arm of the"),
        ({}, "claude: nobody has said when its knowledge ended"),
        ({"budget": {"cell_tokens": 10_000}}, "budget: a cell takes about"),
        ({"kind": "path"}, "a path is scored as accounts"),
        (
            {"universe": ["AAPL", "MSFT"], "dates": {**YEAR, "count": 40}},
            "at 40 dates, of which 2 lie within one week; so it clears no one: take 34 dates",
        ),
        (
            {"dates": {"sessions": ["2012-11-01", "2012-12-03"]}},
            "look-ahead: the canary, which knows the prices to come, may not be seen",
        ),
    ],
)
def test_what_a_study_will_not_show_stands_in_its_plan(fields: dict[str, Any], said: str) -> None:
    assert [note for note in plan_of(file_of(**fields), Settings()).notes if said in note]


@pytest.mark.parametrize(
    "fields",
    [
        {"universe": ["AAPL", "MSFT"], "dates": {**YEAR, "count": 50}, "horizons": [5]},
        {"kind": "path", "dates": {**YEAR, "every": 5}},
    ],
)
def test_a_canary_that_will_be_seen_or_is_not_asked_for_has_no_note(fields: dict[str, Any]) -> None:
    notes = plan_of(file_of(**fields), Settings()).notes

    assert not [note for note in notes if "canary" in note]


def test_a_horizon_that_is_over_at_fewer_dates_is_planned_with_those() -> None:
    days = {"sessions": ["2012-11-01", "2012-12-03", "2013-02-15"]}

    plan = plan_of(file_of(dates=days, horizons=[5, 20]), Settings())

    assert [row.dates for row in plan.horizons] == [3, 2]
    assert any(
        note.startswith("horizon 20: over") and " 2 of 3 dates" in note for note in plan.notes
    )


def test_of_live_data_the_plan_leaves_the_tickers_to_the_desk() -> None:
    recent = {"sessions": ["2024-03-01", "2024-04-01"]}

    plan = plan_of(
        file_of(universe=["AAPL", "HELLO"], dates=recent), Settings(market={"source": "yahoo"})
    )

    assert any(note.startswith("tickers: of live data only the desk") for note in plan.notes)


def test_the_calls_of_a_stage_that_an_arm_is_without_are_not_planned() -> None:
    arms = [
        {"name": "whole", "provider": "claude"},
        {"name": "less", "provider": "claude", "without": ["trader", "risk"]},
    ]
    whole, less = plan_of(file_of(arms=arms), Settings()).arms
    assert (whole.calls, less.calls) == (130, 90)
    assert less.tokens < whole.tokens
