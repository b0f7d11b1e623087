"""The schedule's settings: jobs by name, each with its moments and its request."""

from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from contracts.cycle import PIPELINES_MAX, UNIVERSE_MAX, Budgets, CycleRequest, TimeLimit
from contracts.cycle import Rotation as Turns
from contracts.message import Pipeline
from contracts.types import Name, Ticker
from libs.runtime.when import When, parse
from libs.runtime.wording import describe

JOBS_MAX = 50
MOMENTS_MAX = 24
MISSED_MAX = 100


def _as_list(when: object) -> object:
    """A single text as a list of one."""
    return (when,) if isinstance(when, str) else when


class Job(BaseModel):
    """One job: a cycle of `kind` at each of its moments. A mistyped name is refused.

    `when` is one moment or several (libs/runtime/when.py). Without `pipelines` there is one, the
    rules', on `account`. `missed` says what becomes of slots that passed while no desk ran: the
    newest one runs (`once`), all run in order, at most `missed_max` of them (`all`), or none
    (`skip`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["decision", "exit", "snapshot", "report"]
    when: Annotated[
        tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1, max_length=MOMENTS_MAX)
    ]
    account: Name = "main"
    pipelines: tuple[Pipeline, ...] = Field(default=(), max_length=PIPELINES_MAX)
    rotation: tuple[Name, ...] = Field(default=(), max_length=PIPELINES_MAX)
    universe: tuple[Ticker, ...] | None = Field(default=None, min_length=1, max_length=UNIVERSE_MAX)
    sources: tuple[Name, ...] = Field(default=(), max_length=16)
    budgets: Budgets = Budgets()
    approval: bool = False
    timeout_s: TimeLimit | None = None
    missed: Literal["once", "all", "skip"] = "once"
    missed_max: int = Field(default=10, ge=1, le=MISSED_MAX)

    @field_validator("when")
    @classmethod
    def _moments_can_be_read(cls, when: tuple[str, ...]) -> tuple[str, ...]:
        for text in when:
            parse(text)
        return when

    @model_validator(mode="after")
    def _can_be_asked_for(self) -> Self:
        try:
            self.request("a-slot")
        except ValidationError as error:
            raise ValueError(describe(error)) from error
        return self

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts that its cycles may trade."""
        return tuple(dict.fromkeys(self.request("a-slot").accounts))

    @property
    def moments(self) -> tuple[When, ...]:
        """The moments at which it runs."""
        return tuple(map(parse, self.when))

    def request(self, key: str) -> CycleRequest:
        """The request of a slot, without its as_of."""
        turns = Turns(account=self.account, order=self.rotation) if self.rotation else None
        return CycleRequest(
            idempotency_key=key,
            kind=self.kind,
            universe=self.universe,
            sources=self.sources,
            pipelines=self.pipelines or (Pipeline(name="rules", account=self.account),),
            rotation=turns,
            budgets=self.budgets,
            approval_required=self.approval,
            timeout_s=self.timeout_s,
        )


class Schedule(BaseModel):
    """Jobs by name, and the clock they go by.

    `wall` is the time of day; with `replay` nothing runs by itself: `deskbus schedule replay` steps
    through past sessions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    clock: Literal["wall", "replay"] = "wall"
    jobs: dict[Name, Job] = Field(default={}, max_length=JOBS_MAX)

    def __str__(self) -> str:
        jobs = [f"{name} ({job.kind}, {', '.join(job.when)})" for name, job in self.jobs.items()]
        return f"clock {self.clock}, {'; '.join(jobs) or 'no jobs'}"
