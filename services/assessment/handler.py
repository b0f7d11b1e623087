"""Handler of the assessment service: the memory of a cycle."""

from collections.abc import Mapping

from contracts.assessment import Memorize
from contracts.memory import AgentMemory, MemoryDraft
from contracts.types import TEXT_CHARS_MAX
from libs.llm.agent import Role
from libs.llm.loop import generate
from libs.llm.prompt import memory_told, task_for
from libs.llm.provider import FREE
from libs.market.source import MarketData
from libs.runtime.journal import Journal
from services.assessment import logic
from services.assessment.reads import outcomes_known

SPENT = "(budget_exhausted)"
"""How the reason of a cycle ends that has nothing left to pay for its memory. The rules remember
it: every end but a cancelled one is remembered."""
BY_RULES = "written by the stated rules, as the model failed"
NOT_TOLD: Mapping[str, bool | set[str]] = {
    "signal_digest": True,
    "past_decisions": True,
    "agent_memory": True,
    "decision_validation": {"recalibration"},
}
"""Fields of the command that are for code, or come to the model in another form."""


async def memorize(
    command: Memorize, journal: Journal, *, market: MarketData, role: Role
) -> AgentMemory:
    """Make the memory of this cycle for the next one, however it ended, and of those before it."""
    outcomes = await outcomes_known(journal, market, command.as_of, command.past_decisions)
    last = command.agent_memory
    # The orders stand whatever a model makes of them: where it failed, the rules remember.
    failed = bool(command.errors) and role.player(command) != FREE
    draft = await generate(
        role.played_for(command, by=FREE if failed or SPENT in command.reason else ""),
        task_for(
            command,
            cycle=command.model_dump(mode="json", exclude=NOT_TOLD),
            agent_memory=memory_told(last),
            outcomes=[logic.sentence(outcome) for outcome in outcomes],
        ),
        MemoryDraft,
        journal,
    )
    return AgentMemory.of(
        command,
        **dict(draft),
        note=f"{BY_RULES}: {command.errors[0]}"[:TEXT_CHARS_MAX] if failed else "",
        pending_orders=logic.pending(command.execution_result),
        decision=logic.decision_of(command),
        outcomes=outcomes,
        track_record=logic.track_record(outcomes, last.track_record if last else ()),
        stated=logic.stated(command, outcomes),
    )
