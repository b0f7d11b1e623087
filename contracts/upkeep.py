"""For operators: dead letters, the model budget, and whether NATS stores messages."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

from pydantic import Field

from contracts.message import PAGE_MAX, Limit, Message, Request
from contracts.types import (
    Failure,
    ShortText,
    Text,
    Usage,
    Usd,
    Value,
)


class RetryLetter(Request):
    """Send the stored command of a dead letter's operation again, now.

    The letter's own body is never sent. Only the stored command is, and only while the operation is
    open.
    """

    sequence: int = Field(ge=1)


class DiscardLetter(Request):
    """Delete a dead letter. Who did it, and why, stays on record as an event."""

    sequence: int = Field(ge=1)
    reason: ShortText = ""


class LetterAnswer(Message):
    """The answer to a request about a dead letter. `code` where it was rejected, with what to do in
    `message`:

    `not_found`; and for a retry `not_a_command`, `no_operation`, `ended`, `waits_for_person`,
    `at_work`, `suspect`, `too_large`.
    """

    outcome: Literal["accepted", "rejected"]
    code: ShortText | None = None
    message: Text = ""
    op_id: UUID | None = None
    cycle_id: UUID | None = None


class DeadLettersQuery(Message):
    """The newest dead letters, or one by its sequence with its body."""

    sequence: int | None = Field(default=None, ge=1)
    limit: Limit = 20


class DeadLetter(Value):
    """A message that could not be processed, and why. It has a `body` if one letter was
    requested."""

    sequence: int
    subject: ShortText
    at: datetime
    failure: Failure
    size_bytes: int = 0
    body: str | None = None


class DeadLettersPage(Message):
    """The dead letters found, newest first."""

    letters: tuple[DeadLetter, ...] = ()


class BudgetQuery(Message):
    """Ask for the remaining model budget of today, and the use of the last days."""

    days: int = Field(
        default=1, ge=1, le=PAGE_MAX, description="How many recent days with paid calls to show."
    )


class DayUsage(Value):
    """The usage of all cycles of one UTC day, by sort."""

    day: date
    usage: Usage = Usage()


class BudgetView(Message):
    """Today's budget: limits, the reserve for calls in flight, and the rest.

    `resets_at` is the start of the next UTC day. `operation_...` are the limits of one operation,
    `cycle_...` those of one cycle whose request sets none. `days` has today first; days without a
    paid call are left out.
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


class StoringQuery(Message):
    """Ask whether NATS stores commands, or whether Postgres commits."""

    server: Literal["nats", "postgres"] = "nats"


class Storing(Message):
    """`problem` is why the server does not store what it is given; empty where it does."""

    problem: str = ""
