"""Requests about a dead letter: send its command again, or discard it."""

from typing import Literal
from uuid import UUID

from pydantic import Field

from contracts.message import Message, Request
from contracts.types import ShortText, Text


class RetryLetter(Request):
    """Send the stored command of the operation that a dead letter speaks of once more, now.

    The letter's own body is never sent: what counts is the operation, and only while it is open.
    """

    sequence: int = Field(ge=1)


class DiscardLetter(Request):
    """Delete a dead letter. Who did it, and why, stays on record as an event."""

    sequence: int = Field(ge=1)
    reason: ShortText = ""


class LetterAnswer(Message):
    """The answer to a request about a dead letter. `code` where it was rejected, with what to do in
    `message`:

    `not_found`; and for a retry `not_a_command`, `no_operation`, `ended`, `at_work`, `suspect`,
    `too_large`.
    """

    outcome: Literal["accepted", "rejected"]
    code: ShortText | None = None
    message: Text = ""
    op_id: UUID | None = None
    cycle_id: UUID | None = None
