"""The `rules` provider: the interface of a model over the rule sets of this folder."""

from collections.abc import Mapping
from types import MappingProxyType

from contracts.operation import Reserve
from libs.llm.errors import ProviderFault
from libs.llm.provider import ModelReply, ModelRequest, ModelSize, StopReason, ToolCall, ToolMessage
from libs.llm.rules import (
    analyst,
    assessor,
    designer,
    memory,
    planner,
    quant,
    risk_review,
    sentiment,
    trader,
)
from libs.llm.rules.rule_set import EvidenceIndex, RuleSet

RULE_SETS: Mapping[str, RuleSet] = MappingProxyType(
    {
        "sentiment": sentiment.RULES,
        "planner": planner.RULES,
        "quant": quant.RULES,
        "analyst": analyst.RULES,
        "trader": trader.RULES,
        "risk_review": risk_review.RULES,
        "memory": memory.RULES,
        "designer": designer.RULES,
        "assessor": assessor.RULES,
    }
)


class RulesProvider:
    """Deterministic, offline and free: the same request always has the same reply."""

    name = "rules"

    def model_for(self, stage: str, size: ModelSize) -> str:
        """Its own name: it has no models."""
        del stage, size
        return self.name

    def reserve(self, request: ModelRequest) -> Reserve | None:
        """Nothing: rules cost nothing."""
        del request
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Tool calls in the first tooling round, nothing in the next, JSON where asked for."""
        rules = RULE_SETS.get(request.agent)
        if rules is None:
            raise ProviderFault(
                f"the rules provider has no agent {request.agent}; "
                f"it has {', '.join(sorted(RULE_SETS))}"
            )
        return played(rules, request)


def played(rules: RuleSet, request: ModelRequest) -> ModelReply:
    """The reply that an agent of these rules gives to a request."""
    if request.tools:
        return _tool_round(rules, request)
    answer = rules.answer(
        request.task, EvidenceIndex(request.evidence, request.facts, request.publishers)
    )
    return ModelReply(text=answer.model_dump_json())


def _tool_round(rules: RuleSet, request: ModelRequest) -> ModelReply:
    if any(isinstance(message, ToolMessage) for message in request.messages):
        return ModelReply()
    offered = {tool.name for tool in request.tools}
    wanted = [ask for ask in rules.ask(request.task) if ask.tool in offered]
    calls = tuple(
        ToolCall(id=f"call_{place}", name=ask.tool, arguments=dict(ask.arguments))
        for place, ask in enumerate(wanted)
    )
    return ModelReply(
        tool_calls=calls, stop_reason=StopReason.TOOL_CALLS if calls else StopReason.END
    )
