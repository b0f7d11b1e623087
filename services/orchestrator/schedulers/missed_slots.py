"""Which slots run: those on time, and of the missed ones as their job says. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from libs.market.slots import TimeSlot
from libs.runtime.schedule_settings import Job

LATE_AFTER = timedelta(seconds=60)
"""A slot that is found later than this was missed: nobody looked while it passed."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A slot that gets a row. `missed` earlier ones get none."""

    slot: TimeSlot
    outcome: Literal["due", "skipped"]
    late: bool
    missed: int = 0


def planned(slots: Sequence[TimeSlot], now: datetime, job: Job) -> Sequence[Planned]:
    """The plan for the slots found, in order."""
    late = [slot for slot in slots if slot.at < now - LATE_AFTER]
    on_time = [slot for slot in slots if slot.at >= now - LATE_AFTER]
    made_up_for: Sequence[TimeSlot]
    match job.missed:
        case "once":
            made_up_for = late[-1:] if not on_time else ()
        case "all":
            made_up_for = late[-job.missed_max :]
        case "skip":
            made_up_for = ()
    missed = len(late) - len(made_up_for)
    plans = [
        *(Planned(slot, "due", late=True) for slot in made_up_for),
        *(Planned(slot, "due", late=False) for slot in on_time),
    ]
    if not plans and late:
        return [Planned(late[-1], "skipped", late=True, missed=missed - 1)]
    return [
        Planned(p.slot, p.outcome, p.late, missed if n == 0 else 0) for n, p in enumerate(plans)
    ]
