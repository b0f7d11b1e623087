"""Handler of the assessment service for strategies: a model's judgement of the results."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from contracts.operation import CallKind
from contracts.strategy_cycle import AssessStrategy, StrategyDesign
from contracts.strategy_result import AssessmentDraft, StrategyAssessment
from libs.facts.compose import Cited, filled
from libs.facts.fact import FactIndex
from libs.facts.results import result_facts
from libs.facts.written import value_of
from libs.llm.agent import Role
from libs.llm.loop import call_tools
from libs.llm.prompt import task_for
from libs.llm.provider import ToolEvidence
from libs.llm.toolbox import CODE_ONLY
from libs.report.strategies.files import StrategyFiles
from libs.report.strategies.page import page
from libs.runtime.errors import DeskError
from libs.runtime.journal import Call, Journal, Reply
from services.assessment.tools import POINTS, SAVE_ASSESSMENT, assessment_tools, unknown_in

NOT_TOLD = {"cycle_id", "op_id", "version", "as_of", "loss_curve", "data_sha256", "model_sha256"}
"""Of the training: what says nothing to a model, or too much."""
PLACES = 6
"""Of a figure in a task: sixteen digits would only be copied."""
SERIES = {"sessions", "equity", "benchmark", "trades", "prices"}


class AssessmentNotSaved(DeskError):
    """The model ended without a valid call of save_assessment."""

    code = "assessment_not_saved"

    def __init__(self, message: str, correction: str) -> None:
        self.corrections = (correction,)
        super().__init__(message)


async def assess_strategy(
    command: AssessStrategy,
    journal: Journal,
    *,
    role: Role,
    files: StrategyFiles,
    clock: Callable[[], datetime],
) -> StrategyAssessment:
    """Let the model judge the results; what it saved is the assessment, and is exported.

    AssessmentNotSaved asks for another attempt with what to correct.
    """
    spec = command.strategy_design.spec
    agent = role.played_for(command)
    facts = FactIndex.of(result_facts(command.training_result, command.backtest_result))
    task = task_for(
        command,
        strategy=spec.model_dump(mode="json"),
        strategy_path=command.strategy_design.path,
        operation_id=str(command.op_id),
        figures=figures_for_prompt(facts),
        training=training_for_prompt(command),
        backtest=backtest_for_prompt(command),
    )
    path = assessment_path(command.strategy_design)
    tools = assessment_tools(spec.name, path, clock, facts)
    evidence = await call_tools(agent, task, journal, tools)
    saved = last_saved(evidence)
    if saved is None:
        who = f"{agent.name} ({agent.model})"
        problem = why(evidence)
        raise AssessmentNotSaved(
            f"{who} did not save an assessment{problem}",
            f"no assessment was saved{problem}; call {SAVE_ASSESSMENT}",
        )
    draft = AssessmentDraft.model_validate(saved[CODE_ONLY])
    assessment = StrategyAssessment.of(
        command,
        strategy_name=spec.name,
        path=path,
        assessed_at=saved["assessed_at"],
        **written(draft, facts),
    )
    await journal.call(_export(files, command, assessment))
    return assessment


def _export(files: StrategyFiles, command: AssessStrategy, assessment: StrategyAssessment) -> Call:
    """On record, so that a replay of the cycle writes nothing."""
    body = assessment.model_dump(mode="json", exclude={"version", "op_id", "as_of", "path"})

    async def write() -> Reply:
        reports = (command.strategy_design, command.training_result, command.backtest_result)
        files.keep_report(assessment.strategy_name, page(*reports, assessment))
        return Reply({"path": str(files.keep_assessment(assessment.strategy_name, body))})

    return Call(CallKind.READ, "export of the assessment", body, write)


def assessment_path(design: StrategyDesign) -> str:
    """The file that shows the assessment, beside the spec's."""
    return f"{design.path.removesuffix('.yaml')}/assessment.json"


def figures_for_prompt(facts: FactIndex) -> dict[str, JsonValue]:
    """The figures that a verdict rests on, by name, as code will write them."""
    return {name: value_of(fact) for name, fact in facts.by_name.items()}


def written(draft: AssessmentDraft, facts: FactIndex) -> dict[str, Any]:
    """The fields of the assessment: its points with the facts that they name written out."""
    texts = {
        f"{name}.{place}": filled(point, facts)
        for name in POINTS
        for place, point in enumerate(getattr(draft, name))
    }
    cited = Cited.of(texts)
    points = {
        name: tuple(text.text for field, text in texts.items() if field.startswith(f"{name}."))
        for name in POINTS
    }
    return {
        "verdict": draft.verdict,
        **points,
        "figures": cited.figures,
        "loose": cited.loose,
        "corrected": unknown_in(draft, facts),
    }


def training_for_prompt(command: AssessStrategy) -> dict[str, JsonValue]:
    """The training's figures, with the part of the first loss that was taken away."""
    report = command.training_result
    figures: dict[str, JsonValue] = report.model_dump(mode="json", exclude=NOT_TOLD)
    return _rounded({**figures, "loss_decrease": report.loss_decrease, "skill": report.skill})


def backtest_for_prompt(command: AssessStrategy) -> dict[str, JsonValue]:
    """The backtest's figures, without its series."""
    figures: dict[str, JsonValue] = command.backtest_result.model_dump(
        mode="json", exclude=NOT_TOLD | SERIES
    )
    return _rounded(figures)


def _rounded(figures: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        name: round(value, PLACES) if isinstance(value, float) else value
        for name, value in figures.items()
    }


def last_saved(evidence: Sequence[ToolEvidence]) -> Mapping[str, Any] | None:
    """The assessment that was handed in last, None where none was."""
    results = [item.result for item in evidence if item.tool == SAVE_ASSESSMENT]
    saved = [result for result in results if isinstance(result, dict) and result.get("saved")]
    return saved[-1] if saved else None


def why(evidence: Sequence[ToolEvidence]) -> str:
    """Why what was handed in could not be used; empty where nothing was."""
    for item in reversed(evidence):
        error = item.result.get("error") if isinstance(item.result, dict) else None
        if isinstance(error, dict):
            return f": {error.get('message', '')}"
    return ""
