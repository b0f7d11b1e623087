"""The schedule: jobs, their slots, and what became of each."""

from datetime import date, datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from contracts.cycle import CycleStatus
from contracts.message import Message, Request
from contracts.types import CycleId, Name, ShortText, Text, Value

SCHEDULE = "schedule"
"""Who asks for a job's cycles. Nobody has a key of this name: only the orchestrator asks as it."""


def slot_key(job: str, slot: datetime) -> str:
    """The idempotency key of a job's slot: whoever asks for it, it is one cycle."""
    return f"{job}/{slot.isoformat().replace('+00:00', 'Z')}"


class PauseJob(Request):
    """Let a job rest, over restarts too, until `ResumeJob`. Its slots meanwhile are not missed."""

    job: Name
    reason: ShortText = ""


class ResumeJob(Request):
    """Let a paused job run again, from its next slot on."""

    job: Name


class RunJob(Request):
    """Run a job once, as if one of its slots were at `at`; also while it is paused.

    The newest session that has closed then is its as_of. The same moment again is the same run.
    """

    job: Name
    at: AwareDatetime


class JobRun(Value):
    """One slot of a job and what became of it.

    `due`: about to be asked for; `accepted`: a cycle runs or ran, see `status`; `rejected`: the
    desk said no, as `reason` says; `skipped`: it was missed, and its job skips what it missed.
    `missed` counts earlier slots that were missed and never ran. `by` is who ran it, empty where
    the clock did.
    """

    job: Name
    slot: datetime
    session: date
    as_of: date
    outcome: Literal["due", "accepted", "rejected", "skipped"]
    cycle_id: CycleId | None = None
    status: CycleStatus | None = None
    reason: Text = ""
    missed: int = Field(default=0, ge=0)
    by: ShortText = ""


class JobAnswer(Message):
    """The answer to a request about a job. `code` where it was rejected: `not_found`, `too_early`.

    `changed` is False where it was paused or running before; `run` is what `RunJob` led to;
    `suggestion` is the job that was probably meant.
    """

    outcome: Literal["accepted", "rejected"]
    code: ShortText | None = None
    message: Text = ""
    suggestion: ShortText | None = None
    changed: bool = False
    run: JobRun | None = None


class ScheduleQuery(Message):
    """Ask for the jobs of the schedule."""


class JobView(Value):
    """One job: when it runs, what it asks for, and its newest run. Moments are in UTC.

    `next_at` is None where it is paused, where no slot is near, or where only a replay runs it.
    """

    name: Name
    kind: Name
    when: tuple[ShortText, ...]
    accounts: tuple[Name, ...]
    missed: ShortText
    paused_at: datetime | None = None
    paused_by: ShortText = ""
    paused_reason: ShortText = ""
    next_at: datetime | None = None
    last: JobRun | None = None


class ScheduleView(Message):
    """The schedule: its clock (`wall` or `replay`), and its jobs in the settings' order.

    `warnings` are jobs that can see nothing new: exit checks of one account at one close.
    """

    clock: ShortText
    exchange: ShortText
    zone: ShortText
    jobs: tuple[JobView, ...] = ()
    warnings: tuple[Text, ...] = ()
