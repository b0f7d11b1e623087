"""The scheduled jobs, and what came of their runs. Pure."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from contracts.schedule import JobRun, JobView, ScheduleView
from libs.facts import amounts
from libs.report import view
from libs.report.tones import Tone, tone
from libs.report.view import Cell, Column, NoRows, Table

REASON_CHARS = 40


def jobs(of: ScheduleView, empty: NoRows) -> Table:
    """A row a job: its next slot and its newest run."""
    zone = ZoneInfo(of.zone)
    return view.table(
        (
            "Job",
            Column("Kind", spare=2),
            Column("Accounts", spare=1),
            Column("Next", wraps=True),
            "Last",
            Column("Ended", wraps=True),
        ),
        (
            (
                job.name,
                job.kind,
                ", ".join(job.accounts),
                _next(job, of.clock, zone),
                view.say(_moment(job.last.slot, zone)) if job.last else view.unknown(),
                _ended(job.last) if job.last else view.unknown(),
            )
            for job in of.jobs
        ),
        notes=(
            view.Text(f"times are {of.zone}, sessions those of {of.exchange}"),
            *view.notes(*of.warnings, tone=Tone.WARN),
        ),
        empty=empty,
    )


def ends(runs: Sequence[JobRun]) -> Table:
    """How often each job ended how."""
    counted = Counter((run.job, _status(run)) for run in runs)
    return view.table(
        ("Job", "Ended", "Runs"),
        (
            (job, view.say(status, tone(status)), view.count(count))
            for (job, status), count in sorted(counted.items())
        ),
    )


def _next(job: JobView, clock: str, zone: ZoneInfo) -> Cell:
    if job.paused_at is not None:
        why = f": {amounts.cut(job.paused_reason, REASON_CHARS)}" if job.paused_reason else ""
        return view.say(f"paused by {job.paused_by}{why}", Tone.WARN)
    if clock == "replay":
        return view.say("in a replay", Tone.QUIET)
    if job.next_at is None:
        return view.say("none within a year", Tone.QUIET)
    return view.say(_moment(job.next_at, zone))


def _moment(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M}"


def _ended(run: JobRun) -> Cell:
    status = _status(run)
    missed = f" ({run.missed} missed before)" if run.missed else ""
    reason = f": {run.reason}" if run.reason else ""
    return view.say(amounts.cut(f"{status}{missed}{reason}", 120), tone(status))


def _status(run: JobRun) -> str:
    return run.status.value if run.status else run.outcome
