"""The stages of a pipeline that a model answers, and who answered where its own model did not."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Literal

from contracts.types import Name, ShortText, Value

DecisionStage = Literal["sentiment", "planner", "quant", "research", "trader", "risk", "memory"]
"""The stages of a decision."""
Stage = Literal[DecisionStage, "design", "assessor"]
"""All stages that a model answers, with those of a strategy cycle."""
TRADING = ("trader", "risk")
"""Stages whose answers become orders."""
OF_TEXTS = ("sentiment", "memory")
"""Stages that read texts alone."""
RULES = "rules"
"""The provider of stated rules. No model has this name, so it is read among models too."""
CODE = "code"
"""Who made the reads that a model did not ask for."""
WORDS: Mapping[str, str] = {
    "sentiment": "sentiment",
    "planner": "plan",
    "quant": "quant",
    "research": "research",
    "trader": "picks",
    "risk": "review",
    "memory": "memory",
    "design": "design",
    "assessor": "assessment",
}
"""Each stage as people read it."""


class Why(StrEnum):
    """The reason for a substitute: the settings say so, the stage had failed, or its model read
    nothing. Of `outside_tools` the stage's provider is a program that may have its own tools.

    A `setting` is part of what the provider is. A `fallback` is an accident: comparisons leave such
    decisions out.
    """

    SETTING = "setting"
    FALLBACK = "fallback"
    READS = "reads"
    OUTSIDE_TOOLS = "outside_tools"


class Substitute(Value):
    """One stage, or its reads, that another than the pipeline's own model answered.

    `by` is a provider, or `code` where code made the standard reads. `reason` is the failure that
    led to a fallback: its code and sentence.
    """

    stage: Stage
    by: Name
    why: Why
    reason: ShortText = ""

    @property
    def in_short(self) -> str:
        """For one line of a list: `plan by rules (fallback)`."""
        if self.why is Why.READS:
            return f"{WORDS[self.stage]} reads by {self.by}"
        if self.why is Why.OUTSIDE_TOOLS:
            return f"{WORDS[self.stage]} by {self.by} (outside tools: not excluded)"
        return f"{WORDS[self.stage]} by {self.by} ({self.why.value})"

    @property
    def in_words(self) -> str:
        """With its reason: `plan by rules (fallback): answer_invalid: no JSON object was found`."""
        return f"{self.in_short}: {self.reason}" if self.reason else self.in_short


def of_decision(substitutes: Iterable[Substitute]) -> tuple[Substitute, ...]:
    """Those that a decision rests on: the memory is written after it."""
    return tuple(one for one in substitutes if one.stage != "memory")


def fell_back(substitutes: Iterable[Substitute]) -> bool:
    """Whether a decision rests on a fallback, so that comparisons leave it out."""
    return any(one.why is Why.FALLBACK for one in of_decision(substitutes))


def in_short(substitutes: Iterable[Substitute]) -> str:
    """Who answered in place of the pipeline's model, on one line; empty where nobody did."""
    return ", ".join(one.in_short for one in substitutes)


def with_stages(fields: Any) -> Any:
    """Fields of a provider or a pipeline, where `models.STAGE = "rules"` was written: the same as
    `stages.STAGE = "rules"`. Raises ValueError where `stages` names another for that stage.
    """
    if not isinstance(fields, dict) or not isinstance(fields.get("models"), Mapping):
        return fields
    models, stages = dict(fields["models"]), fields.get("stages") or {}
    ruled = {stage: RULES for stage, model in models.items() if model == RULES and stage in WORDS}
    if not ruled or not isinstance(stages, Mapping):
        return fields
    for stage in ruled:
        if stages.get(stage, RULES) != RULES:
            raise ValueError(f"{stage}: models says rules, and stages says {stages[stage]}")
        del models[stage]
    return {**fields, "models": models, "stages": {**stages, **ruled}}
