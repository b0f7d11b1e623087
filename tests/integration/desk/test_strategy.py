"""The strategy cycle on a whole desk: a committed spec to its end, and other ways to end."""

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from contracts.strategy import StrategySpec
from libs.report.strategies.files import spec_of
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, Json, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk, desk_in

EXAMPLE = Path(__file__).parents[3] / "services/cli/desk/folder/strategy.yaml"
WHOLE_S = 240.0
"""A whole cycle may take this long on a busy machine; on a quiet one it takes some seconds."""
CANCEL_S = 0.5
STEPS = {
    "design": ("agent_design", "design_op_id"),
    "train": ("training", "training_op_id"),
    "backtest": ("backtesting", "backtest_op_id"),
    "assess": ("agent_assessment", "assessment_op_id"),
}
LOGISTIC = {"kind": "logistic"}
ENDLESS = {"kind": "mlp", "hidden": [256, 256, 256], "epochs": 1_000}


@pytest.fixture(scope="module")
def desk(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Desk]:
    """A desk of its own: it has one strategy cycle at a time, and exports files."""
    folder = make_open_dir()
    strategies = folder / "strategies"
    with desk_in(folder, own_environment_in, strategies_dir=strategies) as running:
        yield running


@pytest.fixture(scope="module")
def strict(
    make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn
) -> Iterator[Desk]:
    """A desk with the strict profile, as `profile = "strict"` alone makes it."""
    folder = make_open_dir()
    gates = {"profile": "strict"}
    with desk_in(
        folder, own_environment_in, strategies_dir=folder / "strategies", gates=gates
    ) as running:
        yield running


@pytest.fixture
async def user(desk: Desk) -> AsyncIterator[Caller]:
    async with desk.calling("user") as caller:
        yield caller


def spec(name: str, **changes: Any) -> Json:
    """The committed spec with changes, as JSON."""
    made = {**spec_of(EXAMPLE.read_text()).model_dump(mode="json"), "name": name, **changes}
    return StrategySpec.model_validate(made).model_dump(mode="json")


def body(given: Json | None = None, **strategy: object) -> Json:
    """A request for a strategy cycle."""
    asked = {**strategy, **({"spec": given} if given else {})}
    return wish(kind="strategy", as_of="2013-03-01", strategy=asked, timeout_s=WHOLE_S)


async def nodes_of(user: Caller, cycle_id: str) -> list[Json]:
    found: list[Json] = (await user.query("operations", cycle_id=cycle_id))["operations"]
    return found


async def ended(user: Caller, asked: Json) -> tuple[Json, list[Json]]:
    """The cycle's end, and its parent operation with the others."""
    cycle_id = await user.accepted(asked)
    return await user.ended(cycle_id, WHOLE_S), await nodes_of(user, cycle_id)


async def begun(user: Caller, state: str, given: Json) -> str:
    """A cycle that is at work in this state."""
    cycle_id = await user.accepted(body(given))
    await user.events.first(WHOLE_S, cycle_id=cycle_id, state=state, type="operation_started")
    return cycle_id


async def computing() -> psutil.Process:
    """The process that trains, once it does."""
    own = psutil.Process()
    while True:
        for child in own.children():
            if "services.strategy.compute" in child.cmdline():
                return child
        await asyncio.sleep(0.02)


# --- seed 001, tasks 5.4 and 5.5 ---------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(desk: Desk) -> tuple[Json, list[Json]]:
    """The end of the committed spec's cycle, and its parent operation with the others."""

    async def run() -> tuple[Json, list[Json]]:
        async with desk.calling("user") as caller:
            return await ended(caller, body(spec("whole")))

    return asyncio.run(run())


def test_the_committed_spec_passes_both_gates_and_the_full_cycle_completes(
    whole: tuple[Json, list[Json]],
) -> None:
    end, (parent, *_) = whole
    assert end == {"status": "completed", "reason": ""}
    summary = parent["result_summary"]
    assert (summary["success"], summary["strategy_name"]) == (True, "whole")
    assert summary["verdict"] in {"promising", "mediocre", "poor"}
    assert summary["total_tokens"] == 0, "the rules cost nothing"
    gates = [parent["metadata"][name]["gate"] for name in ("training_result", "backtest_result")]
    assert [(gate["gate"], gate["passed"]) for gate in gates] == [
        ("training", True),
        ("backtest", True),
    ]
    backtest = parent["metadata"]["backtest_result"]
    assert (backtest["trials"], 0 < backtest["deflated_sharpe"] < 1) == (1, True)


def test_the_full_cycle_creates_the_strategy_and_the_assessment_file(
    desk: Desk, whole: tuple[Json, list[Json]]
) -> None:
    told, folder = whole[1][0]["metadata"], desk.settings.strategies_dir
    assert told["strategy_path"] == str(folder / "whole.yaml")
    assert told["assessment_path"] == str(folder / "whole/assessment.json")
    kept = spec_of(Path(told["strategy_path"]).read_text())
    desks = {"fee_bps": float(desk.settings.broker.fee_bps), "slippage_bps": 5.0}
    assert kept.model_dump(mode="json") == spec("whole", costs=desks)
    assessment = json.loads(Path(told["assessment_path"]).read_text())
    assert assessment["verdict"] == told["assessment_verdict"]
    assert list(assessment)[:2] == ["strategy_name", "verdict"]
    for points in ("strengths", "weaknesses", "suggestions"):
        assert 2 <= len(assessment[points]) <= 4
    report = (folder / "whole/report.html").read_text()
    for said in ("whole", "Equity", "Training loss", assessment["verdict"], "Trades"):
        assert said in report


def test_all_child_operations_are_created_below_their_parent(
    whole: tuple[Json, list[Json]],
) -> None:
    parent, *others = whole[1]
    assert (parent["type"], parent["parent_id"]) == ("agent_research", None)
    for step, (kind, name) in STEPS.items():
        child = next(node for node in others if node["name"] == step)
        assert (child["type"], child["status"]) == (kind, "completed")
        assert child["parent_id"] == parent["op_id"]
        assert parent["metadata"][name] == child["op_id"]
    trained = next(node for node in others if node["name"] == "train")
    assert trained["progress"]["percentage"] > 0
    assert parent["metadata"]["phase"] is None
    assert parent["progress"]["percentage"] == 100.0


# --- gates and attempts ------------------------------------------------------------------------


async def test_a_gate_that_fails_ends_the_cycle_with_value_and_threshold(
    desk: Desk, user: Caller
) -> None:
    end, (parent, *others) = await ended(user, body(spec("too-plain", model=LOGISTIC)))
    assert end["status"] == "failed"
    assert end["reason"].startswith("Training gate failed: loss_decrease_below_threshold (")
    assert end["reason"].endswith("% < 20.0%)")
    assert parent["error_message"] == end["reason"]
    assert parent["result_summary"] == {
        "success": False,
        "strategy_name": "too-plain",
        "verdict": None,
        "total_tokens": 0,
    }
    assert "backtest" not in {node["name"] for node in others}
    assert "assessment_op_id" not in parent["metadata"]
    report = desk.settings.strategies_dir / "too-plain/report.html"
    assert "training gate" in report.read_text()


async def test_the_strict_profile_asks_for_more_than_always_saying_the_likelier(
    strict: Desk,
) -> None:
    async with strict.calling("user") as user:
        end, (parent, *others) = await ended(user, body(spec("no-skill")))
    assert end["status"] == "failed"
    skill = r"Training gate failed: skill_below_threshold \(-\d+\.\d% < 1\.0%\)"
    assert re.fullmatch(skill, end["reason"]), "it passes the default gate, and skill alone is low"
    assert parent["error_message"] == end["reason"]
    gate = parent["metadata"]["training_result"]["gate"]
    assert (gate["profile"], gate["passed"]) == ("strict", False)
    assert [each["rule"] for each in gate["checks"] if not each["passed"]] == ["skill"]
    assert "backtest" not in {node["name"] for node in others}


async def test_a_design_that_a_gate_stops_is_followed_by_the_next(strict: Desk) -> None:
    # The same key is the same draw: on IBM alone neither of its two designs shows any skill.
    asked = {**body(attempts=2), "universe": ["IBM"], "idempotency_key": "two-attempts"}
    async with strict.calling("user") as user:
        cycle_id = await user.accepted(asked)
        first = await user.events.first(WHOLE_S, cycle_id=cycle_id, type="attempt_ended")
        assert "gate failed: " in first["data"]["reason"]
        end = await user.ended(cycle_id, WHOLE_S)
        parent, *others = await nodes_of(user, cycle_id)
    assert end["status"] == "failed"
    assert "gate failed: " in end["reason"]
    designs = [node for node in others if node["name"] == "design"]
    assert (parent["metadata"]["attempt"], parent["metadata"]["attempts"]) == (2, 2)
    assert parent["metadata"]["design_op_id"] == designs[1]["op_id"] != designs[0]["op_id"]


# --- what may go wrong -------------------------------------------------------------------------


async def test_only_one_strategy_cycle_runs_at_a_time(user: Caller) -> None:
    cycle_id = await begun(user, "training", spec("alone", model=ENDLESS))
    refused = await user.ask(body(spec("second")))
    assert (refused["outcome"], refused["code"]) == ("rejected", "active_cycle_exists")
    await user.ask({"cycle_id": cycle_id}, "cancel")
    await user.ended(cycle_id)
    end, _ = await ended(user, body(spec("after", model=LOGISTIC)))
    assert end["status"] == "failed", "the way is free again"


async def test_a_cancel_reaches_the_training_process_in_half_a_second(user: Caller) -> None:
    cycle_id = await begun(user, "training", spec("cancelled", model=ENDLESS))
    process = await computing()
    since = time.monotonic()
    await user.ask({"cycle_id": cycle_id, "reason": "enough"}, "cancel")
    psutil.wait_procs([process], timeout=10)
    assert time.monotonic() - since < CANCEL_S
    assert await user.ended(cycle_id) == {"status": "cancelled", "reason": "enough"}
    parent, *others = await nodes_of(user, cycle_id)
    assert parent["status"] == "cancelled"
    states = {node["name"]: node["status"] for node in others if node["name"] in STEPS}
    assert states == {"design": "completed", "train": "cancelled"}


async def test_a_training_process_that_is_killed_fails_the_cycle_and_never_hangs_it(
    user: Caller,
) -> None:
    cycle_id = await begun(user, "training", spec("killed", model=ENDLESS))
    os.kill((await computing()).pid, signal.SIGKILL)
    end = await user.ended(cycle_id, WHOLE_S)
    assert end["status"] == "failed"
    assert "training/train failed" in end["reason"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"train": {"first": "1995-01-03", "last": "2009-12-31"}}, "train.first"),
        ({"held_out": {"first": "2010-01-04", "last": "2015-12-31"}}, "held_out.last"),
        ({"label": {"horizon_bars": 10, "return_pct_min": 50}}, "label"),
    ],
)
async def test_what_the_prices_do_not_allow_fails_with_the_specs_field(
    user: Caller, changes: Json, field: str
) -> None:
    # Only a design that passes the training gate comes as far as its held-out period.
    quick = {**({} if field == "held_out.last" else {"model": LOGISTIC}), **changes}
    end, _ = await ended(user, body(spec("impossible", **quick)))
    assert end["status"] == "failed"
    assert field in end["reason"]


async def test_a_model_that_is_not_the_trained_one_is_never_run(desk: Desk, user: Caller) -> None:
    async with desk.held_back("strategy-backtest"):
        cycle_id = await user.accepted(body(spec("swapped", seed=77)))
        await user.events.first(
            WHOLE_S, cycle_id=cycle_id, type="state_entered", state="backtesting"
        )
        parent, *_ = await nodes_of(user, cycle_id)
        sha256 = bytes.fromhex(parent["metadata"]["training_result"]["model_sha256"])
        async with desk.postgres() as db:
            swapped = "update bodies set bytes = bytes || ' ' where sha256 = $1"
            assert await db.execute(swapped, sha256) == "UPDATE 1"
    end = await user.ended(cycle_id, WHOLE_S)
    assert end["status"] == "failed"
    assert "backtesting/backtest failed" in end["reason"]
    assert "another hash" in end["reason"]


# --- by the command line -----------------------------------------------------------------------


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


def test_the_command_line_runs_the_committed_spec_and_tells_its_story(
    deskbus: CommandLine,
) -> None:
    said = deskbus(f"agent trigger --spec {EXAMPLE} --wait")
    assert said.code == 0, said.err
    for word in (
        "completed",
        "trend-and-calm",
        "base rate",
        "buy-and-hold",
        "win_rate (",
        "mediocre",
    ):
        assert word in said.out
    told = deskbus("agent status --json").rows[0]
    assert (told["status"], told["phase"]) == ("idle", None)
    assert told["metadata"]["strategy_name"] == "trend-and-calm"
    again = deskbus("cycle replay --json")
    assert again.code == 0, again.out


def test_a_spec_that_is_wrong_is_refused_with_its_field_before_anything_runs(
    deskbus: CommandLine,
) -> None:
    wrong = deskbus.cwd / "wrong.yaml"
    wrong.write_text(EXAMPLE.read_text().replace("indicator: rsi", "indicator: tea_leaves"))
    said = deskbus(f"agent trigger --spec {wrong} --wait")
    assert said.code == 2
    assert "features.2.indicator" in said.err


def test_status_and_cancel_say_what_there_is(deskbus: CommandLine) -> None:
    assert deskbus("agent cancel").code == 3
    # A design that could end by itself might end before the next command.
    endless = deskbus.cwd / "endless.yaml"
    endless.write_text(json.dumps(spec("told-of", model=ENDLESS)))
    started = deskbus(f"agent trigger --spec {endless}")
    assert started.code == 0, started.err
    assert deskbus("agent trigger").code == 4
    told = deskbus("agent status --json").rows[0]
    assert told["status"] == "active"
    assert told["phase"] in {"designing", "training"}
    assert told["operation_id"] == started.out.strip()
    assert deskbus("agent cancel").code == 0
    assert deskbus("agent status --json").rows[0]["operation_status"] == "cancelled"


def test_strategies_are_listed_shown_and_compared(
    deskbus: CommandLine, whole: tuple[Json, list[Json]]
) -> None:
    assert whole[0]["status"] == "completed"
    plain = deskbus.cwd / "plain.yaml"
    text = EXAMPLE.read_text().replace("name: trend-and-calm", "name: listed-plain")
    plain.write_text(re.sub(r"model: .*", "model: {kind: logistic}", text))
    assert deskbus(f"agent trigger --spec {plain} --wait").code == 1
    names = [row["name"] for row in deskbus("strategies list --json").rows]
    assert names[0] == "listed-plain"
    assert "whole" in names
    listed = deskbus("strategies list --limit 1")
    assert "training gate" in listed.out
    assert "whole" not in listed.out
    assert "there are more" in listed.err
    shown = deskbus("strategies show whole")
    for word in ("mediocre", "base rate", "buy-and-hold", "deflated Sharpe", "report.html"):
        assert word in shown.out
    row = deskbus("strategies show whole --json").rows[0]
    assert (row["ended"], row["assessment"]["verdict"]) == ("assessed", "mediocre")
    assert len(row["backtest"]["equity"]) == 60
    compared = deskbus("strategies compare whole listed-plain")
    assert compared.code == 0
    assert "gradient boosting" in compared.out
    assert "logistic" in compared.out


def test_the_status_of_the_cycle_has_its_steps_gates_verdict_and_file(
    deskbus: CommandLine, whole: tuple[Json, list[Json]]
) -> None:
    parent = whole[1][0]
    for command in ("operations status", "operations show", "cycle show"):
        shown = deskbus(f"{command} {parent['cycle_id']}")
        assert shown.code == 0
        for words in ("completed", "backtest gate: ", "mediocre", "whole/assessment.json"):
            assert words in shown.out, command


def test_a_strategy_that_there_is_none_of_is_told_with_near_names(
    deskbus: CommandLine, whole: tuple[Json, list[Json]]
) -> None:
    assert whole[0]["status"] == "completed"
    missing = deskbus("strategies show whol")
    assert missing.code == 3
    assert "did you mean whole?" in missing.err
    assert deskbus("strategies show zzzzzzzz").code == 3
    assert deskbus("strategies compare whole whole").code == 2
