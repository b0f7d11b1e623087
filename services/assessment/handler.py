"""What the assessment service answers: the memory of a cycle."""

from contracts.assessment import Memorize
from contracts.memory import AgentMemory, MemoryDraft
from libs.llm.agent import Role
from libs.llm.loop import generate
from libs.llm.prompt import task_for
from libs.runtime.journal import Journal


async def memorize(command: Memorize, journal: Journal, *, role: Role) -> AgentMemory:
    """What the next cycle should know of this one, however it ended."""
    draft = await generate(
        role.played_for(command), task_for(command, cycle=command), MemoryDraft, journal
    )
    return AgentMemory.of(command, **dict(draft))
