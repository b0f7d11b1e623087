"""The message bases: what every request, command and contract carries."""

import operator
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contracts.types import CycleId, Name, OperationId, Text, Value

MESSAGE_BYTES_MAX = 512_000
PAGE_MAX = 200
"""Of what one answer lists."""
Stage = Literal["sentiment", "planner", "quant", "research", "trader", "risk", "memory"]
"""The parts of a pipeline that an agent plays."""
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
    """A fact that one step of a cycle has established, as of one session's close."""

    cycle_id: CycleId
    op_id: OperationId
    as_of: date

    @classmethod
    def of(cls, command: "Command", /, **fields: Any) -> Self:
        """The contract that answers `command`: its ids and as_of, and the given fields."""
        return cls(cycle_id=command.cycle_id, op_id=command.op_id, as_of=command.as_of, **fields)


class Pipeline(Value):
    """One provider's run of a cycle: who thinks, for which account, with which models by stage; in
    the stages that it is `without` the stated rules speak in its place.

    `account_named` says whether somebody chose the account: a rotation gives its own to nobody who
    has one. Left out, it is so wherever an account stands.
    """

    name: Name
    provider: Name = "rules"
    account: Name = MAIN_ACCOUNT
    account_named: bool = False
    models: dict[str, str] = Field(default_factory=dict, max_length=12)
    masked: bool = Field(default=False, exclude_if=operator.not_)
    without: tuple[Stage, ...] = Field(default=(), max_length=7, exclude_if=operator.not_)

    @model_validator(mode="before")
    @classmethod
    def _named_where_it_stands(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or "account_named" in fields:
            return fields
        return {**fields, "account_named": "account" in fields}


class Command(Message):
    """Work for one service, self-contained: a handler needs no clock and no other message.

    `as_of` is the session whose close is the present; `now` is when the cycle was accepted.
    `errors` quotes what was wrong with the previous attempt's answer. Subclasses add the contracts
    they need.
    """

    cycle_id: CycleId
    op_id: OperationId
    as_of: date
    now: datetime
    pipeline: Pipeline
    state: Name
    step: Name
    attempt: int = Field(default=1, ge=1)
    workflow_version: int = Field(ge=1)
    seed: int = Field(ge=0)
    errors: tuple[Text, ...] = Field(default=(), max_length=20)


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
