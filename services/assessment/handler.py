"""Handler of the assessment service: the memory of a cycle."""

from collections.abc import Mapping

from contracts.assessment import Memorize
from contracts.memory import AgentMemory, MemoryDraft
from libs.llm.agent import Role
from libs.llm.loop import generate
from libs.llm.prompt import memory_for_prompt, task_for
from libs.market.source import MarketData
from libs.runtime.journal import Journal
from services.assessment import logic
from services.assessment.reads import outcomes_known

NOT_TOLD: Mapping[str, bool | set[str]] = {
    "signal_digest": True,
    "past_decisions": True,
    "agent_memory": True,
    "decision_validation": {"recalibration"},
    "daily_picks": {"passed"},
}
"""Fields of the command that are for code, or come to the model in another form."""


async def memorize(
    command: Memorize, journal: Journal, *, market: MarketData, role: Role
) -> AgentMemory:
    """Make the memory of this cycle for the next one, however it ended, and of those before it."""
    outcomes = await outcomes_known(journal, market, command.as_of, command.past_decisions)
    last = command.agent_memory
    draft = await generate(
        role.played_for(command),
        task_for(
            command,
            cycle=command.model_dump(mode="json", exclude=NOT_TOLD),
            agent_memory=memory_for_prompt(last),
            outcomes=[logic.sentence(outcome) for outcome in outcomes],
        ),
        MemoryDraft,
        journal,
    )
    return AgentMemory.of(
        command,
        **dict(draft),
        pending_orders=logic.pending(command.execution_result),
        decision=logic.decision_of(command),
        outcomes=outcomes,
        track_record=logic.track_record(outcomes, last.track_record if last else ()),
        stated=logic.stated(command, outcomes),
    )
