"""`deskbus schedule`: jobs that run by themselves, and what became of their slots."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

import typer

from contracts.cycle import CycleStatus
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.schedule import (
    JobRun,
    PauseJob,
    ResumeJob,
    ScheduleQuery,
    ScheduleView,
)
from contracts.subjects.accounts import PERFORMANCE
from contracts.subjects.schedule import PAUSE_JOB, RESUME_JOB
from contracts.subjects.schedule import SCHEDULE as SCHEDULE_QUERY
from libs.bus.client import Client
from libs.market.calendar import ExchangeCalendar, exchange_calendar
from libs.report import schedule as of_schedule
from libs.report.view import NoRows
from libs.runtime.settings import Settings
from services.cli.render.described import show, show_change
from services.cli.shell import completion
from services.cli.shell.invalid import day_of, typed
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, WrongUsage
from services.cli.shell.progress import CycleProgress
from services.cli.shell.request import ENDS, CycleTree, with_nodes
from services.cli.shell.request import show as cycle_view
from services.cli.shell.running import (
    ask,
    find_desk,
    load_settings,
    read,
    with_desk,
)
from services.cli.shell.slots import RunningEquity, Slots, accepted, slots_of
from services.cli.shell.terminal import aside, emit, err, put
from services.cli.trading import performance
from services.cli.trading.cycle_steps import tell_begun, tell_story

DOCS_HINT = "docs/schedule.md has examples"

app = group()

JobArgument = Annotated[
    str,
    typer.Argument(help="The job's name, as in deskbus.toml.", autocompletion=completion.jobs),
]


@app.command("list")
def list_jobs(json: JsonOption = False) -> None:
    """Show every job: when it runs next, and how its last run ended.

    Times are the exchange's own.
    """
    view = read(SCHEDULE_QUERY, ScheduleQuery())
    empty = NoRows("No job is configured:", todo=DOCS_HINT)
    show([view], [of_schedule.jobs(view, empty)], json=json)


@app.command()
def pause(
    job: JobArgument,
    reason: Annotated[str, typer.Option(help="Kept on record and shown in the list.")] = "",
    json: JsonOption = False,
) -> None:
    """Pause a job until you resume it, even after restarts.

    It skips runs that fall into the pause. A running cycle continues.
    """
    answer = accepted(ask(PAUSE_JOB, typed("request", PauseJob, job=job, reason=reason)))
    paused = f"paused {job}; resume it with: deskbus schedule resume {job}"
    show_change(answer, paused, "it was already paused", changed=answer.changed, json=json)


@app.command()
def resume(job: JobArgument, json: JsonOption = False) -> None:
    """Resume a paused job from its next slot."""
    answer = accepted(ask(RESUME_JOB, typed("request", ResumeJob, job=job)))
    resumed = f"resumed {job} from its next slot"
    show_change(answer, resumed, "it was not paused", changed=answer.changed, json=json)


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
    """Run a job once, now, even if it is paused. With --wait, show what it decided.

    A second run of the same moment does nothing.
    """
    moment = _at(at, exchange_calendar())

    async def work(client: Client) -> tuple[JobRun, CycleTree | None]:
        with CycleProgress(err()) as progress:
            one = Slots(client, progress.heard)
            done = await (one.to_its_end(job, moment) if wait else one.asked(job, moment))
        if not wait or json or done.cycle_id is None:
            return done, None
        return done, await with_nodes(client, await cycle_view(client, str(done.cycle_id)))

    done, ended = with_desk(work)
    if ended is None:
        tell_begun(done, "deskbus cycle show {}", json=json)
    else:
        tell_story(ended, json=False)
        if ended.view.kind == "report":
            for account in dict.fromkeys(pipeline.account for pipeline in ended.view.pipelines):
                aside(f"the report: deskbus report {done.session} --account {account}")
    raise typer.Exit(ENDS[done.status or CycleStatus.RUNNING])


@app.command()
def replay(
    since: Annotated[str, typer.Option(help="The first session, e.g. 2012-03-01.")],
    until: Annotated[str, typer.Option(help="The last session.")],
    json: JsonOption = False,
) -> None:
    """Run the whole schedule over past sessions, one slot after another.

    Each slot sees only what was known then. Paused jobs are left out. Run an interrupted replay
    again to continue it. At the end it shows each account's return and drawdown against the
    benchmark, trades, fees and equity curve.
    """
    settings, calendar = load_settings(), exchange_calendar()
    first, last = day_of("--since", since), day_of("--until", until)

    async def work(client: Client) -> tuple[Sequence[JobRun], Mapping[str, PerformanceView]]:
        done: list[JobRun] = []
        view = await client.ask(SCHEDULE_QUERY, ScheduleQuery())
        for warning in view.warnings:
            aside(warning, "yellow")
        slots = list(slots_of(view.jobs, calendar, first, last))
        with CycleProgress(err(), _continued_by_itself) as progress:
            one, equity = Slots(client), RunningEquity(client, view.jobs)
            for name, slot in slots:
                text = f"{name} of {slot.session}{await equity.of(name)}"
                progress.counts(len(done), len(slots), text)
                done.append(await one.to_its_end(name, slot.at))
                if json:
                    emit(done[-1:])
        return done, await _results(client, view, {run.job for run in done})

    runs, results = with_desk(work)
    if not runs:
        raise WrongUsage("no job has a slot between these sessions", DOCS_HINT)
    if not json:
        show((), [of_schedule.ends(runs)], json=False)
        for account, result in results.items():
            put("")
            show((), performance.result(account, result), json=False)
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
    aside(where)


def _continued_by_itself(_cycle: str) -> str:
    return "stopped; run the same command to continue"


def _at(text: str | None, calendar: ExchangeCalendar) -> datetime:
    """The moment in UTC, to the second; now where none is named."""
    if text is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUsage(f"--at must be a moment, e.g. 2012-06-29T16:30 (got {text!r})") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=calendar.zone)
    return aware.astimezone(UTC)
