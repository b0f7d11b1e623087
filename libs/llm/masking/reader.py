"""The one way in and out of a task: how its model reads it, and how a reply is heard.

Everything that is sent goes through a reader before it is rendered, and every reply before it is
read. For most pipelines that changes nothing. For a masked one names become codes on the way out,
and codes names on the way in, so that what is checked and recorded is always in real names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pydantic import JsonValue

from contracts.types import ToolDef
from libs.facts.fact import Fact, FactIndex
from libs.llm.masking.codebook import Codebook, Masking
from libs.llm.masking.shown import (
    PROBE_NOTE,
    entities_in,
    history_volumes,
    result_shown,
    task_shown,
)
from libs.llm.masking.shown_facts import FactMask
from libs.llm.prompt import Task
from libs.llm.provider import ModelReply, ToolCall, ToolEvidence

NOT_OFFERED = frozenset({"search_eu_stocks"})
"""Tools whose whole answer is names."""
TICKER = "ticker"
NO_CODE = "ticker is none of this task's codes; use one as it stands in the task"
TICKER_HINT = "Code of a company, as in the task: S001"


class Plain:
    """Between an agent's task and its model: shows everything as it is."""

    def task(self, task: Task) -> Task:
        """The task itself."""
        return task

    def facts(
        self, facts: FactIndex, evidence: Sequence[ToolEvidence], most: int
    ) -> tuple[Fact, ...]:
        """The first ones."""
        del evidence
        return facts.for_prompt(most)

    def evidence(self, evidence: Sequence[ToolEvidence]) -> tuple[ToolEvidence, ...]:
        """All of it."""
        return tuple(evidence)

    def result(self, tool: str, result: JsonValue) -> JsonValue:
        """The result itself."""
        del tool
        return result

    def tools(self, tools: Sequence[ToolDef]) -> tuple[ToolDef, ...]:
        """All of them."""
        return tuple(tools)

    def errors(self, errors: Sequence[str]) -> tuple[str, ...]:
        """The errors themselves."""
        return tuple(errors)

    def heard(self, reply: ModelReply) -> ModelReply:
        """The reply itself."""
        return reply


@dataclass
class Masked:
    """Between an agent's task and its model: shows it without names, dates, levels and texts.

    A real name that a model says is not understood: it has guessed, and an answer would tell it
    whether it was right.
    """

    masking: Masking
    whole: Task
    _names: dict[str, str] = field(default_factory=dict, init=False)

    @cached_property
    def codebook(self) -> Codebook:
        """The codes of all that the task is about."""
        known: dict[str, list[str]] = {"ticker": [*self.whole.about], "sector": [], "name": []}
        for kind, name in entities_in(dict(self.whole.data)):
            known[kind].append(name)
        for item in self.whole.evidence:
            for kind, name in entities_in(item.result):
                known[kind].append(name)
        for fact in self.whole.facts:
            known["ticker"].append(fact.key.entity)
            if fact.key.quantity == "sector":
                known["sector"].append(str(fact.value))
            if fact.is_published:
                known["name"].append(fact.source)
        tickers = [name for name in known["ticker"] if name not in ("account", "market")]
        return Codebook.of(self.masking, tickers, known["sector"], known["name"])

    def task(self, task: Task) -> Task:
        """The task in codes; its facts and evidence are shown apart from it."""
        headlines: dict[str, int] = {}
        for fact in task.facts:
            if fact.is_published:
                headlines[fact.key.entity] = headlines.get(fact.key.entity, 0) + 1
        mask = FactMask(self.codebook, task.facts, {})
        names = {shown.name: shown.fact.name for shown in mask.shown(task.facts)}
        data = task_shown(task.data, self.codebook, headlines, names)
        return replace(task, data=data, errors=self.errors(task.errors))

    def facts(
        self, facts: FactIndex, evidence: Sequence[ToolEvidence], most: int
    ) -> tuple[Fact, ...]:
        """The first ones of those that may be shown; their names are understood from then on."""
        mask = FactMask(self.codebook, tuple(facts.by_name.values()), _volumes(evidence))
        shown = tuple(mask.shown(mask.all_facts))
        self._names |= {item.fact.name.lower(): item.name for item in shown}
        about = [self.codebook.ticker(name) or name for name in facts.about]
        by_name = {item.fact.name: item.fact for item in shown}
        return FactIndex(by_name, about).for_prompt(most)

    def evidence(self, evidence: Sequence[ToolEvidence]) -> tuple[ToolEvidence, ...]:
        """Each result in codes."""
        return tuple(
            item.model_copy(update={"result": self.result(item.tool, item.result)})
            for item in evidence
        )

    def result(self, tool: str, result: JsonValue) -> JsonValue:
        """The result in codes."""
        del tool
        return result_shown(result, self.codebook)

    def tools(self, tools: Sequence[ToolDef]) -> tuple[ToolDef, ...]:
        """All but those whose answer is names, without a ticker for an example."""
        return tuple(_without_example(tool) for tool in tools if tool.name not in NOT_OFFERED)

    def errors(self, errors: Sequence[str]) -> tuple[str, ...]:
        """The sentences in codes."""
        return tuple(map(self.codebook.words, errors))

    def heard(self, reply: ModelReply) -> ModelReply:
        """Codes as names, in the answer and in the arguments of tools."""
        return reply.model_copy(
            update={
                "text": self.codebook.heard(reply.text, self._names),
                "tool_calls": tuple(map(self._call, reply.tool_calls)),
            }
        )

    def _call(self, call: ToolCall) -> ToolCall:
        code = call.arguments.get(TICKER)
        if not isinstance(code, str):
            return call
        ticker = self.codebook.meant(code)
        if ticker is None:
            return call.model_copy(update={"arguments": {}, "error": NO_CODE})
        return call.model_copy(update={"arguments": {**call.arguments, TICKER: ticker}})


@dataclass
class Probing(Masked):
    """Shows the same, and hears every word: to a probe a real name is the answer."""

    def task(self, task: Task) -> Task:
        """The task in codes, without the words that nobody asks who it is."""
        shown = super().task(task)
        return replace(shown, data={**shown.data, "masked": PROBE_NOTE})

    def heard(self, reply: ModelReply) -> ModelReply:
        """The reply itself, with its codes."""
        return reply


Reader = Plain | Masked


def reader_of(masking: Masking | None, task: Task) -> Reader:
    """The reader of a task: one that masks it where the agent's model is to be masked."""
    if masking is None:
        return Plain()
    return Probing(masking, task) if masking.asks_who else Masked(masking, task)


def _volumes(evidence: Sequence[ToolEvidence]) -> Mapping[str, float]:
    """The usual volume of each ticker whose history is there."""
    usual = (
        history_volumes(item.result)
        for item in evidence
        if item.tool == "get_stock_history" and isinstance(item.result, dict)
    )
    return dict(pair for pair in usual if pair is not None)


def _without_example(tool: ToolDef) -> ToolDef:
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict) or TICKER not in properties:
        return tool
    plain = {"type": "string", "description": TICKER_HINT}
    parameters = {**tool.parameters, "properties": {**properties, TICKER: plain}}
    return tool.model_copy(update={"parameters": parameters})
