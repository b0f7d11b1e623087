"""Exit checks of a schedule that can see nothing new: two on one account and one close. Pure."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Final

from libs.market.calendar import ExchangeCalendar
from libs.market.slots import TimeSlot, slots
from libs.runtime.schedule_settings import Job

LOOKED_AT: Final = timedelta(days=35)
"""Each week day, half days left aside, and the end of a month."""
CHECKS: Final = "exit"
ONCE_A_DAY: Final = 'when = "close+30m"'

_Check = tuple[date, TimeSlot, str]


def same_close(jobs: Mapping[str, Job], calendar: ExchangeCalendar, at: datetime) -> list[str]:
    """By account one sentence where its exit checks look at a close again: on daily bars the later
    one has the same prices and the same holdings. The days before `at` serve as the example.

    Jobs that check other tickers are no repetition.
    """
    warnings = []
    accounts = sorted({account for job in jobs.values() for account in job.accounts})
    for account in accounts:
        checks = {
            name: job
            for name, job in jobs.items()
            if job.kind == CHECKS and account in job.accounts
        }
        ordered = sorted(_checks(checks, calendar, at))
        for close, group in groupby(ordered, key=itemgetter(0)):
            seen = [(slot, name) for _, slot, name in group]
            if again := _again(seen, jobs):
                warnings.append(_worded(account, close, again, calendar))
                break
    return warnings


def _checks(jobs: Mapping[str, Job], calendar: ExchangeCalendar, at: datetime) -> Sequence[_Check]:
    return [
        (calendar.last_closed(slot.at), slot, name)
        for name, job in jobs.items()
        for slot in slots(job.moments, calendar, at - LOOKED_AT, at)
    ]


def _again(
    seen: Sequence[tuple[TimeSlot, str]], jobs: Mapping[str, Job]
) -> list[tuple[TimeSlot, str]]:
    """The checks of one close that share a ticker with another of them."""
    return [
        (slot, name)
        for place, (slot, name) in enumerate(seen)
        if any(
            _share(jobs[name].universe, jobs[other].universe)
            for at, (_, other) in enumerate(seen)
            if at != place
        )
    ]


def _share(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> bool:
    """Whether two checks have a ticker in common; None is all that is held."""
    return one is None or other is None or bool({*one} & {*other})


def _worded(
    account: str, close: date, again: Sequence[tuple[TimeSlot, str]], calendar: ExchangeCalendar
) -> str:
    listed = ", ".join(
        f"{name} {slot.at.astimezone(calendar.zone):%Y-%m-%d %H:%M}" for slot, name in again
    )
    return (
        f"account {account}: {len(again)} exit checks look at the same close, that of {close} "
        f"({listed}); prices are daily, so all but one can see nothing new: check once a session, "
        f"after the close, with {ONCE_A_DAY}"
    )
