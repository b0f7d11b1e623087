"""The schedule as people see it: the settings' jobs, with what is on record of them."""

from datetime import datetime

from contracts.schedule import JobRun, JobView, ScheduleQuery, ScheduleView
from libs.market.same_close import same_close
from libs.market.slots import next_slot
from libs.postgres.pool import Record
from libs.runtime.schedule_settings import Job
from services.console.store import sql
from services.console.views.desk import DeskViews


async def schedule(_: ScheduleQuery, desk: DeskViews) -> ScheduleView:
    """The jobs, in the settings' order."""
    planned, calendar, at = desk.settings.schedule, desk.calendar, desk.now()
    jobs, ticking = planned.jobs, planned.clock == "wall"
    known = await desk.store.by("job", sql.jobs, list(jobs))

    def coming(job: Job) -> datetime | None:
        slot = next_slot(job.moments, calendar, at)
        return slot.at if slot is not None else None

    return ScheduleView(
        clock=planned.clock,
        exchange=calendar.exchange,
        zone=calendar.zone.key,
        jobs=tuple(
            _view(name, job, known.get(name), coming(job) if ticking else None)
            for name, job in jobs.items()
        ),
        warnings=tuple(same_close(jobs, calendar, at)),
    )


def _view(name: str, job: Job, row: Record | None, coming: datetime | None) -> JobView:
    view = JobView(
        name=name,
        kind=job.kind,
        when=job.when,
        accounts=job.accounts,
        missed=job.missed,
        next_at=coming,
    )
    if row is None:
        return view
    paused = {name: row[name] for name in ("paused_at", "paused_by", "paused_reason")}
    last = JobRun(**dict(row)) if row["slot"] is not None else None
    next_at = None if row["paused_at"] else coming
    return view.model_copy(update={**paused, "next_at": next_at, "last": last})
