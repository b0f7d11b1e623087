"""What the assessment service answers about strategies: what a model thinks of the results."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from contracts.operation import CallKind
from contracts.strategy_cycle import AssessStrategy, StrategyDesign
from contracts.strategy_result import AssessmentDraft, StrategyAssessment
from libs.llm.agent import Role
from libs.llm.loop import call_tools
from libs.llm.prompt import task_for
from libs.llm.provider import Evidence
from libs.report.strategy import page
from libs.runtime.errors import DeskError
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.strategy_files import StrategyFiles
from services.assessment.tools import SAVE_ASSESSMENT, assessment_tools

NOT_TOLD = {"cycle_id", "op_id", "version", "as_of", "loss_curve", "data_sha256", "model_sha256"}
"""Of the training: what says nothing to a model, or too much."""
PLACES = 6
"""Of a figure in a task: sixteen digits would only be copied."""
NOT_DEFINED = "not defined"
SERIES = {"sessions", "equity", "benchmark", "trades", "prices"}


class AssessmentNotSaved(DeskError):
    """The model ended without a call of save_assessment that could be used."""

    code = "assessment_not_saved"
    wrong_answer = True


async def assess_strategy(
    command: AssessStrategy,
    journal: Journal,
    *,
    role: Role,
    files: StrategyFiles,
    clock: Callable[[], datetime],
) -> StrategyAssessment:
    """Let the model judge the results; what it saved is the assessment, and is exported.

    AssessmentNotSaved asks for another attempt with the reason quoted.
    """
    spec = command.strategy_design.spec
    agent = role.played_for(command)
    task = task_for(
        command,
        strategy=spec.model_dump(mode="json"),
        strategy_path=command.strategy_design.path,
        operation_id=str(command.op_id),
        figures=figures_told(command),
        training=training_told(command),
        backtest=backtest_told(command),
    )
    path = assessment_path(command.strategy_design)
    evidence = await call_tools(agent, task, journal, assessment_tools(spec.name, path, clock))
    saved = last_saved(evidence)
    if saved is None:
        who = f"{agent.name} ({agent.model})"
        raise AssessmentNotSaved(f"{who} did not save an assessment{why(evidence)}")
    draft = AssessmentDraft.model_validate(saved["assessment"])
    made = StrategyAssessment.of(
        command,
        strategy_name=spec.name,
        path=path,
        assessed_at=saved["assessed_at"],
        **dict(draft),
    )
    await journal.call(_export(files, command, made))
    return made


def _export(files: StrategyFiles, command: AssessStrategy, made: StrategyAssessment) -> Call:
    """On record, so that a replay of the cycle writes nothing."""
    body = made.model_dump(mode="json", exclude={"version", "op_id", "as_of", "path"})

    async def write() -> Reply:
        found = (command.strategy_design, command.training_result, command.backtest_result)
        files.keep_report(made.strategy_name, page(*found, made))
        return Reply({"path": str(files.keep_assessment(made.strategy_name, body))})

    return Call(CallKind.READ, "export of the assessment", body, write)


def assessment_path(design: StrategyDesign) -> str:
    """The file that shows the assessment, beside the spec's."""
    return f"{design.path.removesuffix('.yaml')}/assessment.json"


def figures_told(command: AssessStrategy) -> dict[str, JsonValue]:
    """The figures that a verdict rests on, as a person writes them."""
    training, backtest = command.training_result, command.backtest_result
    return {
        "accuracy": _part(training.accuracy),
        "base rate": _part(training.base_rate),
        "initial loss": f"{training.initial_loss:.4f}",
        "final loss": f"{training.final_loss:.4f}",
        "loss improvement": _part(training.loss_decrease),
        "Sharpe ratio": _ratio(backtest.sharpe_ratio),
        "Sharpe ratio of buying and holding": _ratio(backtest.benchmark_sharpe_ratio),
        "win rate": _part(backtest.win_rate),
        "max drawdown": _part(backtest.max_drawdown),
        "total return": _part(backtest.total_return),
        "return of buying and holding": _part(backtest.benchmark_return),
        "total trades": f"{backtest.total_trades:,}",
        "deflated Sharpe ratio": _ratio(backtest.deflated_sharpe),
    }


def _part(value: float | None) -> str:
    return NOT_DEFINED if value is None else f"{value:.1%}"


def _ratio(value: float | None) -> str:
    return NOT_DEFINED if value is None else f"{value:.2f}"


def training_told(command: AssessStrategy) -> dict[str, JsonValue]:
    """The training's figures, with the part of the first loss that was taken away."""
    found = command.training_result
    told: dict[str, JsonValue] = found.model_dump(mode="json", exclude=NOT_TOLD)
    return _rounded({**told, "loss_decrease": found.loss_decrease, "skill": found.skill})


def backtest_told(command: AssessStrategy) -> dict[str, JsonValue]:
    """The backtest's figures, without its series."""
    told: dict[str, JsonValue] = command.backtest_result.model_dump(
        mode="json", exclude=NOT_TOLD | SERIES
    )
    return _rounded(told)


def _rounded(told: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        name: round(value, PLACES) if isinstance(value, float) else value
        for name, value in told.items()
    }


def last_saved(evidence: Sequence[Evidence]) -> Mapping[str, Any] | None:
    """The assessment that was handed in last, None where none was."""
    results = [item.result for item in evidence if item.tool == SAVE_ASSESSMENT]
    saved = [each for each in results if isinstance(each, dict) and each.get("saved")]
    return saved[-1] if saved else None


def why(evidence: Sequence[Evidence]) -> str:
    """Why what was handed in could not be used; empty where nothing was."""
    for item in reversed(evidence):
        error = item.result.get("error") if isinstance(item.result, dict) else None
        if isinstance(error, dict):
            return f": {error.get('message', '')}"
    return ""
