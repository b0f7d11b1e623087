"""The assessment of a strategy: the cases of the seed's tasks 5.1 to 5.3, by their names."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from contracts.message import Contract
from contracts.operation import Reserve
from contracts.reasons import FIGURES_MAX, LOOSE_MAX
from contracts.strategy_cycle import AssessStrategy
from contracts.strategy_result import (
    StrategyAssessment,
    Verdict,
)
from contracts.types import Usage
from libs.facts.fact import FactIndex
from libs.facts.results import result_facts
from libs.llm.endpoints import openai
from libs.llm.errors import BadToolArguments
from libs.llm.provider import ModelReply, ModelRequest
from libs.llm.rules.provider import RulesProvider
from libs.runtime.settings import Settings
from services.assessment.strategy import AssessmentNotSaved, training_for_prompt
from services.assessment.tools import SAVE_ASSESSMENT, AssessmentTool
from tests.fakes.hostile_words import HOSTILE
from tests.fakes.reply_shapes import CALLS, End, Shape
from tests.fakes.scripted_model import ScriptedProvider, asks
from tests.fakes.wire_formats import Call, Says, openai_reply
from tests.unit.services.conftest import Desk
from tests.unit.services.strategy_results import backtest, design, training

DRAFT: dict[str, Any] = {
    "verdict": "mediocre",
    "strengths": ["accuracy 52.0%, base rate 50.0%", "max drawdown 12.0%"],
    "weaknesses": ["38 trades say little", "costs eat a third"],
    "suggestions": ["trade less", "hold out another period"],
}
FACTS = FactIndex.of(result_facts(training(), backtest()))
PATH = "strategies/mine/assessment.json"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def desk(bundled: Any, tmp_path: Path) -> Desk:
    settings = Settings(strategies_dir=tmp_path / "strategies")
    return Desk(market=bundled, providers={"rules": RulesProvider()}, settings=settings)


@pytest.fixture(scope="module")
def made() -> Mapping[str, Contract]:
    """The results of a strategy, made once: a backtest has a thousand points."""
    return {
        "strategy_design": design(),
        "training_result": training(),
        "backtest_result": backtest(),
    }


@pytest.fixture
def parts(made: Mapping[str, Contract]) -> dict[str, Any]:
    return dict(made)


def scripted(desk: Desk, *replies: ModelReply) -> ScriptedProvider:
    model = ScriptedProvider(replies)
    desk.providers = {"rules": model}
    return model


def saving(**changes: Any) -> ModelReply:
    return asks((SAVE_ASSESSMENT, {**DRAFT, **changes}))


def kept(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "strategies/trend-and-calm/assessment.json").read_text())


# --- 5.1 the prompt ---------------------------------------------------------------------------


async def asked(desk: Desk, parts: dict[str, Any]) -> ModelRequest:
    model = scripted(desk, saving(), ModelReply())
    await desk.do(AssessStrategy, **parts)
    return model.requests[0]


async def test_the_prompt_includes_all_relevant_training_metrics(
    desk: Desk, parts: dict[str, Any]
) -> None:
    told: Any = (await asked(desk, parts)).task["training"]
    figures = {"accuracy", "base_rate", "log_loss", "initial_loss", "final_loss", "loss_decrease"}
    assert figures <= set(told)
    assert (told["accuracy"], told["initial_loss"], told["final_loss"]) == (0.52, 0.7, 0.525)


async def test_the_prompt_includes_all_relevant_backtest_metrics(
    desk: Desk, parts: dict[str, Any]
) -> None:
    told: Any = (await asked(desk, parts)).task["backtest"]
    figures = {"sharpe_ratio", "win_rate", "max_drawdown", "total_return", "total_trades"}
    assert figures <= set(told)
    assert told["benchmark_return"] == 0.2
    assert not {"equity", "sessions", "trades"} & set(told)


async def test_the_prompt_names_the_strategy_its_file_and_the_tool_to_use(
    desk: Desk, parts: dict[str, Any]
) -> None:
    request = await asked(desk, parts)
    strategy: Any = request.task["strategy"]
    assert strategy["name"] == "trend-and-calm"
    assert request.task["strategy_path"] == "strategies/trend-and-calm.yaml"
    assert UUID(str(request.task["operation_id"]))
    assert SAVE_ASSESSMENT in request.system
    assert [tool.name for tool in request.tools] == [SAVE_ASSESSMENT]


async def test_the_prompt_has_the_figures_as_a_person_writes_them(
    desk: Desk, parts: dict[str, Any]
) -> None:
    exact = backtest(sharpe_ratio=0.35304812345678901, win_rate=None)
    request = await asked(desk, {**parts, "backtest_result": exact})
    figures: Any = request.task["figures"]
    assert figures["training.accuracy"] == "52%"
    assert figures["training.final_loss"] == "0.525 nats"
    assert figures["training.loss_decrease"] == "25%"
    assert figures["backtest.sharpe_ratio"] == "0.35"
    assert "backtest.win_rate" not in figures  # it is not defined
    assert figures["backtest.total_trades"] == f"{exact.total_trades:,} trades"
    told: Any = request.task["backtest"]
    assert told["sharpe_ratio"] == 0.353048


SAVED_SHAPES = [shape for shape in CALLS if shape.end is End.READ and "openai" in shape.wires]


@pytest.mark.parametrize("shape", SAVED_SHAPES, ids=lambda shape: shape.name)
async def test_an_assessment_is_saved_in_whatever_shape_it_is_handed_in(
    desk: Desk, parts: dict[str, Any], shape: Shape
) -> None:
    scripted(desk, saving(), ModelReply())
    plain = await desk.do(AssessStrategy, **parts)
    says = shape.change([Call(SAVE_ASSESSMENT, DRAFT)])
    assert isinstance(says, Says)
    body = openai_reply(says, {"messages": [], "model": "m"}, 0)
    scripted(desk, openai.reply_of("it", json.dumps(body).encode()), ModelReply())
    saved = await desk.do(AssessStrategy, **parts)
    assert isinstance(plain, StrategyAssessment)
    assert isinstance(saved, StrategyAssessment)
    assert saved.verdict is plain.verdict
    for name in ("strengths", "weaknesses", "suggestions"):
        assert getattr(saved, name) == getattr(plain, name)


@pytest.mark.parametrize(
    ("initial", "final", "decrease"), [(0.7, 0.525, 0.25), (0.5, 0.6, -0.2), (0.0, 0.3, 0.0)]
)
def test_loss_improvement_is_right_and_zero_where_there_was_no_initial_loss(
    desk: Desk, parts: dict[str, Any], initial: float, final: float, decrease: float
) -> None:
    result = training(initial_loss=initial, final_loss=final)
    command = desk.command(AssessStrategy, **{**parts, "training_result": result})
    assert isinstance(command, AssessStrategy)
    assert training_for_prompt(command)["loss_decrease"] == pytest.approx(decrease)


# --- 5.2 the tool -----------------------------------------------------------------------------


async def test_save_assessment_creates_the_json_file_and_its_directory(
    desk: Desk, parts: dict[str, Any], tmp_path: Path
) -> None:
    assert not (tmp_path / "strategies").exists()
    scripted(desk, saving(), ModelReply())
    await desk.do(AssessStrategy, **parts)
    assert kept(tmp_path)["verdict"] == "mediocre"


async def test_the_assessment_contains_all_required_fields(
    desk: Desk, parts: dict[str, Any], tmp_path: Path
) -> None:
    scripted(desk, saving(), ModelReply())
    await desk.do(AssessStrategy, **parts)
    assert {*DRAFT, "assessed_at", "strategy_name"} <= set(kept(tmp_path))
    assert {key: kept(tmp_path)[key] for key in DRAFT} == DRAFT


async def test_the_timestamp_is_included(desk: Desk, parts: dict[str, Any], tmp_path: Path) -> None:
    scripted(desk, saving(), ModelReply())
    made = await desk.do(AssessStrategy, **parts)
    assert datetime.fromisoformat(kept(tmp_path)["assessed_at"]) == made.assessed_at
    assert made.assessed_at.tzinfo is not None


async def test_the_tool_answers_that_it_succeeded_and_where_the_assessment_is() -> None:
    answer = await AssessmentTool("mine", PATH, lambda: NOW, FACTS).call(SAVE_ASSESSMENT, DRAFT)
    assert (answer["success"], answer["path"]) == (True, PATH)
    assert PATH in str(answer["message"])


async def test_characters_that_nobody_sees_are_not_kept(
    desk: Desk, parts: dict[str, Any], tmp_path: Path
) -> None:
    hidden = ["good \u202etrades\u202c", "a\u200bll\x07 of it"]
    scripted(desk, saving(strengths=hidden), ModelReply())
    made = await desk.do(AssessStrategy, **parts)
    assert made.strengths == ("good  trades", "a ll  of it")
    assert kept(tmp_path)["strengths"] == ["good  trades", "a ll  of it"]


async def test_an_error_is_returned_if_no_strategy_name_is_set() -> None:
    with pytest.raises(BadToolArguments, match="no strategy"):
        await AssessmentTool("", "", lambda: NOW, FACTS).call(SAVE_ASSESSMENT, DRAFT)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"verdict": "brilliant"}, "verdict"),
        ({"strengths": ["only one"]}, "strengths"),
        ({"weaknesses": list("abcde")}, "weaknesses"),
        ({"suggestions": "trade less"}, "suggestions"),
    ],
)
async def test_the_assessments_structure_is_validated(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(BadToolArguments, match=field):
        await AssessmentTool("mine", PATH, lambda: NOW, FACTS).call(
            SAVE_ASSESSMENT, {**DRAFT, **changes}
        )


async def test_a_model_that_is_told_what_was_wrong_may_save_again(
    desk: Desk, parts: dict[str, Any], tmp_path: Path
) -> None:
    scripted(desk, saving(verdict="brilliant"), saving(verdict="poor"), ModelReply())
    made = await desk.do(AssessStrategy, **parts)
    assert made.verdict is Verdict.POOR
    assert kept(tmp_path)["verdict"] == "poor"


async def test_the_last_saved_assessment_is_the_result(
    desk: Desk, parts: dict[str, Any], tmp_path: Path
) -> None:
    scripted(desk, saving(verdict="promising"), saving(verdict="mediocre"), ModelReply())
    made = await desk.do(AssessStrategy, **parts)
    assert made.verdict is Verdict.MEDIOCRE
    assert kept(tmp_path)["verdict"] == "mediocre"


async def test_code_writes_the_figures_that_a_point_names_and_says_where_they_are_from(
    desk: Desk, parts: dict[str, Any], tmp_path: Path
) -> None:
    points = [
        "above it: accuracy {training.accuracy}, 52 % and not more, base {{training.base_rate}}",
        "a fall of { BACKTEST.max_drawdown } in 2008",
    ]
    scripted(desk, saving(strengths=points), ModelReply())
    made = await desk.do(AssessStrategy, **parts)
    assert made.strengths == (
        "above it: accuracy 52%, 52 % and not more, base 50%",
        "a fall of 12% in 2008",
    )
    own = [each for each in made.figures if each.field.startswith("strengths.")]
    assert [(each.text, each.facts, each.value) for each in own] == [
        ("52%", ("training.accuracy",), 52.0),
        ("52", ("training.accuracy",), 52.0),
        ("50%", ("training.base_rate",), 50.0),
        ("12%", ("backtest.max_drawdown",), 12.0),
    ]
    assert {each.op_id for each in own} == {
        parts["training_result"].op_id,
        parts["backtest_result"].op_id,
    }
    told = [(each.field, each.text) for each in made.loose]
    assert told == [("strengths.1", "2008"), ("weaknesses.0", "38")]
    for mark in (*made.figures, *made.loose):
        name, _, place = mark.field.partition(".")
        assert getattr(made, name)[int(place)][mark.start :].startswith(mark.text)
    assert kept(tmp_path)["strengths"] == list(made.strengths)
    page = (tmp_path / "strategies/trend-and-calm/report.html").read_text()
    assert '<span class="cited" title="training.accuracy; training, ' in page
    assert '<span class="loose" title="not from evidence">2008</span>' in page


async def test_a_name_that_there_is_not_is_asked_about_and_else_stays_and_is_told(
    desk: Desk, parts: dict[str, Any]
) -> None:
    names = "{../../etc/passwd} {0.__class__}"
    odd = saving(strengths=["a ratio of {backtest.sharp_ratio}", names])
    model = scripted(desk, odd, odd, ModelReply())
    again = await desk.do(AssessStrategy, **parts)
    assert again.strengths[0] == "a ratio of {backtest.sharp_ratio}"
    assert ("strengths.0", "{backtest.sharp_ratio}") in [(e.field, e.text) for e in again.loose]
    assert again.corrected[0].startswith("no figure is named backtest.sharp_ratio; did you mean")
    (asked_about,) = model.requests[1].messages[-1].results
    assert "strengths.0: no figure has the name in braces; did you mean" in asked_about.content
    assert "sharp_ratio}" not in asked_about.content
    assert len(again.corrected) == 3


@pytest.mark.parametrize(
    "point",
    [
        *HOSTILE.values(),
        "{" * 5_000,
        "{training.accuracy}" * 3_000,
        "\ufdfa" * 8_000,
        "<script>alert({training.accuracy})</script>",
        "{{{{training.accuracy}}}}",
        "{training.accuracy",
        "⑳ " * 4_000,
    ],
)
async def test_whatever_a_point_says_the_assessment_is_bounded_and_its_page_escaped(
    desk: Desk, parts: dict[str, Any], tmp_path: Path, point: str
) -> None:
    hostile = saving(weaknesses=[point[:8_000]] * 4)
    scripted(desk, hostile, hostile, ModelReply())
    made = await desk.do(AssessStrategy, **parts)
    assert all(text.isprintable() and len(text) < 2_000 for text in made.weaknesses)
    assert len(made.figures) <= FIGURES_MAX
    assert len(made.loose) <= LOOSE_MAX
    page = (tmp_path / "strategies/trend-and-calm/report.html").read_text()
    assert "<script" not in page
    assert "</task>" not in page


# --- 5.3 the worker ---------------------------------------------------------------------------


async def test_the_verdict_of_the_save_assessment_call_is_returned(
    desk: Desk, parts: dict[str, Any]
) -> None:
    scripted(desk, saving(verdict="promising"), ModelReply(text="done"))
    made = await desk.do(AssessStrategy, **parts)
    assert isinstance(made, StrategyAssessment)
    assert (made.verdict, made.strategy_name) == (Verdict.PROMISING, "trend-and-calm")


async def test_token_counts_are_on_record_with_the_calls(desk: Desk, parts: dict[str, Any]) -> None:
    used = Usage(input_tokens=900, output_tokens=120)
    model = scripted(
        desk,
        saving().model_copy(update={"usage": used}),
        ModelReply(usage=Usage(input_tokens=1_000)),
    )
    model.reserved = Reserve(tokens=5_000)
    await desk.do(AssessStrategy, **parts)
    recorded = desk.journals["assessstrategy"]
    assert sum(entry.usage.tokens for entry in recorded) == 2_020


@pytest.mark.parametrize("replies", [(ModelReply(text="It is promising."),), (ModelReply(),)])
async def test_a_missing_assessment_is_an_error_whatever_the_model_says(
    desk: Desk, parts: dict[str, Any], tmp_path: Path, replies: tuple[ModelReply, ...]
) -> None:
    scripted(desk, *replies)
    with pytest.raises(AssessmentNotSaved, match="did not save an assessment") as missing:
        await desk.do(AssessStrategy, **parts)
    assert missing.value.corrections
    assert not (tmp_path / "strategies").exists()


async def test_an_assessment_that_was_never_valid_is_missing_with_the_reason(
    desk: Desk, parts: dict[str, Any]
) -> None:
    scripted(desk, saving(verdict="brilliant"), ModelReply())
    with pytest.raises(AssessmentNotSaved, match="verdict"):
        await desk.do(AssessStrategy, **parts)


async def test_a_cancel_propagates_and_nothing_is_written(
    desk: Desk, parts: dict[str, Any], tmp_path: Path
) -> None:
    model = scripted(desk, saving())
    model.faults = {0: asyncio.CancelledError()}  # type: ignore[dict-item]
    with pytest.raises(asyncio.CancelledError):
        await desk.do(AssessStrategy, **parts)
    assert not (tmp_path / "strategies").exists()


async def test_an_operation_that_starts_again_asks_the_model_nothing_twice(
    desk: Desk, parts: dict[str, Any]
) -> None:
    model = scripted(desk, saving(), ModelReply())
    first = await desk.do(AssessStrategy, **parts)
    again = await desk.do(AssessStrategy, **parts)
    assert model.calls == 2
    assert again == first


# --- by rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figures", "verdict"),
    [
        ({}, Verdict.PROMISING),
        ({"deflated_sharpe": 0.95, "trials": 40}, Verdict.PROMISING),
        ({"deflated_sharpe": 0.94, "trials": 40}, Verdict.MEDIOCRE),
        ({"sharpe_ratio": 0.5}, Verdict.MEDIOCRE),
        ({"benchmark_sharpe_ratio": 1.1}, Verdict.MEDIOCRE),
        ({"total_return": -0.02}, Verdict.POOR),
        ({"sharpe_ratio": None, "win_rate": None, "total_trades": 0}, Verdict.POOR),
    ],
)
async def test_the_rules_judge_by_stated_thresholds_and_say_that_they_are_rules(
    desk: Desk, parts: dict[str, Any], figures: dict[str, Any], verdict: Verdict
) -> None:
    made = await desk.do(AssessStrategy, **{**parts, "backtest_result": backtest(**figures)})
    assert made.verdict is verdict
    points = (*made.strengths, *made.weaknesses, *made.suggestions)
    assert all(point.startswith("rules: ") for point in points)


async def test_the_rules_see_no_skill_where_accuracy_only_equals_the_base_rate(
    desk: Desk, parts: dict[str, Any]
) -> None:
    flat = training(accuracy=0.5)
    made = await desk.do(AssessStrategy, **{**parts, "training_result": flat})
    assert made.verdict is Verdict.MEDIOCRE
    assert any("accuracy is not above the base rate" in point for point in made.weaknesses)


async def test_where_nothing_speaks_for_a_strategy_what_is_said_is_still_a_fact(
    desk: Desk, parts: dict[str, Any]
) -> None:
    poor = backtest(sharpe_ratio=-1.0, total_return=-0.3, max_drawdown=0.5)
    given = {**parts, "training_result": training(accuracy=0.4), "backtest_result": poor}
    made = await desk.do(AssessStrategy, **given)
    assert len(made.strengths) == 2
    assert not any("stands out" in point or "can be said" in point for point in made.strengths)


@pytest.mark.parametrize(
    ("probability", "where", "said"),
    [
        (0.97, "strengths", "rules: unlikely to be luck: 40 trials, deflated Sharpe ratio 0.97"),
        (
            0.30,
            "weaknesses",
            "rules: may be luck: 40 trials, deflated Sharpe ratio 0.30",
        ),
    ],
)
async def test_the_rules_tell_what_so_many_tries_leave_of_a_sharpe_ratio(
    desk: Desk, parts: dict[str, Any], probability: float, where: str, said: str
) -> None:
    found = backtest(deflated_sharpe=probability, trials=40)
    made = await desk.do(AssessStrategy, **{**parts, "backtest_result": found})
    assert said in getattr(made, where)
