"""Studies: which arms are asked about which dates, and how far that is.

A study is the parent of ordinary decision cycles, its cells: a cell is one date and one sample, and
its pipelines are the arms, so that all arms decide on the same frozen inputs. What a study found is
in `contracts/study_score.py`.
"""

import hashlib
import operator
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Field, StringConstraints, field_validator, model_validator

from contracts.cycle import DECISION, PROBE, STUDY_ACCOUNTS
from contracts.message import Limit, Message, Pipeline, Request
from contracts.performance import CANDIDATES, Benchmark
from contracts.stages import RULES, DecisionStage, Stage, with_stages
from contracts.types import Cost, Day, Name, ShortText, Text, Ticker, Usd, Value

ARMS_MAX = 8
SAMPLES_MAX = 20
DATES_MAX = 5_000
CELLS_MAX = 20_000
HORIZONS_MAX = 6
HORIZON_MAX = 252
UNIVERSE_MAX = 200
STUDIES_MAX = 100
CALLS_STEPS_MAX = 200
"""Steps that models answer, of as many providers as a study has."""
STUDY_NOTES_MAX = HORIZONS_MAX + 2 * ARMS_MAX + 1
CellKind = Literal["decision", "probe"]
CELL_KINDS: tuple[CellKind, ...] = (DECISION, PROBE)
FREE_PROVIDERS = frozenset({"rules", "coin"})
"""Those that compute: their cells cost nothing, and no knowledge of theirs ever ends."""
PROBED_STAGE: Stage = "trader"
"""The stage whose model a probe asks."""
ArmName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,15}$")]
"""Short: it is the end of the names of accounts."""


class Part(Value):
    """A part of a study's file. Unknown fields are refused: a typing mistake must not pass."""

    model_config = ConfigDict(extra="forbid")


class StudyKind(StrEnum):
    """`picks`: every cell from the same empty book; `path`: one account an arm and sample that
    lives through the sessions. Their figures are never mixed."""

    PICKS = "picks"
    PATH = "path"


class StudyDates(Part):
    """Sessions: those listed, or `count` of those from `first` to `last`, one drawn from each of
    as many equal stretches; without `count` all of them. A `path` decides at every one of `every`
    sessions, and checks its exits at each."""

    sessions: tuple[date, ...] = Field(default=(), max_length=DATES_MAX)
    first: date | None = None
    last: date | None = None
    count: int | None = Field(default=None, ge=1, le=DATES_MAX)
    every: int = Field(default=5, ge=1, le=HORIZON_MAX)

    @model_validator(mode="after")
    def _one_way_or_the_other(self) -> Self:
        if self.sessions:
            if self.first or self.last or self.count:
                raise ValueError("list sessions, or give first and last: not both")
            if list(self.sessions) != sorted(set(self.sessions)):
                raise ValueError("sessions: each once, the earliest first")
        elif self.first is None or self.last is None:
            raise ValueError("give first and last, or list sessions")
        elif self.first > self.last:
            raise ValueError("first is after last")
        return self


class StudyArm(Part):
    """One arm of a comparison: its provider, and whether tickers, dates and price levels are hidden
    from it. In the stages in `without` the rules decide instead of a model: the difference to the
    full arm shows what these stages add."""

    name: ArmName
    provider: Name = "rules"
    masked: bool = False
    models: dict[str, str] = Field(default_factory=dict, max_length=12)
    without: tuple[DecisionStage, ...] = Field(default=(), max_length=7, exclude_if=operator.not_)

    @model_validator(mode="before")
    @classmethod
    def _rules_are_no_model(cls, fields: Any) -> Any:
        """`models.STAGE = "rules"` is the same as to be without that stage's model."""
        ruled = with_stages(fields)
        if ruled is fields:
            return fields
        stages = ruled.pop("stages")
        return {**ruled, "without": (*dict.fromkeys((*ruled.get("without", ()), *stages)),)}

    @model_validator(mode="after")
    def _has_models_to_leave_out(self) -> Self:
        if len({*self.without}) < len(self.without):
            raise ValueError("without: one is named twice")
        if self.without and self.provider in FREE_PROVIDERS:
            raise ValueError(f"without: {self.provider} asks no model that could be left out")
        return self


class StudyBudget(Part):
    """The most that models may cost: in the whole study, and in one cell, all arms together. A cell
    begins only where the study can still pay for the most that it may cost."""

    tokens: int = Field(default=2_000_000, ge=0)
    cost_usd: Usd = Field(default=Decimal(10), ge=0, max_digits=12, decimal_places=6)
    cell_tokens: int = Field(default=400_000, ge=0)
    cell_cost_usd: Usd = Field(default=Decimal(1), ge=0, max_digits=12, decimal_places=6)

    @model_validator(mode="after")
    def _pays_a_cell(self) -> Self:
        if self.cell_tokens > self.tokens or self.cell_cost_usd > self.cost_usd:
            raise ValueError(
                "it cannot pay one cell: raise tokens and cost_usd, or lower cell_tokens and "
                "cell_cost_usd"
            )
        return self


class Study(Part):
    """A study as its file has it. `horizons` are in sessions from the open after a decision, and
    `cost_bps` is paid a side; both, and the benchmark, may be chosen anew whenever it is scored. At
    `probe` of its dates the models of masked arms are also asked who and when it is."""

    name: Name
    kind: StudyKind = StudyKind.PICKS
    dates: StudyDates
    universe: tuple[Ticker, ...] = Field(min_length=2, max_length=UNIVERSE_MAX)
    arms: tuple[StudyArm, ...] = Field(min_length=1, max_length=ARMS_MAX)
    samples: int = Field(default=1, ge=1, le=SAMPLES_MAX)
    horizons: tuple[Annotated[int, Field(ge=1, le=HORIZON_MAX)], ...] = Field(
        default=(5, 20), min_length=1, max_length=HORIZONS_MAX
    )
    benchmark: Benchmark = CANDIDATES
    cost_bps: float = Field(default=10.0, ge=0, le=1_000)
    budget: StudyBudget = StudyBudget()
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    probe: int = Field(default=0, ge=0, le=DATES_MAX, exclude_if=operator.not_)

    @field_validator("universe", "horizons")
    @classmethod
    def _each_once(cls, values: tuple[object, ...]) -> tuple[object, ...]:
        if len(set(values)) < len(values):
            raise ValueError("one is named twice")
        return values

    @field_validator("arms")
    @classmethod
    def _arms_differ(cls, arms: tuple[StudyArm, ...]) -> tuple[StudyArm, ...]:
        if len({arm.name for arm in arms}) < len(arms):
            raise ValueError("two have the same name")
        names: dict[str, str] = {}
        for arm in arms:
            asked = arm.model_copy(update={"name": "it"}).model_dump_json()
            first = names.setdefault(asked, arm.name)
            if first != arm.name:
                raise ValueError(
                    f"{first} and {arm.name} ask the same, both provider {arm.provider}: give one "
                    "another provider, models or mask, or ask for more samples instead"
                )
        return arms

    @model_validator(mode="after")
    def _somebody_can_be_probed(self) -> Self:
        if self.probe and self.kind is not StudyKind.PICKS:
            raise ValueError("probe: only a study of kind picks has one")
        if self.probe and not self.probed:
            raise ValueError("probe: no arm is a masked model's, so there is nobody to be asked")
        return self

    @property
    def probed(self) -> tuple[StudyArm, ...]:
        """The arms whose models can be asked who a masked input is."""
        return tuple(
            arm
            for arm in self.arms
            if arm.masked and arm.provider not in FREE_PROVIDERS and PROBED_STAGE not in arm.without
        )

    @property
    def sha256(self) -> str:
        """The hash of what decides on its cells: all but the budget, which may grow."""
        return hashlib.sha256(self.model_dump_json(exclude={"budget"}).encode()).hexdigest()

    def account(self, arm: str, sample: int, number: int | None = None, round_: int = 1) -> str:
        """The account of an arm in cell `number` (of `picks`), or over the whole of a `path`; each
        round has its own."""
        again = "" if round_ == 1 else f"r{round_}-"
        place = "" if number is None else f"{number}-"
        return f"{STUDY_ACCOUNTS}{self.sha256[:8]}-{again}{place}{sample}-{arm}"


def pipelines_of(
    study: Study, number: int, sample: int, kind: str = DECISION, round_: int = 1
) -> tuple[Pipeline, ...]:
    """The arms of a cell as its cycle's pipelines, in the accounts of a round."""
    at = number if study.kind is StudyKind.PICKS else None
    return tuple(
        Pipeline(
            name=arm.name,
            provider=arm.provider,
            models=arm.models,
            masked=arm.masked,
            stages=dict.fromkeys(arm.without, RULES),
            account=study.account(arm.name, sample, at, round_),
            account_named=True,
        )
        for arm in (study.probed if kind == PROBE else study.arms)
    )


class StudyStatus(StrEnum):
    """The standing of a study: `stopped` by a person or for want of something, as `reason` says."""

    RUNNING = "running"
    STOPPED = "stopped"
    COMPLETED = "completed"


class RunStudy(Request):
    """Begin a study, or resume one: cells that failed for a reason that can pass are tried again.
    The same name with another file is refused. `dry_run`: only say what speaks against it, and what
    it will not show."""

    study: Study
    offline: bool = False
    dry_run: bool = Field(default=False, exclude_if=operator.not_)


class StopStudy(Request):
    """Begin no further cell of a study; those that run end. `RunStudy` goes on."""

    name: Name
    reason: ShortText = ""


class StudyAnswer(Message):
    """The answer to a request about a study. `code` where it was rejected: `changed_file`,
    `not_found`, `not_a_session`, `no_history` (the source has no prices for its dates),
    `unknown_ticker`, `invalid`, `provider_unknown` and what else speaks against a provider,
    `too_many`, `for_a_person` (a model of another program may not ask for it).

    `changed` is False where it stood so before; `message` says how many cells are tried again.
    `notes` are on what it will not show: horizons that are not over, arms that are not paired, a
    cutoff that nobody knows.
    """

    outcome: Literal["accepted", "rejected"]
    code: ShortText | None = None
    field: ShortText | None = None
    message: Text = ""
    changed: bool = False
    status: StudyStatus | None = None
    notes: tuple[Text, ...] = Field(
        default=(), max_length=STUDY_NOTES_MAX, exclude_if=operator.not_
    )


class StudiesQuery(Message):
    """Ask for studies and how far they are; `name` None: the newest first."""

    name: Name | None = None


class StudyView(Value):
    """A study and how far it is: cells that `completed` with all their arms, that `failed` in an
    arm or more, that run, and that the desk would not begin (`refused`, `refusal` says why the
    first). `tokens` and `cost_usd` were spent. `resting`: no cell begins and none goes on, for a
    live cycle is at work."""

    study: Study
    sha256: ShortText
    status: StudyStatus
    reason: Text = ""
    cells: int
    completed: int = 0
    failed: int = 0
    running: int = 0
    tokens: int = 0
    cost_usd: Cost = Decimal(0)
    refused: int = 0
    refusal: Text = ""
    resting: bool = False
    offline: bool = False
    started_at: datetime
    ended_at: datetime | None = None


class StudiesView(Message):
    """Studies, the newest first; `more` where older ones did not fit: ask for them by name.
    `unreadable` are those among them that a later release wrote."""

    studies: tuple[StudyView, ...] = Field(default=(), max_length=STUDIES_MAX)
    more: bool = False
    unreadable: tuple[Name, ...] = Field(default=(), max_length=STUDIES_MAX)


class StudyCallsQuery(Message):
    """Ask how large calls of these providers' models were on this desk, and how long they took."""

    providers: tuple[Name, ...] = Field(max_length=ARMS_MAX)


class StepCalls(Value):
    """Calls of a provider in a step, by the newest on record: medians of one call's tokens and
    seconds, and how many calls a step took on average. `calls` were looked at."""

    provider: Name
    step: Name
    calls: int = Field(ge=1)
    calls_a_step: float = Field(gt=0)
    input_tokens: float = Field(ge=0)
    output_tokens: float = Field(ge=0)
    seconds: float = Field(ge=0)


class StudyCallsView(Message):
    """The steps that calls are on record of: one without a paid call is not here."""

    steps: tuple[StepCalls, ...] = Field(default=(), max_length=CALLS_STEPS_MAX)


class StudyCellsQuery(Message):
    """The cells of a kind that a figure is from: of one arm, of one date, or all."""

    name: Name
    kind: CellKind = DECISION
    arm: ArmName | None = None
    on: Day | None = None
    skip: int = Field(default=0, ge=0, le=CELLS_MAX)
    limit: Limit = 50


class CellView(Value):
    """An arm of a cell: its cycle, and what it bought by weight, or which company it
    `identified`."""

    cycle_id: UUID
    on: date
    number: int = Field(ge=0, le=DATES_MAX)
    sample: int = Field(ge=0, le=SAMPLES_MAX)
    arm: ShortText
    status: ShortText
    weights: dict[Ticker, float] = Field(default_factory=dict, max_length=UNIVERSE_MAX)
    kind: CellKind = DECISION
    identified: tuple[Ticker, ...] = Field(default=(), max_length=UNIVERSE_MAX)


class StudyCells(Message):
    """Cells in the order of their dates; `more`: others follow."""

    found: bool = True
    cells: tuple[CellView, ...] = ()
    more: bool = False
