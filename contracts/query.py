"""Queries about a running desk, and their answers. Served by the console, read-only."""

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal
from uuid import UUID

from pydantic import Field, JsonValue

from contracts.account import Portfolio
from contracts.cycle import DECISION, CycleStatus
from contracts.execution import ExecutionResult, Fill
from contracts.memory import DecisionOutcome
from contracts.message import Message
from contracts.operation import JournalEntry, OperationStatus, OperationView
from contracts.risk import DecisionValidation
from contracts.types import (
    CycleId,
    Failure,
    IdDigits,
    Name,
    OperationId,
    ShortText,
    Sought,
    Text,
    Usage,
    Usd,
    Value,
)

PAGE_MAX = 200


class CycleQuery(Message):
    """One cycle by its id, or by the first characters of it."""

    cycle_id: ShortText


class PipelineView(Value):
    """One pipeline of a cycle: where it is, and the contracts it has made, by name.

    `outcomes` are what later cycles of the account have told of its decision, the earliest first.
    """

    name: Name
    account: Name
    provider: Name
    state: ShortText
    status: CycleStatus
    reason: Text = ""
    contracts: dict[str, JsonValue] = Field(default_factory=dict)
    outcomes: tuple[DecisionOutcome, ...] = ()


class CycleView(Message):
    """A cycle with all that was decided. `found` is False where no such cycle exists.

    `usage` is `tokens` and `cost_usd` by sort. `outcome` says in one sentence what came of it, or
    where it is.
    """

    found: bool = True
    message: Text = ""
    cycle_id: CycleId | None = None
    kind: ShortText = ""
    as_of: date | None = None
    status: CycleStatus | None = None
    reason: Text = ""
    outcome: ShortText = ""
    requester: ShortText = ""
    accepted_at: datetime | None = None
    ended_at: datetime | None = None
    tokens: int = 0
    cost_usd: Usd = Decimal(0)
    usage: Usage = Usage()
    pipelines: tuple[PipelineView, ...] = ()


class CycleSort(StrEnum):
    """The order of a list of cycles: by start, duration, session, kind, status, tokens or cost."""

    STARTED = "started"
    TOOK = "took"
    AS_OF = "as_of"
    KIND = "kind"
    STATUS = "status"
    TOKENS = "tokens"
    COST = "cost"


class CyclesQuery(Message):
    """The newest cycles first; or by another `sort`, of the newest ones, largest first unless
    `ascending`.

    `account` and `provider` are of one pipeline. `since` and `until` are sessions: as_of lies
    between them, and the newest session comes first. `text` is found in the outcome, the kind, the
    requester, or is how the id begins. `before` is the id of a cycle in this list, or its first
    digits: those behind it.
    """

    status: CycleStatus | None = None
    kind: Name | None = None
    account: Name | None = None
    provider: Name | None = None
    since: date | None = None
    until: date | None = None
    text: Sought | None = None
    sort: CycleSort = CycleSort.STARTED
    ascending: bool = False
    before: IdDigits | None = None
    limit: int = Field(default=20, ge=1, le=PAGE_MAX)


class CyclesPage(Message):
    """Cycles without their contracts.

    `before` asks for those behind them; None where there are no more. `searched` cycles were looked
    through for what no index finds; `cut` where there are more than those.
    """

    cycles: tuple[CycleView, ...] = ()
    before: CycleId | None = None
    searched: int = 0
    cut: bool = False


class OperationsQuery(Message):
    """Operations, newest first, or those of one cycle in the order of their making.

    The newest are operations and cycles, or operations alone where they are filtered by `account`,
    an as_of from `since` to `until`, a `text` (in the step, the result or the failure, or how its
    id or its cycle's begins), or asked for behind one: `before`, its id or first digits.
    """

    cycle_id: IdDigits | None = None
    type: ShortText | None = None
    status: OperationStatus | None = None
    account: Name | None = None
    since: date | None = None
    until: date | None = None
    text: Sought | None = None
    before: IdDigits | None = None
    limit: int = Field(default=50, ge=1, le=PAGE_MAX)


class OperationsPage(Message):
    """The operations found. Asked for one cycle, its calls are among them, as leaves.

    `before` asks for those behind them; None where there are no more, where cycles are among them,
    or of one cycle.
    """

    operations: tuple[OperationView, ...] = ()
    before: OperationId | None = None


class OperationQuery(Message):
    """One operation with what went in and what came out."""

    op_id: IdDigits


class OperationDetail(Message):
    """An operation's view, command, result and journal; `message` says why none was found."""

    found: bool = True
    message: Text = ""
    operation: OperationView | None = None
    command: JsonValue = None
    result: JsonValue = None
    journal: tuple[JournalEntry, ...] = ()


class DeadLettersQuery(Message):
    """The newest dead letters, or one by its sequence with its body."""

    sequence: int | None = Field(default=None, ge=1)
    limit: int = Field(default=20, ge=1, le=PAGE_MAX)


class DeadLetter(Value):
    """A message that could not be used, and why. `body` is there when one was asked for."""

    sequence: int
    subject: ShortText
    at: datetime
    failure: Failure
    size_bytes: int = 0
    body: str | None = None


class DeadLettersPage(Message):
    """The dead letters found, newest first."""

    letters: tuple[DeadLetter, ...] = ()


class AccountQuery(Message):
    """One account as its books stand, with its newest fills."""

    account: Name
    fills: int = Field(default=20, ge=0, le=PAGE_MAX)


class AccountView(Message):
    """An account; `found` is False where no such account was ever opened.

    Realised gains (before fees), dividends and fees are since the opening; a loss is negative.
    Unrealised gains and exposure are at the portfolio's prices. All in the account's currency.
    `paid_in` is the starting cash with what the owner has brought in since (holdings at their cost)
    less what was taken out; equity less that is the P&L. `return_pct` is time-weighted.
    """

    found: bool = True
    portfolio: Portfolio | None = None
    starting_cash: Decimal = Decimal(0)
    paid_in: Decimal = Decimal(0)
    return_pct: Decimal = Decimal(0)
    fills: tuple[Fill, ...] = ()
    accounts: tuple[Name, ...] = ()
    realised: Decimal = Decimal(0)
    dividends: Decimal = Decimal(0)
    fees: Decimal = Decimal(0)
    unrealised: Decimal = Decimal(0)
    exposure_gross: Decimal = Decimal(0)
    exposure_net: Decimal = Decimal(0)


class EquityQuery(Message):
    """An account's equity over its sessions, at most `points` of them, evenly picked."""

    account: Name
    points: int = Field(default=60, ge=2, le=PAGE_MAX)


class EquityPoint(Value):
    """The account at the close of a session, in its currency; gains, what the owner has `paid_in`
    and the time-weighted return are since the opening. `drawdown_pct` is the distance from the
    highest point of that return at any session before."""

    session: date
    cash: Decimal
    equity: Decimal
    realised: Decimal
    unrealised: Decimal
    exposure_gross: Decimal
    exposure_net: Decimal
    paid_in: Decimal = Decimal(0)
    return_pct: Decimal = Decimal(0)
    drawdown_pct: Decimal = Decimal(0)


class EquityView(Message):
    """The points, oldest first: from the opening to how the account stands now. The max drawdown
    is of all sessions, also of those that have no point."""

    found: bool = True
    points: tuple[EquityPoint, ...] = ()
    max_drawdown_pct: Decimal = Decimal(0)
    max_drawdown_on: date | None = None


class RecordingQuery(Message):
    """One operation of a cycle, with its journal, for a replay. `index` counts from 0."""

    cycle_id: CycleId
    index: int = Field(default=0, ge=0)


class Recording(Message):
    """The record of one operation; `more` tells whether another follows."""

    found: bool = True
    more: bool = False
    op_id: UUID | None = None
    service: Name | None = None
    step: Name | None = None
    pipeline: Name | None = None
    status: Literal["pending", "running", "completed", "failed", "cancelled"] | None = None
    command: JsonValue = None
    result: JsonValue = None
    failure: Failure | None = None
    journal: tuple[JournalEntry, ...] = ()


class ApprovalsQuery(Message):
    """Proposals that wait for a person, the one that expires first at the top."""

    cycle_id: IdDigits | None = None
    limit: int = Field(default=20, ge=1, le=PAGE_MAX)


class WaitingApproval(Value):
    """One proposal that waits; it is answered by its cycle and the proposal's hash."""

    cycle_id: CycleId
    op_id: OperationId
    pipeline: Name
    account: Name
    as_of: date
    requester: ShortText
    requested_at: datetime
    expires_at: datetime
    proposal: DecisionValidation


class ApprovalsPage(Message):
    """The proposals that wait; `more` where the limit or the message's size cut the list."""

    approvals: tuple[WaitingApproval, ...] = ()
    more: bool = False


class DecisionsQuery(Message):
    """The newest decisions first: of one cycle, of one account, or of all."""

    cycle_id: IdDigits | None = None
    account: Name | None = None
    limit: int = Field(default=20, ge=1, le=PAGE_MAX)


class DecisionView(Value):
    """One pipeline's decision: what the rules left of its picks, and what was ordered of that.

    `kind` is the cycle's: of an `exit` they are the sales that exit signals led to. `execution` is
    None while nothing was executed: it waits, or nothing was left to order.
    """

    cycle_id: CycleId
    kind: Name = DECISION
    pipeline: Name
    account: Name
    as_of: date
    decided_at: datetime
    decision: DecisionValidation
    execution: ExecutionResult | None = None


class DecisionsPage(Message):
    """The decisions found; `more` where the message's size cut the list."""

    decisions: tuple[DecisionView, ...] = ()
    more: bool = False


class BudgetQuery(Message):
    """Ask for the remaining model budget of today, and the use of the last days."""

    days: int = Field(default=1, ge=1, le=PAGE_MAX)


class DayUsage(Value):
    """The usage of all cycles of one UTC day, by sort."""

    day: date
    usage: Usage = Usage()


class BudgetView(Message):
    """Today's budget: limits, what is held back for calls in flight, and what is left of it.

    `resets_at` is when the next UTC day begins. `operation_...` is what one operation may use, and
    `cycle_...` what one cycle may, where its request says nothing. `days` has today first; days
    without a paid call are left out.
    """

    today: date
    resets_at: datetime
    tokens_max: int
    cost_usd_max: Usd
    tokens_held: int = 0
    cost_usd_held: Usd = Decimal(0)
    tokens_left: int
    cost_usd_left: Usd
    operation_tokens_max: int
    operation_cost_usd_max: Usd
    cycle_tokens_max: int
    cycle_cost_usd_max: Usd
    days: tuple[DayUsage, ...] = ()
