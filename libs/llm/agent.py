"""Agents: a role of the desk, and the same role bound to one command's provider and model."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.message import Command
from contracts.operation import JOURNAL_BATCH_MAX
from contracts.stages import TRADING
from libs.llm.errors import ProviderNotUsable, ProviderUnknown
from libs.llm.masking.codebook import Masking, SessionCalendar
from libs.llm.prompt import Prompt
from libs.llm.provider import COMPUTING, ModelSize, Provider

RECORDED_AT_ONCE_MAX = JOURNAL_BATCH_MAX - 2
"""Entries that may wait for their record; the model's turns around a round of calls come on top."""


@dataclass(frozen=True)
class AgentLimits:
    """The limits of one operation of an agent."""

    rounds_max: int = 15
    """Rounds of tool calls; past it the answer is asked for without tools."""
    calls_max: int = 100
    """Tool calls of the whole operation: ten tickers by nine tools, and some."""
    calls_per_round_max: int = RECORDED_AT_ONCE_MAX
    """Tool calls of one round: ten tickers by seven tools, and some; one batch of the record."""
    repeated_rounds_max: int = 2
    """Rounds that only repeat earlier calls: small models do so until they are stopped."""
    repairs_max: int = 2
    """Times an invalid answer is sent back with its errors."""
    unread_max: int = 1
    """Replies in a row that could not be read, each told to the model, before its tools end."""
    faults_max: int = 2
    """Times a call is made again whose answer was no reply."""
    attempts_max: int = 5
    """Tries of a call while its provider is busy or cannot be reached."""
    wait_s_max: float = 60.0
    """The longest wait between two tries."""
    result_bytes_max: int = 32_000
    """One tool result."""
    evidence_bytes_max: int = 250_000
    """All tool results of an operation: about 60,000 tokens; with the model's replies they must
    fit into one message when another process takes the operation over."""
    task_bytes_max: int = 400_000
    facts_max: int = 200
    """Names of facts that one call offers for its reasons: more hide one another."""


@dataclass(frozen=True)
class Agent:
    """The agent of one operation: its name, model and prompt, and how its tasks are masked.

    `trades` says that its answers become orders: one that was cut off is never completed.
    """

    name: str
    provider: Provider
    model: str
    prompt: Prompt
    seed: int = 0
    limits: AgentLimits = AgentLimits()
    masking: Masking | None = None
    trades: bool = True


@dataclass(frozen=True)
class Role:
    """An agent's part at the desk; pipelines choose who plays it.

    `stage` is the key under which a pipeline may name a model, or another provider, for it.
    `sessions` is the calendar by which a masked pipeline's dates are counted.
    """

    name: str
    stage: str
    size: ModelSize
    prompt: Prompt
    providers: Mapping[str, Provider] = field(repr=False)
    limits: AgentLimits = AgentLimits()
    sessions: SessionCalendar | None = field(default=None, repr=False)

    def played_for(self, command: Command) -> Agent:
        """The agent for a command's pipeline; ProviderUnknown where its provider is not here.

        Another provider than the pipeline's answers with the model that is its own choice.
        """
        pipeline = command.pipeline
        name = self.player(command)
        provider = self.providers.get(name)
        if provider is None:
            raise ProviderUnknown(name, tuple(self.providers))
        chosen = pipeline.models.get(self.stage) if name == pipeline.provider else None
        model = chosen or provider.model_for(self.stage, self.size)
        return Agent(
            self.name,
            provider,
            model,
            self.prompt,
            command.seed,
            self.limits,
            self._masking(command, name),
            trades=self.stage in TRADING,
        )

    def player(self, command: Command) -> str:
        """The provider that plays the role in a command's pipeline."""
        return command.pipeline.answers(self.stage)

    def _masking(self, command: Command, name: str) -> Masking | None:
        if not command.pipeline.masked or name in COMPUTING:
            return None
        if self.sessions is None:
            raise ProviderNotUsable(f"{self.name} is no part of a masked pipeline")
        return Masking(command.as_of, self.sessions)
