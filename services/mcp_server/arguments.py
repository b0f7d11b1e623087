"""Arguments of the tools about the desk."""

from datetime import date
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from contracts.constraints import ENFORCED, TAKES, ConstraintWords
from contracts.cycle import DECISION, CycleStatus
from contracts.exit_signal import ExitFormat, ExitOutput
from contracts.operation import OperationStatus
from contracts.types import Name, ShortText, Ticker

LIMIT_MAX = 50
CONTRACTS_MAX = 5
DIGITS = "The id, or its first digits (at least four)"
CONSTRAINTS_DOC = "Only tighten. Code enforces {}; any other name is a note to the agents".format(
    ", ".join(f"{name} ({TAKES[name]})" for name in ENFORCED)
)
KEY_DOC = "Your own name for this request: sent again with it, nothing new happens"

IdDigits = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f-]{4,36}$")]
Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX)]


class Arguments(BaseModel):
    """Arguments of a tool. Unknown ones are refused: a model's mistake must not pass silently."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PortfolioArguments(Arguments):
    """Of get_portfolio."""

    account: Name = Field("main", description="The account's name")
    fills: int = Field(10, ge=0, le=LIMIT_MAX, description="How many of the newest fills")


class ExitArguments(Arguments):
    """Of check_exit_signals."""

    ticker: Ticker = Field(description="A ticker that the account holds")
    format: ExitFormat = Field(ExitFormat.AGENT, description="How much is told")
    output: ExitOutput = Field(ExitOutput.INLINE, description="`file` also saves the full result")
    account: Name = Field("main", description="Whose position")
    as_of: date | None = Field(None, description="A session up to the account's own")


class CyclesArguments(Arguments):
    """Of list_cycles."""

    status: CycleStatus | None = None
    kind: Name | None = Field(None, description="decision, strategy, ...")
    limit: Limit = 10


class CycleArguments(Arguments):
    """Of get_cycle."""

    cycle_id: IdDigits = Field(description=DIGITS)
    contracts: tuple[Name, ...] = Field(
        default=(), max_length=CONTRACTS_MAX, description="Contracts to show whole, of those `made`"
    )


class DecisionsArguments(Arguments):
    """Of list_decisions."""

    cycle_id: IdDigits | None = Field(None, description=DIGITS)
    account: Name | None = None
    limit: Limit = 5


class OperationsArguments(Arguments):
    """Of list_operations."""

    cycle_id: IdDigits | None = Field(
        None, description=f"Only this cycle's, in their order. {DIGITS}"
    )
    type: ShortText | None = Field(
        None, description="cycle, agent_research, training, or a step such as plan"
    )
    status: OperationStatus | None = None
    calls: bool = Field(default=False, description="With single model and tool calls")
    limit: Limit = 20


class OperationArguments(Arguments):
    """Of get_operation."""

    operation_id: IdDigits = Field(description=DIGITS)


class RequestArguments(Arguments):
    """Of request_cycle."""

    kind: Name = Field(DECISION, description="decision, exit or strategy")
    as_of: date | None = Field(None, description="A session; the newest one where it is left out")
    universe: tuple[Ticker, ...] | None = Field(None, min_length=1, max_length=LIMIT_MAX)
    provider: Name = Field("rules", description="Who thinks: rules, claude, ...")
    account: Name = Field("main", description="The account that trades")
    approval_required: bool = Field(
        default=True, description="Whether a person must approve before anything is ordered"
    )
    constraints: ConstraintWords = Field(default_factory=dict, description=CONSTRAINTS_DOC)
    idempotency_key: ShortText | None = Field(None, description=KEY_DOC)
