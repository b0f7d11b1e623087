"""`deskbus schedule`: jobs that run by themselves, and what became of their slots."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated
from urllib.parse import quote
from zoneinfo import ZoneInfo

import typer
from pydantic import ValidationError
from rich.text import Text

from contracts.cycle import CycleStatus
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.schedule import (
    JobAnswer,
    JobRun,
    JobView,
    ScheduleQuery,
    ScheduleView,
)
from contracts.subjects.accounts import PERFORMANCE
from contracts.subjects.schedule import PAUSE_JOB, RESUME_JOB
from contracts.subjects.schedule import SCHEDULE as SCHEDULE_QUERY
from contracts.subjects.subject import Asked, Subject
from libs.bus.client import Client
from libs.facts import amounts
from libs.market.calendar import ExchangeCalendar, exchange_calendar
from libs.runtime.settings import Settings
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.progress import Progress
from services.cli.shell.request import ENDS, CycleTree, show, with_nodes
from services.cli.shell.running import (
    asking,
    desk_client,
    find_desk,
    load_settings,
    reading_client,
)
from services.cli.shell.slots import RunningEquity, Slots, accepted, slots_of
from services.cli.shell.terminal import STATUS_STYLES, emit, err, one_line, out, table, write
from services.cli.trading import performance

DOCS_HINT = "docs/schedule.md has examples"

app = group()

JobArgument = Annotated[str, typer.Argument(help="The job's name, as in deskbus.toml.")]


@app.callback()
def schedule() -> None:
    """List, pause, resume and run scheduled jobs."""


@app.command("list")
def list_jobs(json: JsonOption = False) -> None:
    """Show every job: when it runs next, and how its last run ended.

    Times are the exchange's own.
    """
    settings = load_settings()

    async def work() -> ScheduleView:
        async with reading_client(settings) as client:
            return await _view(client)

    view = asking(work())
    if json:
        emit([view])
        return
    if not view.jobs:
        err().print(f"no job is configured; {DOCS_HINT}", style="dim")
        return
    zone = ZoneInfo(view.zone)
    grid = table(*("job", "kind", "accounts", "next", "last", "result"), spare=("accounts", "kind"))
    for job in view.jobs:
        grid.add_row(
            Text(job.name, "bold"),
            job.kind,
            ", ".join(job.accounts),
            _next(job, view, zone),
            "-" if job.last is None else _moment(job.last.slot, zone),
            _ended(job.last) if job.last else Text("-", "dim"),
        )
    write(grid, out())
    err().print(f"times are {view.zone}, sessions those of {view.exchange}", style="dim")
    _warn(view)


@app.command()
def pause(
    job: JobArgument,
    reason: Annotated[str, typer.Option(help="Kept on record and shown in the list.")] = "",
    json: JsonOption = False,
) -> None:
    """Pause a job until it is resumed, also over restarts.

    Runs missed meanwhile are skipped. A running cycle continues.
    """
    answer = _ask(PAUSE_JOB, {"job": job, "reason": reason})
    _tell(
        answer,
        f"paused {job}; resume it with: deskbus schedule resume {job}",
        "it was already paused",
        json=json,
    )


@app.command()
def resume(job: JobArgument, json: JsonOption = False) -> None:
    """Resume a paused job from its next slot."""
    answer = _ask(RESUME_JOB, {"job": job})
    _tell(answer, f"resumed {job} from its next slot", "it was not paused", json=json)


@app.command()
def run(
    job: JobArgument,
    at: Annotated[
        str | None,
        typer.Option(help="Run as of this moment, e.g. 2012-06-29T16:30 (exchange time)."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the run to end.")] = False,
    json: JsonOption = False,
) -> None:
    """Run a job once, now; also while it is paused. With --wait, show what it decided.

    The same moment again is the same run: nothing happens twice.
    """
    settings = load_settings()
    moment = _at(at, exchange_calendar())

    async def work() -> tuple[JobRun, CycleTree | None]:
        async with desk_client(settings) as client:
            with Progress(err()) as progress:
                one = Slots(client, settings, progress.heard)
                done = await (one.to_its_end(job, moment) if wait else one.asked(job, moment))
            if not wait or json or done.cycle_id is None:
                return done, None
            return done, await with_nodes(client, await show(client, str(done.cycle_id)))

    done, ended = asking(work())
    if json:
        emit([done])
    elif ended is not None:
        from services.cli.render import story  # noqa: PLC0415 - the list of jobs needs none

        story.tell(ended.view, out(), ended.nodes)
        if ended.view.kind == "report":
            accounts = dict.fromkeys(pipeline.account for pipeline in ended.view.pipelines)
            for account in accounts:
                words = f"the report: deskbus report {done.session} --account {account}"
                err().print(words, style="dim")
    else:
        out().print(str(done.cycle_id))
        err().print(f"{done.status}: deskbus cycle show {done.cycle_id}", style="dim")
    raise typer.Exit(ENDS[done.status or CycleStatus.RUNNING])


@app.command()
def replay(
    since: Annotated[str, typer.Option(help="The first session, e.g. 2012-03-01.")],
    until: Annotated[str, typer.Option(help="The last session.")],
    json: JsonOption = False,
) -> None:
    """Run the whole schedule over past sessions, slot after slot, each to its end.

    The clock steps from one slot to the next, and each sees what was known then. Paused jobs are
    left out. Run an interrupted replay again to continue it. It ends with how the accounts did:
    return and drawdown beside the benchmark, trades, fees and the curve.
    """
    settings, calendar = load_settings(), exchange_calendar()
    first, last = _day("--since", since), _day("--until", until)

    async def work() -> tuple[Sequence[JobRun], Mapping[str, PerformanceView]]:
        done: list[JobRun] = []
        async with desk_client(settings) as client:
            view = await _view(client)
            _warn(view)
            slots = list(slots_of(view.jobs, calendar, first, last))
            with Progress(err(), _continued_by_itself) as progress:
                one, equity = Slots(client, settings), RunningEquity(client, view.jobs)
                for name, slot in slots:
                    text = f"{name} of {slot.session}{await equity.of(name)}"
                    progress.counts(len(done), len(slots), text)
                    done.append(await one.to_its_end(name, slot.at))
                    if json:
                        emit(done[-1:])
            return done, await _results(client, view, {run.job for run in done})

    runs, results = asking(work())
    if not runs:
        raise Problem(ExitCode.USAGE, "no job has a slot between these sessions", DOCS_HINT)
    if not json:
        _summary(runs)
        for account, result in results.items():
            out().print()
            performance.show_result(account, result, out())
            _link(settings, account)
    bad = [run for run in runs if ENDS[run.status or CycleStatus.FAILED] is not ExitCode.OK]
    raise typer.Exit(ExitCode.FAILED if bad else ExitCode.OK)


async def _results(
    client: Client, view: ScheduleView, replayed: Collection[str]
) -> Mapping[str, PerformanceView]:
    """How the accounts of the jobs that ran did, since their opening."""
    accounts = dict.fromkeys(
        account for job in view.jobs if job.name in replayed for account in job.accounts
    )
    results = {
        account: await client.ask(PERFORMANCE, PerformanceQuery(account=account, trips=0))
        for account in accounts
    }
    return {account: result for account, result in results.items() if result.found}


def _link(settings: Settings, account: str) -> None:
    """Where the whole of it is."""
    where = f"deskbus performance {account}"
    if url := find_desk(settings).http_url:
        where += f"    {url}/performance?account={quote(account)}"
    err().print(Text(where, style="dim"), soft_wrap=True)


def _continued_by_itself(_cycle: str) -> str:
    return "stopped; the same command continues it: what is done is not done again"


def _warn(view: ScheduleView) -> None:
    for warning in view.warnings:
        err().print(Text(warning, "yellow"), soft_wrap=True)


async def _view(client: Client) -> ScheduleView:
    return await client.ask(SCHEDULE_QUERY, ScheduleQuery())


def _ask(row: Subject[Asked, JobAnswer], fields: dict[str, str]) -> JobAnswer:
    settings = load_settings()
    try:
        wish = row.message.model_validate(fields)
    except ValidationError as error:
        raise invalid("request", error) from None

    async def work() -> JobAnswer:
        async with desk_client(settings) as client:
            return await client.ask(row, wish)

    return accepted(asking(work()), fields["job"])


def _tell(answer: JobAnswer, changed: str, same: str, *, json: bool) -> None:
    if json:
        emit([answer])
    elif answer.changed:
        out().print(changed)
    else:
        err().print(f"{same}: nothing changed", style="dim")


def _at(text: str | None, calendar: ExchangeCalendar) -> datetime:
    """The moment in UTC, to the second; now where none is named."""
    if text is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Problem(
            ExitCode.USAGE, f"--at must be a moment, e.g. 2012-06-29T16:30 (got {text!r})"
        ) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=calendar.zone)
    return aware.astimezone(UTC)


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Problem(
            ExitCode.USAGE, f"{option} must be a date, e.g. 2012-06-29 (got {text!r})"
        ) from None


def _next(job: JobView, view: ScheduleView, zone: ZoneInfo) -> Text:
    if job.paused_at is not None:
        why = f": {amounts.cut(job.paused_reason, 40)}" if job.paused_reason else ""
        return Text(f"paused by {job.paused_by}{why}", "yellow")
    if view.clock == "replay":
        return Text("in a replay", "dim")
    return Text(_moment(job.next_at, zone)) if job.next_at else Text("none within a year", "dim")


def _moment(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M}"


def _ended(run: JobRun) -> Text:
    status = run.status.value if run.status else run.outcome
    missed = f" ({run.missed} missed before)" if run.missed else ""
    reason = f": {run.reason}" if run.reason else ""
    return one_line(f"{status}{missed}{reason}", STATUS_STYLES.get(status, ""))


def _summary(runs: Sequence[JobRun]) -> None:
    """How often each job ended how."""
    counted = Counter((run.job, run.status.value if run.status else run.outcome) for run in runs)
    grid = table("job", "ended", ("runs", "right"))
    for (job, status), count in sorted(counted.items()):
        grid.add_row(job, Text(status, STATUS_STYLES.get(status, "")), f"{count:,}")
    write(grid, out())
