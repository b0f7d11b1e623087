"""The check of an answer's reasons, and the facts that it may name.

A name that no fact has is asked about once; after that the reason falls away.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic

from pydantic import BaseModel

from contracts.reasons import ReasonDraft
from libs.facts.fact import FactIndex
from libs.facts.market import ToolAnswer, market_facts
from libs.llm.answer import AnswerCheck, T
from libs.llm.prompt import Task
from libs.llm.provider import ToolEvidence
from libs.runtime.nearest import did_you_mean, nearest

UNKNOWN_TOLD_MAX = 4
"""Names that a model is asked about at once."""


def facts_for(task: Task, evidence: Sequence[ToolEvidence]) -> FactIndex:
    """The facts that an answer may cite: those of the tool results, then those of the task."""
    results = [ToolAnswer(item.id, item.tool, item.result) for item in evidence]
    return FactIndex.of((*market_facts(results), *task.facts), task.about)


def reasons_in(value: object, place: str = "") -> Iterator[tuple[str, ReasonDraft]]:
    """Every reason anywhere in an answer, with its place: `picks.0.reasons.1`."""
    inside = f"{place}." if place else ""
    if isinstance(value, ReasonDraft):
        yield place, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from reasons_in(getattr(value, name), f"{inside}{name}")
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from reasons_in(item, f"{inside}{number}")


@dataclass
class Reasoning(Generic[T]):
    """An answer check that looks after its reasons too, and has the facts afterwards."""

    task: Task
    problems: AnswerCheck[T]
    evidence: Sequence[ToolEvidence] = field(default=(), init=False)
    facts: FactIndex = field(default_factory=lambda: FactIndex.of(()), init=False)
    _looked_up: bool = field(default=False, init=False)
    _has_corrected: bool = field(default=False, init=False)

    def __call__(self, answer: T, evidence: Sequence[ToolEvidence]) -> Sequence[str]:
        """The problems of an answer; see `AnswerCheck`."""
        self.facts_on(evidence)
        return (*self.problems(answer, evidence), *self._names(answer))

    def facts_on(self, evidence: Sequence[ToolEvidence]) -> FactIndex:
        """The facts that an answer on this evidence may cite, looked up once."""
        if not self._looked_up or evidence is not self.evidence:
            self._looked_up, self.evidence = True, evidence
            self.facts = facts_for(self.task, evidence)
        return self.facts

    def _names(self, answer: T) -> list[str]:
        if self._has_corrected:
            return []
        unknown: dict[str, str] = {}
        for place, reason in reasons_in(answer):
            for field_name in ("fact", "beside"):
                name = str(getattr(reason, field_name))
                if name.strip() and self.facts.get(name) is None:
                    unknown.setdefault(name, f"{place}.{field_name}: no fact has this name")
        self._has_corrected = bool(unknown)
        return [
            f"{problem}{did_you_mean(nearest(name, self.facts.by_name))}"
            for name, problem in list(unknown.items())[:UNKNOWN_TOLD_MAX]
        ]
