"""`deskbus study run|status|stop|list`: have a study run, and see how far it is."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text as Line

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
from libs.report.view import Text
from libs.runtime.nearest import did_you_mean, nearest
from libs.study.report import listing
from services.cli.render.described import Shown, show, show_change
from services.cli.shell.invalid import typed
from services.cli.shell.options import JsonOption
from services.cli.shell.problem import UNREADABLE, CliProblem, ExitCode, NoSuchThing
from services.cli.shell.progress import CycleProgress
from services.cli.shell.running import (
    with_desk,
    with_record,
)
from services.cli.shell.terminal import TONE_STYLES, aside, err
from services.cli.studies.file import FileArgument, NameArgument, read_study

LOOK_EVERY_S = 0.5
BEGIN_S = 18.0
"""The first cell is judged before a study begins, by whoever knows the market and the models."""
HINTS = {"arms": "deskbus doctor", "name": "deskbus study list"}
"""Commands that help, by the field that was refused."""
PLANNED = (
    "change the file; `deskbus study plan FILE` shows what it would do, without calling a model"
)
OLDER = "older ones are not in this list: deskbus study status NAME"


def run(
    file: FileArgument,
    wait: Annotated[bool, typer.Option(help="Wait for the end and show the progress.")] = True,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Call no model; a call without a recorded answer fails."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run or resume a study; cells with temporary failures are tried again.

    The desk runs the study, so Ctrl-C does not stop it. It never pays for the same model call
    twice. Live cycles have priority.
    """
    study = read_study(file)

    async def work(client: Client) -> StudyView:
        wish = RunStudy(study=study, offline=offline)
        answer = accepted(await client.ask(RUN_STUDY, wish, timeout_s=BEGIN_S))
        if answer.message:
            aside(answer.message)
        for line in answer.notes:
            aside(f"note: {line}", "yellow")
        if not wait:
            return await _one(client, study.name)
        with CycleProgress(err(), lambda _: _goes_on(study.name)) as progress:
            return await _to_its_end(client, study.name, progress)

    view = with_desk(work)
    show([view], screen(view), json=json)
    if is_bad_end(view):
        raise typer.Exit(ExitCode.FAILED)


async def begin(client: Client, file: Path) -> str:
    """Begin the study of a file, and wait for none of its cells; its name. One that runs already,
    or has ended, is left as it is. Raises `CliProblem`."""
    study = read_study(file)
    known = (await client.ask(STUDIES, StudiesQuery(name=study.name))).studies
    if not known:
        accepted(await client.ask(RUN_STUDY, RunStudy(study=study), timeout_s=BEGIN_S))
    return study.name


def status(study_name: NameArgument, json: JsonOption = False) -> None:
    """Show a study's progress and cost."""
    view = with_record(lambda client: _one(client, study_name), STUDY)
    show([view], screen(view), json=json)


def stop(
    study_name: NameArgument,
    reason: Annotated[str, typer.Option(help="Kept on record and shown.")] = "",
    json: JsonOption = False,
) -> None:
    """Pause a study: no new cell starts. `study run` resumes it."""

    async def work(client: Client) -> StudyAnswer:
        wish = typed("study", StopStudy, name=study_name, reason=reason)
        answer = await client.ask(STOP_STUDY, wish)
        if answer.code == "not_found":
            raise await no_such_study(client, study_name)
        return accepted(answer)

    answer = with_desk(work)
    done = f"stopped {study_name}; resume with: deskbus study run FILE"
    same = f"it was {answer.status} already"
    show_change(answer, done, same, changed=answer.changed, json=json)


def list_studies(json: JsonOption = False) -> None:
    """List all studies, newest first."""
    page = with_record(lambda client: client.ask(STUDIES, StudiesQuery()), STUDY)
    if page.more:
        aside(OLDER)
    for name in page.unreadable:
        aside(f"study {name}: {UNREADABLE}", "yellow")
    show(page.studies, [listing.studies(page.studies)], json=json)


def is_bad_end(view: StudyView) -> bool:
    """Whether it rests before its end, or has come to it without a cell that all arms decided."""
    nothing = view.status is StudyStatus.COMPLETED and not view.completed
    return view.status is StudyStatus.STOPPED or nothing


def screen(view: StudyView) -> Iterable[Shown]:
    """A study's standing in a few lines."""
    study, budget = view.study, view.study.budget
    why = f": {view.reason or listing.RESTING}" if view.reason or view.resting else ""
    status = (view.status, TONE_STYLES[listing.TONES[view.status]])
    yield Line.assemble((study.name, "bold"), f": {study.kind}, ", status, why)
    arms = ", ".join(f"{arm.name}{' (masked)' if arm.masked else ''}" for arm in study.arms)
    parts = [f"{view.completed:,} of {view.cells:,} cells completed"]
    parts += [f"{view.running:,} running"] if view.running else []
    where = "" if len(study.arms) == 1 else " in at least one arm"
    parts += [f"{view.failed:,} failed{where}"] if view.failed else []
    parts += [f"{view.refused:,} refused ({view.refusal})"] if view.refused else []
    yield f"  arms {arms}; {', '.join(parts)}"
    if view.failed:
        yield Text(
            f"  why cells failed: deskbus study cells {study.name}, then deskbus cycle show CYCLE; "
            "deskbus study run FILE tries again what can pass"
        )
    spent = f"{view.tokens:,} of {budget.tokens:,} tokens, {amounts.paid(view.cost_usd)}"
    yield f"  spent {spent} of {budget.cost_usd:.2f} USD"


def accepted(answer: StudyAnswer) -> StudyAnswer:
    """The answer, where it is a yes. Raises `CliProblem` where it is a no."""
    if answer.outcome == "accepted":
        return answer
    field = f"{answer.field}: " if answer.field else ""
    hint = HINTS.get(answer.field or "", PLANNED)
    raise CliProblem(f"{field}{answer.message}", hint, ExitCode.REJECTED)


async def _to_its_end(client: Client, name: str, progress: CycleProgress) -> StudyView:
    while True:
        view = await _one(client, name)
        done = view.completed + view.failed + view.refused
        if view.status is not StudyStatus.RUNNING:
            return view
        spent = f", {view.cost_usd:.2f} USD" if view.cost_usd else ""
        resting = f", {listing.RESTING}" if view.resting else ""
        progress.counts(done, view.cells, f"{name}{spent}{resting}")
        await asyncio.sleep(LOOK_EVERY_S)


async def _one(client: Client, name: str) -> StudyView:
    views = (await client.ask(STUDIES, typed("study", StudiesQuery, name=name))).studies
    if views:
        return views[0]
    raise await no_such_study(client, name)


async def no_such_study(client: Client, name: str) -> CliProblem:
    """The problem of a name that no study has, with the study that was probably meant."""
    known = [view.study.name for view in (await client.ask(STUDIES, StudiesQuery())).studies]
    near = nearest(name, known)
    return NoSuchThing(
        f"unknown study {amounts.cut(name, 60)!r}{did_you_mean(near)}", "deskbus study list"
    )


def _goes_on(name: str) -> str:
    return (
        f"study {name} goes on\n"
        f"  see it: deskbus study status {name}    stop it: deskbus study stop {name}"
    )
