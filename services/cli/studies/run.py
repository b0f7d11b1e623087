"""`deskbus study run|status|stop|list`: have a study run, and see how far it is."""

import asyncio
from typing import Annotated

import typer
from rich.text import Text

from contracts.study import (
    RunStudy,
    StopStudy,
    StudiesQuery,
    StudyAnswer,
    StudyStatus,
    StudyView,
)
from contracts.subjects.studies import RUN_STUDY, STOP_STUDY, STUDIES
from contracts.subjects.subject import STUDY
from libs.bus.client import Client
from libs.facts import amounts
from libs.runtime.nearest import did_you_mean, nearest
from services.cli.shell.invalid import typed
from services.cli.shell.options import JsonOption
from services.cli.shell.problem import UNREADABLE, CliProblem, ExitCode
from services.cli.shell.progress import CycleProgress
from services.cli.shell.running import asking, desk_client, load_settings, reading_client
from services.cli.shell.terminal import emit, err, out, table, write
from services.cli.studies.file import FileArgument, NameArgument, read_study

LOOK_EVERY_S = 0.5
BEGIN_S = 18.0
"""The first cell is judged before a study begins, by whoever knows the market and the models."""
STYLES = {
    StudyStatus.RUNNING: "cyan",
    StudyStatus.STOPPED: "yellow",
    StudyStatus.COMPLETED: "green",
}
HINTS = {"pipelines": "deskbus doctor", "name": "deskbus study list"}
"""Commands that help, by the field that was refused."""
PLANNED = "change the file; deskbus study plan FILE asks no model and says what it would do"
OLDER = "older ones are not in this list: deskbus study status NAME"
RESTING = "resting: the live desk is at work"


def run(
    file: FileArgument,
    wait: Annotated[bool, typer.Option(help="Wait for its end and show how far it is.")] = True,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no model: fail where no answer is on record.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run a study, or resume one: cells that failed for a reason that can pass are tried again.

    The desk runs it, not this command: Ctrl-C leaves it running. A call of a model that it has
    paid for is never paid again. The live desk goes first.
    """
    study, settings = read_study(file), load_settings()

    async def work() -> StudyView:
        async with desk_client(settings) as client:
            wish = RunStudy(study=study, offline=offline)
            answer = accepted(await client.ask(RUN_STUDY, wish, timeout_s=BEGIN_S))
            if answer.message:
                err().print(answer.message, style="dim")
            for line in answer.notes:
                err().print(Text(f"note: {line}", "yellow"), soft_wrap=True)
            if not wait:
                return await _one(client, study.name)
            with CycleProgress(err(), lambda _: _goes_on(study.name)) as progress:
                return await _to_its_end(client, study.name, progress)

    view = asking(work())
    if json:
        emit([view])
    else:
        show(view)
    if is_bad_end(view):
        raise typer.Exit(ExitCode.FAILED)


def status(study_name: NameArgument, json: JsonOption = False) -> None:
    """Show how far a study is, and what it has cost."""
    view = asking(_read_one(study_name))
    if json:
        emit([view])
    else:
        show(view)


def stop(
    study_name: NameArgument,
    reason: Annotated[str, typer.Option(help="Kept on record and shown.")] = "",
    json: JsonOption = False,
) -> None:
    """Let a study rest: no further cell begins. `study run` resumes it."""
    settings = load_settings()

    async def work() -> StudyAnswer:
        async with desk_client(settings) as client:
            wish = typed("study", StopStudy, name=study_name, reason=reason)
            answer = await client.ask(STOP_STUDY, wish)
            if answer.code == "not_found":
                raise await no_such_study(client, study_name)
            return accepted(answer)

    answer = asking(work())
    if json:
        emit([answer])
    elif answer.changed:
        out().print(f"stopped {study_name}; resume with: deskbus study run FILE")
    else:
        err().print(f"it was {answer.status} already: nothing changed", style="dim")


def list_studies(json: JsonOption = False) -> None:
    """List all studies, the newest first."""
    settings = load_settings()

    async def work() -> tuple[StudyView, ...]:
        async with reading_client(settings, STUDY) as client:
            page = await client.ask(STUDIES, StudiesQuery())
            if page.more:
                err().print(OLDER, style="dim", soft_wrap=True)
            for name in page.unreadable:
                err().print(f"study {name}: {UNREADABLE}", style="yellow")
            return page.studies

    views = asking(work())
    if json:
        emit(views)
        return
    if not views:
        err().print("no study yet; `deskbus init` writes study.yaml to start from", style="dim")
        return
    grid = table(
        "study",
        "kind",
        ("arms", "gives"),
        ("done", "right"),
        ("failed", "right"),
        ("USD", "right"),
        "status",
        spare=("kind", "failed"),
    )
    for view in views:
        grid.add_row(
            Text(view.study.name, "bold"),
            view.study.kind,
            ", ".join(arm.name for arm in view.study.arms),
            f"{view.completed + view.failed:,}/{view.cells:,}",
            f"{view.failed + view.refused:,}",
            amounts.paid(view.cost_usd, 2),
            Text(view.status, STYLES[view.status]),
        )
    write(grid, out())


def is_bad_end(view: StudyView) -> bool:
    """Whether it rests before its end, or has come to it without a cell that all arms decided."""
    nothing = view.status is StudyStatus.COMPLETED and not view.completed
    return view.status is StudyStatus.STOPPED or nothing


def show(view: StudyView) -> None:
    """A study's standing in a few lines."""
    study, console = view.study, out()
    head = Text.assemble(
        (study.name, "bold"), f": {study.kind}, ", (view.status, STYLES[view.status])
    )
    if view.reason or view.resting:
        head.append(f": {view.reason or RESTING}")
    console.print(head, soft_wrap=True)
    arms = ", ".join(f"{arm.name}{' (masked)' if arm.masked else ''}" for arm in study.arms)
    parts = [f"{view.completed:,} of {view.cells:,} cells completed"]
    parts += [f"{view.running:,} running"] if view.running else []
    where = "" if len(study.arms) == 1 else " in at least one arm"
    parts += [f"{view.failed:,} failed{where}"] if view.failed else []
    parts += [f"{view.refused:,} refused ({view.refusal})"] if view.refused else []
    console.print(f"  arms {arms}; {', '.join(parts)}", soft_wrap=True)
    if view.failed:
        hint = (
            f"  why cells failed: deskbus study cells {study.name}, then deskbus cycle show CYCLE; "
            "deskbus study run FILE tries again what can pass"
        )
        console.print(Text(hint, "dim"), soft_wrap=True)
    budget = study.budget
    console.print(
        f"  spent {view.tokens:,} of {budget.tokens:,} tokens, {amounts.paid(view.cost_usd)} of "
        f"{budget.cost_usd:.2f} USD",
        soft_wrap=True,
    )


def accepted(answer: StudyAnswer) -> StudyAnswer:
    """The answer, where it is a yes. Raises `CliProblem` where it is a no."""
    if answer.outcome == "accepted":
        return answer
    field = f"{answer.field}: " if answer.field else ""
    raise CliProblem(
        ExitCode.REJECTED, f"{field}{answer.message}", HINTS.get(answer.field or "", PLANNED)
    )


async def _to_its_end(client: Client, name: str, progress: CycleProgress) -> StudyView:
    while True:
        view = await _one(client, name)
        done = view.completed + view.failed + view.refused
        if view.status is not StudyStatus.RUNNING:
            return view
        spent = f", {view.cost_usd:.2f} USD" if view.cost_usd else ""
        resting = f", {RESTING}" if view.resting else ""
        progress.counts(done, view.cells, f"{name}{spent}{resting}")
        await asyncio.sleep(LOOK_EVERY_S)


async def _read_one(name: str) -> StudyView:
    async with reading_client(load_settings(), STUDY) as client:
        return await _one(client, name)


async def _one(client: Client, name: str) -> StudyView:
    views = (await client.ask(STUDIES, typed("study", StudiesQuery, name=name))).studies
    if views:
        return views[0]
    raise await no_such_study(client, name)


async def no_such_study(client: Client, name: str) -> CliProblem:
    """The problem of a name that no study has, with the study that was probably meant."""
    known = [view.study.name for view in (await client.ask(STUDIES, StudiesQuery())).studies]
    near = nearest(name, known)
    return CliProblem(
        ExitCode.NOT_FOUND,
        f"no study is named {amounts.cut(name, 60)!r}{did_you_mean(near)}",
        "deskbus study list",
    )


def _goes_on(name: str) -> str:
    return (
        f"study {name} goes on\n"
        f"  see it: deskbus study status {name}    stop it: deskbus study stop {name}"
    )
