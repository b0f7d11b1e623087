"""The message bases: what every request, command and contract carries."""

import operator
from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contracts.stages import CODE, OF_TEXTS, RULES, Stage, Substitute, Why, with_stages
from contracts.types import CycleId, Name, OperationId, ShortText, Text, Value, is_none

MESSAGE_BYTES_MAX = 512_000
CORRECTIONS_MAX = 20
"""Sentences that one attempt is sent about the answer of the one before it."""
PAGE_MAX = 200
"""Of what one answer lists."""
Limit = Annotated[
    int, Field(ge=1, le=PAGE_MAX, description=f"How many, newest first; up to {PAGE_MAX}.")
]
SUBSTITUTES_MAX = 20
MAIN_ACCOUNT = "main"
"""The account that is traded where nobody names one."""


class Message(BaseModel):
    """Anything on the bus. Readers ignore fields they do not know, so senders may upgrade first."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True)

    version: Literal[1] = 1


class Request(Message):
    """A user's request. Unknown fields are refused: a typing mistake must not pass silently."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Contract(Message):
    """A fact that one step of a cycle has established, as of one session's close.

    `substitutes` are the stages up to here that another than the pipeline's own model answered.
    """

    cycle_id: CycleId
    op_id: OperationId
    as_of: date
    substitutes: tuple[Substitute, ...] = Field(
        default=(), max_length=SUBSTITUTES_MAX, exclude_if=operator.not_
    )

    @classmethod
    def of(cls, command: "Command", /, *, reads: str = "", **fields: Any) -> Self:
        """The contract that answers `command`: its ids and as_of, and the given fields.

        `reads` says that code made the stage's reads, and why; empty where the model made them.
        """
        return cls(
            cycle_id=command.cycle_id,
            op_id=command.op_id,
            as_of=command.as_of,
            substitutes=command.substitutes(reads),
            **fields,
        )


class Pipeline(Value):
    """One provider's run of a cycle: who thinks, for which account, with which models by stage.

    `stages` names the provider that answers a stage in place of `provider`, and `fallback` the one
    that is asked once after a stage has failed; a request's entries go before the settings'.
    `programs` are those of these providers that are programs of this machine, which may have tools
    of their own: the desk says which, whatever a request says. `account_named` says whether
    somebody chose the account: a rotation gives its own to nobody who has one. Left out, it is so
    wherever an account stands.
    """

    name: Name
    provider: Name = "rules"
    account: Name = MAIN_ACCOUNT
    account_named: bool = False
    models: dict[str, str] = Field(default_factory=dict, max_length=12)
    stages: dict[Stage, Name] = Field(default_factory=dict, exclude_if=operator.not_)
    programs: tuple[Name, ...] = Field(default=(), max_length=12, exclude_if=operator.not_)
    fallback: dict[Stage, Name] = Field(default_factory=dict, exclude_if=operator.not_)
    masked: bool = Field(default=False, exclude_if=operator.not_)

    @model_validator(mode="before")
    @classmethod
    def _rules_are_no_model(cls, fields: Any) -> Any:
        return with_stages(fields)

    @model_validator(mode="before")
    @classmethod
    def _named_where_it_stands(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or "account_named" in fields:
            return fields
        return {**fields, "account_named": "account" in fields}

    def answers(self, stage: str) -> str:
        """The provider that answers a stage: in a masked pipeline the rules where only texts are
        read, of which it has none."""
        if self.masked and stage in OF_TEXTS:
            return RULES
        return next((by for name, by in self.stages.items() if name == stage), self.provider)


class Command(Message):
    """Work for one service, self-contained: a handler needs no clock and no other message.

    `as_of` is the session whose close is the present; `now` is when the cycle was accepted, and
    `data_version` the state of the market data then, which all its work reads: a hash; None where
    the source has none, as a live one.
    `errors` are the corrections of the previous attempt's answer. `fallback` is the failure
    that made it a fallback's: `pipeline.stages` then names that provider. Subclasses add the
    contracts they need, and the `STAGE` that a model answers.
    """

    STAGE: ClassVar[Stage | None] = None

    cycle_id: CycleId
    op_id: OperationId
    as_of: date
    now: datetime
    data_version: ShortText | None = Field(default=None, exclude_if=is_none)
    pipeline: Pipeline
    state: Name
    step: Name
    attempt: int = Field(default=1, ge=1)
    workflow_version: int = Field(ge=1)
    seed: int = Field(ge=0)
    errors: tuple[Text, ...] = Field(default=(), max_length=CORRECTIONS_MAX)
    fallback: ShortText = Field(default="", exclude_if=operator.not_)

    def substitutes(self, reads: str = "") -> tuple[Substitute, ...]:
        """The stages up to this one that another than the pipeline's own model answered.

        `reads` as in `Contract.of`.
        """
        contracts = (value for _, value in self if isinstance(value, Contract))
        # The last cycle's memory tells of another decision.
        before = [one for it in contracts if it.cycle_id == self.cycle_id for one in it.substitutes]
        return tuple(dict.fromkeys((*before, *self._own_substitutes(reads))))

    def _own_substitutes(self, reads: str) -> Iterator[Substitute]:
        if self.STAGE is None:
            return
        by = self.pipeline.answers(self.STAGE)
        if self.fallback:
            yield Substitute(stage=self.STAGE, by=by, why=Why.FALLBACK, reason=self.fallback)
        elif by != self.pipeline.provider:
            yield Substitute(stage=self.STAGE, by=by, why=Why.SETTING)
        if by in self.pipeline.programs:
            yield Substitute(stage=self.STAGE, by=by, why=Why.OUTSIDE_TOOLS)
        if reads:
            yield Substitute(stage=self.STAGE, by=CODE, why=Why.READS, reason=reads)


class Nothing(Message):
    """An answer without content."""


def build_all() -> None:
    """Build the validator of every contract that is imported, for a process that will need many.

    Values come first: a message's validator is made of those of its values.
    """
    for model in (*_kinds_of(Value), *_kinds_of(Message)):
        model.model_rebuild()


def _kinds_of(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for kind in model.__subclasses__():
        yield kind
        yield from _kinds_of(kind)
