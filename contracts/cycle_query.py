"""Queries about cycles, and their answers. Served by the console, read-only."""

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal
from uuid import UUID

from pydantic import Field, JsonValue

from contracts.cycle import CycleStatus
from contracts.memory import DecisionOutcome
from contracts.message import Limit, Message
from contracts.not_bought import NotBought
from contracts.operation import JournalEntry
from contracts.performance import OrderResult
from contracts.stages import Substitute
from contracts.types import (
    Behind,
    Cost,
    CycleId,
    Failure,
    Name,
    OfAccount,
    ShortText,
    Since,
    SoughtText,
    Text,
    Until,
    Usage,
    Value,
)


class CycleQuery(Message):
    """One cycle by its id, or its first characters."""

    cycle_id: ShortText


class PipelineView(Value):
    """One pipeline of a cycle: where it is, and the contracts it has made, by name.

    `substitutes` are the stages that another than its own model answered. `not_bought` are the
    candidates that its decision did not buy, with their causes: the first of a ticker is the
    weightiest. `results` are what came of its orders. `outcomes` are what later cycles of the
    account have told of its decision, the earliest first; `unreadable_outcomes` more were written
    by a later release.
    """

    name: Name
    account: Name
    provider: Name
    state: ShortText
    status: CycleStatus
    reason: Text = ""
    substitutes: tuple[Substitute, ...] = ()
    contracts: dict[str, JsonValue] = Field(default_factory=dict)
    not_bought: tuple[NotBought, ...] = ()
    results: tuple[OrderResult, ...] = ()
    outcomes: tuple[DecisionOutcome, ...] = ()
    unreadable_outcomes: int = Field(default=0, ge=0)


class CycleView(Message):
    """A cycle with its decisions. `found` is False if it does not exist.

    `timeout_s` is its time limit. `usage` is `tokens` and `cost_usd` by sort. `outcome` is its
    result or its current stage, in one sentence.
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
    timeout_s: float | None = None
    tokens: int = 0
    cost_usd: Cost = Decimal(0)
    usage: Usage = Usage()
    pipelines: tuple[PipelineView, ...] = ()

    def reason_of(self, pipeline: PipelineView) -> str:
        """Why one of its pipelines ended so. A cycle of several pipelines has a reason of its own,
        which is none of theirs."""
        return pipeline.reason or (self.reason if len(self.pipelines) == 1 else "")


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

    status: CycleStatus | None = Field(default=None, description="Only cycles with this status.")
    kind: Name | None = Field(default=None, description="Only cycles of this kind.")
    account: OfAccount = None
    provider: Name | None = Field(
        default=None, description="Only cycles with a pipeline of this provider."
    )
    since: Since = None
    until: Until = None
    text: SoughtText = None
    sort: CycleSort = Field(
        default=CycleSort.STARTED,
        description="Sort by this; all but `started` sort only the newest 2,000.",
    )
    ascending: bool = Field(default=False, description="Sort with the smallest first.")
    before: Behind = None
    limit: Limit = 20


class CyclesPage(Message):
    """Cycles without their contracts.

    `before` asks for those behind them; None where there are no more. `searched` cycles were looked
    through for what no index finds; `cut` where there are more than those.
    """

    cycles: tuple[CycleView, ...] = ()
    before: CycleId | None = None
    searched: int = 0
    cut: bool = False


class RecordingQuery(Message):
    """One operation of a cycle, with its journal, for a replay. `index` counts from 0."""

    cycle_id: CycleId
    index: int = Field(default=0, ge=0)


class Recording(Message):
    """The record of one operation; `more`: another part follows."""

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
