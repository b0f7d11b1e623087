"""What an account's agents remember from one cycle to the next."""

from pydantic import Field

from contracts.message import Contract
from contracts.types import Text, Value


class MemoryDraft(Value):
    """What the memory agent writes."""

    short_term_summary: Text = Field(min_length=1)
    active_hypotheses: tuple[Text, ...] = Field(default=(), max_length=20)
    pending_orders: tuple[Text, ...] = Field(default=(), max_length=40)
    next_steps: tuple[Text, ...] = Field(default=(), max_length=20)


class AgentMemory(MemoryDraft, Contract):
    """The memory of one cycle, with its ids. The next cycle of the account reads it."""
