"""Operations: tracked work, and the four questions a service may ask about it."""

import operator
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, JsonValue, StringConstraints

from contracts.message import CORRECTIONS_MAX, Limit, Message
from contracts.types import (
    Behind,
    Cost,
    CycleId,
    Failure,
    IdDigits,
    Name,
    OfAccount,
    OperationId,
    ShortText,
    Since,
    SoughtText,
    Text,
    Until,
    Usage,
    Value,
    is_none,
)

JOURNAL_BATCH_MAX = 80
"""Entries in one `Record`; a round of tool calls is one batch."""
JOURNAL_BATCH_BYTES_MAX = 400_000
"""Bytes of entries, or of known answers, in one message, so that the whole stays under the message
limit."""


class OperationStatus(StrEnum):
    """Where an operation is; the last three are final."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class CallKind(StrEnum):
    """The kind of a journalled call: a model's turn, a tool's result, or another read."""

    MODEL = "model"
    TOOL = "tool"
    READ = "read"


GET_PORTFOLIO = "get_portfolio"
"""The tool that answers with an account: its cash, positions and orders."""

FAULTS: Mapping[CallKind, str] = {CallKind.MODEL: "fault", CallKind.TOOL: "error"}
"""The key of a reply that says why there is none."""


def fault_in(kind: CallKind, reply: JsonValue) -> Mapping[str, JsonValue]:
    """The fault of a call that gave no reply, with a `code`; empty where it gave one."""
    fault = reply.get(FAULTS.get(kind, "")) if isinstance(reply, dict) else None
    return fault if isinstance(fault, dict) else {}


class JournalEntry(Value):
    """One finished call of an operation. `index` counts from 0 in the order of asking.

    A model's call is named `provider:model`.

    `request` holds only what is new since the previous model call, never the transcript again;
    `request_sha256` covers the whole request and must match when the entry is used again.
    `passed` is set where nothing was read but an answer was held against its contract. A paid
    call's `address` is the hash of all that its model was sent; `reused`: the answer to the same
    was on record, and was not paid again. `texts` are what a model was sent and `request` names by
    hash: they only travel with a new entry, and are stored apart from it.
    """

    index: int = Field(ge=0, le=10_000)
    kind: CallKind
    name: ShortText
    request_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    request: JsonValue
    reply: JsonValue
    usage: Usage = Usage()
    duration_ms: float = Field(default=0.0, ge=0)
    passed: bool | None = None
    address: Sha256 | None = Field(default=None, exclude_if=is_none)
    reused: bool = Field(default=False, exclude_if=operator.not_)
    texts: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)

    @property
    def provider(self) -> str:
        """Whom a model's call asked."""
        return self.name.partition(":")[0]

    @property
    def fault(self) -> Mapping[str, JsonValue]:
        """As `fault_in` says of its reply."""
        return fault_in(self.kind, self.reply)


class Reserve(Value):
    """The most that the next calls may cost; it is held back until they are recorded.

    `cost_usd` is None where the model's price is unknown: only tokens bound the call.
    `name` and `index` say which call that is, for the audit: the first, where `calls` are made at
    once. `provider` is whom they ask; its rate limits count them. `addresses` are those of the
    calls, in their order.
    """

    tokens: int = Field(default=0, ge=0)
    cost_usd: Cost = Decimal(0)
    name: ShortText = ""
    index: int | None = Field(default=None, ge=0, le=10_000)
    provider: ShortText = ""
    calls: int = Field(default=1, ge=1, le=1_000)
    addresses: tuple[Sha256, ...] = Field(default=(), max_length=JOURNAL_BATCH_MAX)


WAITS = "waits: "
"""How the step of an operation begins that waits for what cannot be reached."""


class Progress(Value):
    """How far a running operation is, for people."""

    percentage: float = Field(default=0.0, ge=0, le=100)
    step: ShortText = ""


class Claim(Message):
    """May I do this operation? Asked by `instance`, one process of the operation's service.

    With the `epoch` of a claim that was granted it asks for the journal from index `after` on: a
    journal that is too long for one message comes in pages.
    """

    op_id: OperationId
    instance: ShortText
    epoch: int | None = None
    after: int = Field(default=0, ge=0)


class ClaimAnswer(Message):
    """`granted` has an epoch, a lease in seconds and the journal up to now; otherwise drop the
    work.

    `more` says that the journal goes on after its last entry here.

    `busy`: another instance holds a live lease. `done`: ended already (also cancelled).
    `unknown`: no such operation. `forbidden`: it is another service's.
    """

    outcome: Literal["granted", "busy", "done", "unknown", "forbidden"]
    epoch: int = 0
    lease_s: float = 0.0
    journal: tuple[JournalEntry, ...] = ()
    more: bool = False


class Record(Message):
    """Commit finished calls, settle their cost, reserve the next, renew the lease."""

    op_id: OperationId
    epoch: int = Field(ge=1)
    entries: tuple[JournalEntry, ...] = Field(default=(), max_length=JOURNAL_BATCH_MAX)
    reserve: Reserve | None = None
    progress: Progress | None = None


class KnownAnswer(Value):
    """The reply to what was sent before, under the address of that."""

    address: Sha256
    reply: JsonValue


class RecordAnswer(Message):
    """`ok` renews the lease for `lease_s` seconds; any other outcome means: stop and start no call.

    `known`: of the reserved calls those whose answers are on record: they are not made again. With
    `more` they are the first of these, and nothing is reserved yet: ask again for the other calls.

    `wait_s`: the reserved call may begin after so long; its provider would be asked too fast else.

    `fenced`: a newer epoch has the work. `cancelled`: the operation ended. `refused`: the record
    cannot be kept, and `message` says why: nothing of it is on record. `budget_exhausted`:
    `message` names the budget and `field` its limit, a setting (`operation_tokens_max`,
    `operation_cost_usd_max`, `day_tokens_max`, `day_cost_usd_max`, or `providers.NAME.rate` where
    the call's turn would come too late) or a field of the request (`budgets.tokens`,
    `budgets.cost_usd`, `study.offline` where no model may be asked). `unknown` and `forbidden` as
    in `ClaimAnswer`.
    """

    outcome: Literal[
        "ok", "fenced", "cancelled", "refused", "budget_exhausted", "unknown", "forbidden"
    ]
    lease_s: float = 0.0
    wait_s: float = Field(default=0.0, ge=0)
    message: Text = ""
    field: ShortText | None = None
    known: tuple[KnownAnswer, ...] = Field(default=(), max_length=JOURNAL_BATCH_MAX)
    more: bool = False


class Result(Message):
    """How an operation ended at its service: a contract, or a failure.

    `corrections` are what the next attempt is sent: sentences that never quote the refused answer.
    A failure without them is final. `epoch` is that of the claim, None for handlers that never
    claim. `entries` are the finished calls of a
    claim that no `Record` holds yet: free ones, since a paid call is recorded before its answer is
    used.
    """

    op_id: OperationId
    epoch: int | None = None
    contract: JsonValue = None
    failure: Failure | None = None
    corrections: tuple[Text, ...] = Field(default=(), max_length=CORRECTIONS_MAX)
    entries: tuple[JournalEntry, ...] = Field(default=(), max_length=JOURNAL_BATCH_MAX)


class ResultAnswer(Message):
    """`ok`: this or an earlier result is recorded. `refused`: it cannot be recorded, and `message`
    says why; send a failure instead. Any other outcome: it does not count."""

    outcome: Literal["ok", "fenced", "refused", "unknown", "forbidden"]
    message: Text = ""


class CancelOperation(Message):
    """Sent to every instance of a service: the one that runs this operation stops now."""

    op_id: OperationId
    cycle_id: CycleId
    reason: ShortText = ""


class OperationView(Message):
    """An operation as people see it; cycles, pipelines and calls are nodes of its tree too.

    `usage` is `tokens` and `cost_usd` by sort; a node's is the sum of those below it.
    """

    op_id: UUID
    parent_id: UUID | None = None
    cycle_id: CycleId
    type: ShortText
    name: ShortText
    status: OperationStatus
    pipeline: Name | None = None
    state: Name | None = None
    service: Name | None = None
    attempt: int = 1
    epoch: int = 0
    progress: Progress = Progress()
    tokens: int = 0
    cost_usd: Cost = Decimal(0)
    usage: Usage = Usage()
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    result_summary: JsonValue = None
    error_message: Text | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None


class OperationsQuery(Message):
    """Operations, newest first, or those of one cycle in the order of their making.

    The newest are operations and cycles, or operations alone where they are filtered by `account`,
    an as_of from `since` to `until`, a `text` (in the step, the result or the failure, or how its
    id or its cycle's begins), or asked for behind one: `before`, its id or first digits.
    """

    cycle_id: IdDigits | None = None
    type: Annotated[ShortText, StringConstraints(to_lower=True)] | None = Field(
        default=None,
        description="Only this type: cycle, operation, agent_research, or a step such as plan.",
    )
    status: OperationStatus | None = Field(
        default=None, description="Only operations with this status."
    )
    account: OfAccount = None
    since: Since = None
    until: Until = None
    text: SoughtText = None
    before: Behind = None
    limit: Limit = 50


class OperationsPage(Message):
    """The operations found. Asked for one cycle, its calls are among them, as leaves.

    `before` asks for those behind them; None where there are no more, where cycles are among them,
    or of one cycle.
    """

    operations: tuple[OperationView, ...] = ()
    before: OperationId | None = None


class OperationQuery(Message):
    """One operation with its input and output."""

    op_id: IdDigits


class OperationDetail(Message):
    """An operation's view, command, result and journal; `message` says why none was found."""

    found: bool = True
    message: Text = ""
    operation: OperationView | None = None
    command: JsonValue = None
    result: JsonValue = None
    journal: tuple[JournalEntry, ...] = ()


class SentQuery(Message):
    """Ask what a model was sent with one call: its texts, then the lines that differ from the call
    before, from the `first` of both on."""

    op_id: IdDigits
    index: int = Field(ge=0, le=10_000)
    first: int = Field(default=0, ge=0, le=1_000_000)


class SentText(Value):
    """One text, exactly as it was sent, by whose turn it is: `system`, `tools` and `schema` (as
    JSON), `user`, `tool`, whose result is `about` a call, or `assistant`, the model's reply, which
    may ask for calls. Where there is no text `note` says why.
    """

    role: ShortText
    about: Text = ""
    text: str = ""
    note: Text = ""


class ChangedLine(Value):
    """A line that only this call (`+`) or only the one before (`-`) was sent."""

    part: ShortText
    sign: Literal["+", "-"]
    text: str


class Difference(Value):
    """How a call's texts differ from those of call `index` of `op_id`, the one before: the parts
    that are the `same`, those `moved` (the same lines in another order), and the lines that
    differ."""

    op_id: OperationId
    index: int
    same: tuple[ShortText, ...] = ()
    moved: tuple[ShortText, ...] = ()
    lines: tuple[ChangedLine, ...] = ()


class Sent(Message):
    """The texts of one call that no earlier call of its transcript was sent, and its reply;
    `message` says why there are none.

    `difference` stands in each page, with those of its lines that follow the texts there; None
    where no call is before it. With `more` the next page begins behind what those before it have.
    """

    found: bool = True
    message: Text = ""
    texts: tuple[SentText, ...] = ()
    more: bool = False
    difference: Difference | None = None
