"""Inputs of the orchestrator, each with a future for its answer.

An answer is given only after the transaction that it speaks of has committed.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

from contracts.approval import AnswerProposal
from contracts.cycle import CycleRequest, RequestAnswer
from contracts.message import Message
from contracts.operation import Claim, JournalEntry, Record, Reserve, Result
from contracts.types import Failure, Usage

NO_USAGE = Usage()


@dataclass(frozen=True)
class CycleRequested:
    """`requester` wants a cycle; `as_of` is the session it will see, `body_sha256` its body's.

    `rejection` is why a new cycle could not begin; one that there is already goes on. `needs` is
    the least that a call of its dearest model may cost, None where nothing in it is counted.
    `data_version` is the state of the market data that all its work reads. `per_hour_max` is how
    often a proposer may ask; None: as often as anybody.
    """

    cycle_id: UUID
    requester: str
    request: CycleRequest
    as_of: date
    body_sha256: bytes
    rejection: RequestAnswer | None = None
    needs: Reserve | None = None
    data_version: str | None = None
    per_hour_max: int | None = None

    def settled(self, trader_samples: int) -> bytes:
        """The request as it is kept: what the desk's settings choose is part of it."""
        samples = self.request.samples or trader_samples
        update = {"as_of": self.as_of, "samples": samples if samples > 1 else None}
        return self.request.model_copy(update=update).model_dump_json().encode()


@dataclass(frozen=True)
class CancelRequested:
    """Somebody wants a cycle to stop."""

    cycle_id: UUID
    reason: str


@dataclass(frozen=True)
class ProposalAnswered:
    """`approver` says what becomes of a proposal that waits."""

    approver: str
    answer: AnswerProposal

    @property
    def cycle_id(self) -> UUID:
        """The cycle that waits."""
        return self.answer.cycle_id


@dataclass(frozen=True)
class Claimed:
    """A service asks for an operation."""

    service: str
    claim: Claim


@dataclass(frozen=True)
class CallsRecorded:
    """A service has finished calls, or renews its lease."""

    service: str
    record: Record


@dataclass(frozen=True)
class Resulted:
    """A service has an operation's result."""

    service: str
    result: Result


@dataclass(frozen=True)
class OperationOverdue:
    """An operation's time limit has passed, or it cannot be committed as it is."""

    op_id: UUID
    failure: Failure


@dataclass(frozen=True)
class CycleOverdue:
    """A cycle's time limit has passed."""

    cycle_id: UUID


@dataclass(frozen=True)
class UnreadableRequest:
    """A request that could not be read: recorded under an id made from its body."""

    cycle_id: UUID
    failure: Failure
    requester: str


GroupInput = (
    CycleRequested
    | CancelRequested
    | ProposalAnswered
    | Claimed
    | CallsRecorded
    | Resulted
    | OperationOverdue
    | CycleOverdue
    | UnreadableRequest
)


@dataclass(frozen=True)
class PendingInput:
    """One input and where its answer goes; None answers an input that nobody waits for."""

    item: GroupInput
    answer: "asyncio.Future[Message | None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


def operation_of(item: GroupInput) -> UUID | None:
    """The operation that an input speaks of."""
    match item:
        case Claimed():
            return item.claim.op_id
        case CallsRecorded():
            return item.record.op_id
        case Resulted():
            return item.result.op_id
        case OperationOverdue():
            return item.op_id
        case _:
            return None


def calls_of(item: GroupInput) -> Sequence[JournalEntry]:
    """The finished calls that an input puts on record."""
    match item:
        case CallsRecorded():
            return item.record.entries
        case Resulted():
            return item.result.entries
        case _:
            return ()


def is_paid(item: GroupInput) -> bool:
    """Whether an input holds money back or spends it."""
    reserves = isinstance(item, CallsRecorded) and item.record.reserve is not None
    return reserves or any(entry.usage != NO_USAGE for entry in calls_of(item))


def cycle_of(item: GroupInput) -> UUID | None:
    """The cycle that an input names itself."""
    match item:
        case CycleRequested() | CancelRequested() | ProposalAnswered() | CycleOverdue():
            return item.cycle_id
        case _:
            return None
