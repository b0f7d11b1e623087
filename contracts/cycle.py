"""Cycles: what is asked for, how it is answered, how it ends."""

import operator
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Literal, Self, TypeVar
from uuid import UUID

from pydantic import Field, StringConstraints, ValidationInfo, field_validator, model_validator

from contracts.constraints import ConstraintWords
from contracts.message import Message, Pipeline, Request
from contracts.proposal import TradeProposal
from contracts.strategy import StrategyWish
from contracts.types import (
    CycleId,
    Money,
    Name,
    Percent,
    Quantity,
    ShortText,
    Text,
    Ticker,
    Value,
    is_none,
)

PIPELINE_DEFAULT = Pipeline(name="rules").model_dump(mode="json", exclude={"account_named"})
UNIVERSE_MAX = 500
PIPELINES_MAX = 8
SAMPLES_MAX = 9
"""Times that the trader may be asked the same."""
TIMEOUT_S_DEFAULT = 600.0
STRATEGY_TIMEOUT_S_DEFAULT = 3_600.0
"""A strategy cycle's own time limit: training takes its time."""
TimeLimit = Annotated[float, Field(gt=0, le=86_400)]
"""Seconds that a cycle may take."""
DECISION: Final = "decision"
STRATEGY = "strategy"
EXIT = "exit"
PREVIEW: Final = "preview"
"""Of proposers alone: the rules judge a proposal, and nothing is ordered."""
PROBE: Final = "probe"
"""Of studies alone: it asks who and when a masked input is."""
BOOKKEEPING = ("snapshot", "report")
"""Kinds that bring accounts to a close, and decide nothing."""
KINDS = (DECISION, EXIT, STRATEGY, *BOOKKEEPING)
"""The kinds of cycles that anybody may ask for."""

IdempotencyKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$")]


class CycleStatus(StrEnum):
    """Where a cycle or one of its pipelines is; all but `running` are final."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"
    EXPIRED = "expired"


class Budgets(Value):
    """The budgets of a cycle: on positions (`money`), on models (`tokens`, `cost_usd`).

    `money` caps the buys of each pipeline; None leaves the account's cash and limits as caps.
    """

    money: Money | None = None
    tokens: int = Field(default=2_000_000, ge=0)
    cost_usd: Decimal = Field(default=Decimal(10), ge=0, max_digits=12, decimal_places=6)

    @field_validator("money")
    @classmethod
    def _money_not_negative(cls, money: Money | None) -> Money | None:
        if money is not None and money.amount < 0:
            raise ValueError("must not be negative")
        return money


class Rotation(Value):
    """Who trades `account` when: the pipelines named take turns, one exchange session each.

    A name that is no pipeline of the request keeps its turn: nobody trades the account then.
    """

    account: Name = "main"
    order: tuple[Name, ...] = Field(min_length=1, max_length=PIPELINES_MAX)

    @field_validator("order")
    @classmethod
    def _each_once(cls, order: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(order)) < len(order):
            raise ValueError("one is named twice")
        return order


class SellNow(Value):
    """A person sells `share_pct` percent of a position now, whatever its exit rules say: through
    the same rules for sales, approval and execution as any exit. Never more than `quantity_max`
    shares, where it is set."""

    ticker: Ticker
    share_pct: Percent = Field(default=Decimal(100), gt=0)
    quantity_max: Quantity | None = Field(default=None, gt=0, exclude_if=is_none)


Sale = TypeVar("Sale", SellNow | None, tuple[SellNow, ...])

STUDY_ACCOUNTS = "study-"
"""How the account of each cell or path of a study begins. No other request may name such an
account."""


class StudyCell(Value):
    """The place of a cycle that is a cell of a study: the number of its date from 0, its sample.

    `seed` is that of its commands. `offline`: no model is asked what is not on record already.
    `dry_run`: the request is judged, as a person's is, and nothing begins.
    """

    study: Name
    number: int = Field(ge=0)
    sample: int = Field(default=0, ge=0)
    seed: int = Field(default=0, ge=0)
    offline: bool = False
    dry_run: bool = Field(default=False, exclude_if=operator.not_)


def own_account(pipeline: Pipeline) -> Pipeline:
    """The pipeline with the account of its name, unless it names one."""
    if pipeline.account_named:
        return pipeline
    return pipeline.model_copy(update={"account": pipeline.name})


class CycleRequest(Request):
    """A request for one cycle. Publishing it again with the same key and body changes nothing.

    `as_of` None means the newest session of the market source; `universe` None means what the
    sources propose, a tuple restricts the candidates to it. An account that a pipeline names is the
    one that it trades. Where it names none, the first pipeline trades `main`, each other the
    account of its own name; with a `rotation` the one whose turn as_of's session is trades the
    rotation's account and is the main one. A request that names as `main` who trades the
    rotation's account has settled the turn itself. Of the `constraints` code enforces those of
    `contracts.constraints`; the others are notes to the agents. `sell_now` and
    `sell_all`, sales of several positions at once, are a person's: a model of another program that
    asks for them is refused. `study` is set by the desk alone, where the
    cycle is a cell of one; so is `proposal`, of what a proposer sent. `samples` is how often a
    model that trades is asked on the same evidence: what it does not say again is left out.
    `timeout_s` is the cycle's time limit. Of both None is the desk's setting.
    """

    idempotency_key: IdempotencyKey
    kind: Name = DECISION
    as_of: date | None = None
    universe: tuple[Ticker, ...] | None = Field(default=None, min_length=1, max_length=UNIVERSE_MAX)
    sources: tuple[Name, ...] = Field(default=(), max_length=16)
    pipelines: tuple[Pipeline, ...] = Field(
        default=(Pipeline(name="rules"),),
        min_length=1,
        max_length=PIPELINES_MAX,
        # What the default comes to without a rotation; that nobody has named the account is no
        # part of what is published.
        json_schema_extra={"default": [PIPELINE_DEFAULT]},
    )
    main: Name | None = None
    rotation: Rotation | None = None
    budgets: Budgets = Budgets()
    approval_required: bool = False
    constraints: ConstraintWords = Field(default_factory=dict)
    timeout_s: TimeLimit | None = None
    strategy: StrategyWish | None = None
    sell_now: SellNow | None = Field(default=None, exclude_if=is_none)
    sell_all: tuple[SellNow, ...] = Field(
        default=(), max_length=UNIVERSE_MAX, exclude_if=operator.not_
    )
    study: StudyCell | None = Field(default=None, exclude_if=is_none)
    samples: int | None = Field(default=None, ge=1, le=SAMPLES_MAX, exclude_if=is_none)
    proposal: TradeProposal | None = Field(default=None, exclude_if=is_none)

    @field_validator("pipelines")
    @classmethod
    def _pipelines_differ(cls, pipelines: tuple[Pipeline, ...]) -> tuple[Pipeline, ...]:
        if len({pipeline.name for pipeline in pipelines}) < len(pipelines):
            raise ValueError("two have the same name")
        first, *others = pipelines
        pipelines = (first, *(own_account(pipeline) for pipeline in others))
        if len({pipeline.account for pipeline in pipelines}) < len(pipelines):
            raise ValueError("two trade the same account")
        return pipelines

    @field_validator("main")
    @classmethod
    def _main_is_one_of_them(cls, main: str | None, info: ValidationInfo) -> str | None:
        # Pipelines that are not valid themselves are told of instead.
        names = [pipeline.name for pipeline in info.data.get("pipelines", ())]
        if main is not None and names and main not in names:
            raise ValueError(f"no pipeline is named {main}")
        return main

    @field_validator("rotation")
    @classmethod
    def _one_trades_the_account(
        cls, rotation: Rotation | None, info: ValidationInfo
    ) -> Rotation | None:
        if rotation is None:
            return None
        main = info.data.get("main")
        own = {
            pipeline.name: own_account(pipeline).account
            for pipeline in info.data.get("pipelines", ())
        }
        if len({*own.values()}) < len(own):
            raise ValueError("outside their turns two trade the same account")
        trading = {name for name, account in own.items() if account == rotation.account}
        if main is not None and main not in trading:
            raise ValueError(
                f"main is {main}, which does not trade {rotation.account}; leave it out"
            )
        for name in sorted(trading - {main}):
            raise ValueError(
                f"pipeline {name} trades {rotation.account} outside its turn; give it an account "
                "of its own"
            )
        return rotation

    @field_validator("strategy")
    @classmethod
    def _strategies_are_their_own_kind(
        cls, wish: StrategyWish | None, info: ValidationInfo
    ) -> StrategyWish | None:
        if wish is not None and info.data.get("kind", STRATEGY) != STRATEGY:
            raise ValueError(f"only a cycle of kind {STRATEGY!r} has one")
        return wish

    @field_validator("sell_now", "sell_all")
    @classmethod
    def _only_an_exit_sells_now(cls, sale: Sale, info: ValidationInfo) -> Sale:
        if sale and info.data.get("kind", EXIT) != EXIT:
            raise ValueError(f"only a cycle of kind {EXIT!r} has one")
        if sale and len(info.data.get("pipelines", ())) > 1:
            raise ValueError("it sells for one account: name one pipeline")
        return sale

    @field_validator("sell_all")
    @classmethod
    def _each_is_sold_once(
        cls, sales: tuple[SellNow, ...], info: ValidationInfo
    ) -> tuple[SellNow, ...]:
        if sales and info.data.get("sell_now"):
            raise ValueError("sell_now is a sale too: put it among these")
        if len({sale.ticker for sale in sales}) < len(sales):
            raise ValueError("a ticker is named twice")
        return sales

    @model_validator(mode="after")
    def _one_pipeline_designs(self) -> Self:
        if self.kind == STRATEGY and len(self.pipelines) > 1:
            raise ValueError("pipelines: a strategy cycle has one; ask for a cycle a provider")
        return self

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts that it may trade, whosever turn it is."""
        if self.rotation is None or self.main is not None:
            return tuple(pipeline.account for pipeline in self.pipelines)
        own = (own_account(pipeline).account for pipeline in self.pipelines)
        return (*own, self.rotation.account)

    @property
    def by_hand(self) -> tuple[SellNow, ...]:
        """What a person sells with it."""
        return self.sell_all if self.sell_now is None else (self.sell_now,)

    @property
    def attempts(self) -> int:
        """The most attempts of a pipeline, where a gate fails its result."""
        return self.strategy.attempts if self.strategy else 1

    @property
    def main_pipeline(self) -> str:
        """The pipeline whose end is the cycle's end: the one named, else the first."""
        return self.main or self.pipelines[0].name


class CancelCycle(Request):
    """Cancel a cycle that has not started to execute."""

    cycle_id: CycleId
    reason: ShortText = "cancelled by request"


class RequestAnswer(Message):
    """The answer to a request. A repeated request is `accepted` too, with the current status.

    `code` where it was rejected: `invalid`, `too_large` (see `field`), `key_reused`, `busy`,
    `budget_exhausted` (the day's; `retry_at` is when the next day's begins), `not_storable`,
    `not_found`, `too_late`; of an approval also `not_waiting`, `proposal_changed`, `decided`,
    `expired`, `unreadable`. A date, kind, candidate source, provider or ticker that there is not is
    refused too (`not_a_session`, `no_history`, `invalid`, `unknown_source`, `provider_unknown`,
    `unknown_ticker` ...), and a session that the accounts of all pipelines have passed
    (`clock_back`): `given` is what was asked for and `suggestion` what would do in its
    place. Where nobody who knows answers in time, the work itself finds out.
    """

    outcome: Literal["accepted", "rejected"]
    cycle_id: UUID | None = None
    status: CycleStatus | None = None
    code: ShortText | None = None
    field: ShortText | None = None
    message: Text = ""
    given: ShortText | None = None
    suggestion: ShortText | None = None
    retry_at: datetime | None = None
