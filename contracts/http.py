"""The shapes of the HTTP API that are no contracts of the bus itself."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, SecretStr

from contracts.approval import EDITS_MAX, QuantityEdit
from contracts.cycle import (
    STRATEGY,
    UNIVERSE_MAX,
    Budgets,
    CycleRequest,
    CycleStatus,
    IdempotencyKey,
    TimeLimit,
)
from contracts.message import MAIN_ACCOUNT, Pipeline, Request
from contracts.operation import OperationStatus, OperationView, Progress
from contracts.strategy import ATTEMPTS_MAX, EPOCHS_MAX, FOLDS_MAX, StrategySpec, StrategyWish
from contracts.strategy_query import CURVE_POINTS_MAX, StrategyView
from contracts.strategy_result import FoldResult
from contracts.types import Currency, Name, Percent, ShortText, Ticker, Usage

PROBLEM_TYPE = "urn:deskbus:problem"


class Shape(BaseModel):
    """A body that is answered."""

    model_config = ConfigDict(frozen=True)


class Problem(Shape):
    """Why a request was not done (RFC 9457): `code` is for programs, `detail` for people.

    `field` is the part of the request that is at fault, and `suggestion` what would be taken there
    instead; `cycle_id` and `cycle_status` are there where it is about a cycle that there is.
    """

    type: str = Field(description=f"{PROBLEM_TYPE}:CODE")
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    suggestion: str | None = None
    cycle_id: UUID | None = None
    cycle_status: CycleStatus | None = None


class LogIn(Request):
    """A browser's way in: the token that was set for this desk."""

    token: SecretStr = Field(min_length=1, max_length=1_000)


class Trigger(Request):
    """A strategy cycle. Everything has a default: no body at all is a request too.

    `spec` is a design to run as it is; without one `provider` designs, up to `attempts` times where
    a gate stops a design. `as_of` is the newest session where it is not given.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{}, {"attempts": 5, "universe": ["AAPL", "IBM"]}]}
    )

    spec: StrategySpec | None = None
    attempts: int = Field(default=1, ge=1, le=ATTEMPTS_MAX)
    provider: Name = "rules"
    as_of: date | None = None
    universe: tuple[Ticker, ...] | None = Field(default=None, min_length=1, max_length=UNIVERSE_MAX)
    budgets: Budgets = Budgets()
    timeout_s: TimeLimit | None = None

    def request(self, key: str) -> CycleRequest:
        """The request that it stands for. Raises pydantic's ValidationError."""
        return CycleRequest(
            idempotency_key=key,
            kind=STRATEGY,
            as_of=self.as_of,
            universe=self.universe,
            pipelines=(Pipeline(name=self.provider, provider=self.provider),),
            budgets=self.budgets,
            timeout_s=self.timeout_s,
            strategy=StrategyWish(spec=self.spec, attempts=self.attempts),
        )


class AgentCycle(Shape):
    """A strategy cycle; its operation's id is the cycle's id too."""

    operation_id: UUID
    status: CycleStatus


class Triggered(AgentCycle):
    """The strategy cycle that runs by this request."""

    triggered: Literal[True] = True


class AgentStatus(Shape):
    """Where the strategy cycle is: `status` is `active` or `idle`, `phase` is null when idle.

    The rest speaks of the newest strategy cycle, where there has been one.
    """

    status: str
    phase: str | None = None
    operation_id: UUID | None = None
    operation_status: str | None = None
    error_message: str | None = None
    progress: Progress = Progress()
    metadata: dict[str, JsonValue] = {}

    @classmethod
    def of(cls, nodes: Sequence[OperationView]) -> Self:
        """The status of a cycle by its operation tree, the parent first; of none, idle."""
        if not nodes:
            return cls(status="idle")
        parent, *children = nodes
        running = [child for child in children if child.status is OperationStatus.RUNNING]
        phase = parent.metadata.get("phase")
        return cls(
            status="active" if parent.status is OperationStatus.RUNNING else "idle",
            phase=str(phase) if phase else None,
            operation_id=parent.op_id,
            operation_status=parent.status.value,
            error_message=parent.error_message,
            progress=running[-1].progress if running else Progress(),
            metadata=parent.metadata,
        )


class CycleWish(CycleRequest):
    """A request for a cycle. The idempotency key is better given as the header of that name."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"as_of": "2012-06-29", "universe": ["AAPL", "MSFT"]},
                {"as_of": "2012-06-29", "approval_required": True, "timeout_s": 600},
            ],
        }
    )

    idempotency_key: IdempotencyKey = Field(default="", validate_default=False)

    def request(self, key: str) -> CycleRequest:
        """The request under `key`."""
        fields = self.model_dump(exclude_unset=True, exclude={"idempotency_key"})
        return CycleRequest.model_validate({**fields, "idempotency_key": key})


class CycleAccepted(Shape):
    """The cycle that a request is about, and where it is now."""

    cycle_id: UUID
    status: CycleStatus


class PositionSale(Request):
    """Sell `share_pct` percent of a position at the open after `as_of`; the newest session where it
    is left out."""

    account: Name = MAIN_ACCOUNT
    share_pct: Percent = Field(default=Decimal(100), gt=0)
    as_of: date | None = None


class ProposalAnswer(Request):
    """A word on the proposal that a cycle waits with, bound to the hash of what was seen.

    `pipeline` is needed only where two of the cycle wait with the same proposal.
    """

    proposal_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    pipeline: Name | None = None
    reason: ShortText = ""


class ProposalApproval(ProposalAnswer):
    """A yes. `edits` names decisions that are to become smaller; nothing can become larger."""

    edits: tuple[QuantityEdit, ...] = Field(default=(), max_length=EDITS_MAX)


class ExitAnswer(Shape):
    """The exit signals of a position, in the format that was asked for; docs/exit-signals.md."""

    model_config = ConfigDict(frozen=True, extra="allow")

    status: str


class PriceBar(Shape):
    """One session's prices, in the currency that the ticker trades in."""

    session: date
    open: float
    high: float
    low: float
    close: float
    volume: float


class PriceBars(Shape):
    """A ticker's bars up to a session, adjusted for splits and dividends up to it."""

    ticker: Ticker
    currency: Currency
    as_of: date
    source: str
    bars: tuple[PriceBar, ...]


class SearchResult(Shape):
    """One thing that a search leads to: `page` is its address in the console."""

    kind: Literal["account", "ticker", "cycle", "operation", "strategy", "job", "setting"]
    title: ShortText
    detail: ShortText = ""
    page: ShortText


class SearchView(Shape):
    """Things that are named so, or have an id that begins so: by kind, at most a few of each."""

    results: tuple[SearchResult, ...] = ()


class OperationBody(Shape):
    """One operation."""

    data: OperationView


class OperationsBody(Shape):
    """Operations, the newest first; those of one cycle in the order of their making.

    `before` asks for those behind them, where the list goes on.
    """

    data: tuple[OperationView, ...]
    before: UUID | None = None


class StrategyDetail(Shape):
    """A strategy's newest run with what a list leaves out: `loss_curve` by epoch, the walk-forward
    `folds`, and the `sessions` of the points of both equity curves."""

    strategy: StrategyView
    loss_curve: tuple[float, ...] = Field(default=(), max_length=EPOCHS_MAX + 1)
    folds: tuple[FoldResult, ...] = Field(default=(), max_length=FOLDS_MAX)
    sessions: tuple[date, ...] = Field(default=(), max_length=CURVE_POINTS_MAX)


class HoldingPoint(Shape):
    """A session, and what the account would be worth at its close."""

    session: date
    worth: Decimal


class HoldingView(Shape):
    """The account's equity under buy-and-hold: its first money in equal parts of the candidates of
    its first decision (`tickers`; `absent` had no price). Without points `message` says why.
    """

    found: bool = True
    points: tuple[HoldingPoint, ...] = ()
    tickers: tuple[Ticker, ...] = ()
    absent: tuple[Ticker, ...] = ()
    message: ShortText = ""


class ReasonBody(Request):
    """A reason; it stays on record."""

    reason: ShortText = ""


class RunWish(Request):
    """Run a job as if one of its slots were at `at`; now, to the second, where it is not given."""

    at: AwareDatetime | None = None


class CostRow(Shape):
    """The costs of one model in one kind of step on one UTC day.

    Where `model` is null it is what was held back for calls whose reply never came.
    """

    day: date
    provider: ShortText
    model: ShortText | None
    stage: ShortText
    calls: int
    usage: Usage


class CostsView(Shape):
    """The costs of models since `since`, the newest day first.

    `counted` operations with paid calls were looked at; `cut` where there were more, and the oldest
    are left out. What a day came to in all, and its budget, is in `BudgetView`.
    """

    since: date
    rows: tuple[CostRow, ...]
    counted: int
    cut: bool


class StreamView(Shape):
    """A stream of NATS, which keeps `bytes_max` at most and nothing longer than `age_s_max`.

    `per_minute` messages come in a minute; None where the bus was not read shortly before.
    """

    name: str
    messages: int
    bytes: int
    bytes_max: int
    age_s_max: float
    first_sequence: int
    last_sequence: int
    first_at: datetime | None = None
    last_at: datetime | None = None
    per_minute: float | None = None


class ConsumerView(Shape):
    """A service's queue of one command: `pending` messages wait, `ack_pending` are being worked on
    or lost, `redelivered` of them were delivered before. `per_minute` are delivered in a minute."""

    name: str
    stream: str
    service: str
    pending: int
    ack_pending: int
    redelivered: int
    delivered: int
    per_minute: float | None = None


class ServiceView(Shape):
    """A part of the desk: how many of its processes answer now; with 0 it is gone."""

    name: str
    instances: int


class ServerView(Shape):
    """An embedded server: whether it is well, what it says is wrong, where on this machine."""

    name: str
    healthy: bool
    problem: str = ""
    port: int
    pid: int | None = None


class BusView(Shape):
    """The bus: streams, consumers, and who is there: every service that a whole desk has.

    `servers` is empty where they are one's own; `not_stored` is why NATS does not store commands,
    empty where it does. Rates are of the last `rates_s` seconds; None where there are none yet.
    """

    streams: tuple[StreamView, ...]
    consumers: tuple[ConsumerView, ...]
    services: tuple[ServiceView, ...]
    servers: tuple[ServerView, ...] = ()
    not_stored: str = ""
    rates_s: float | None = None
