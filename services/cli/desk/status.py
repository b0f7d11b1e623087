"""`deskbus status`: whether a desk runs here, and how it is, in a few lines."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import typer
from pydantic import BaseModel
from rich.text import Text as Line

from contracts.approval import ApprovalsQuery
from contracts.cycle import CycleStatus
from contracts.cycle_query import CyclesQuery
from contracts.halt import HaltsQuery
from contracts.message import PAGE_MAX
from contracts.subjects.approvals import APPROVALS
from contracts.subjects.cycles import CYCLES
from contracts.subjects.halts import HALTS
from contracts.subjects.upkeep import DEAD_LETTERS, STORING
from contracts.upkeep import DeadLettersQuery, StoringQuery
from libs.bus.client import open_client
from libs.facts import amounts
from libs.market.exit_terms import BadExitTerms, terms_in
from libs.report.account import halted
from libs.report.tones import Tone
from libs.report.view import Cell, Facts, say
from libs.runtime.errors import DeskError
from libs.runtime.setting_names import as_set
from services.cli.desk import background
from services.cli.operating.market_files import market_note
from services.cli.render.described import Shown, show
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode
from services.cli.shell.running import RunningDesk, asking, find_desk, load_settings

app = group()


class DeskStatus(BaseModel):
    """How a desk is. `status` is `up`, or `unwell` where a part of it does not answer (`problem`
    says which). Counts end at `PAGE_MAX`.
    """

    status: str
    problem: str = ""
    pid: int | None = None
    started_at: datetime | None = None
    console: str | None = None
    data_dir: Path | None = None
    log: Path | None = None
    services: int = 0
    services_missing: tuple[str, ...] = ()
    running_cycles: int = 0
    waiting_approvals: int = 0
    dead_letters: int = 0
    halts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Market files that cannot be used or are ignored."""
    exit_rules: str = ""
    """Why the file of exit rules cannot be used; then the desk keeps those that it read before.
    Empty where it can."""


@app.command()
def status(json: JsonOption = False) -> None:
    """Show whether a desk runs here, and its health; exit 5 if none runs, 1 if it has a fault.

    `deskbus doctor` checks more and says what to do.
    """
    settings = load_settings()
    desk = find_desk(settings)
    log = background.log_path(settings).absolute()
    view = asking(_status(desk, log if log.exists() else None))
    files = tuple(asking(market_note(settings)))
    exit_rules = _fault_of(settings.exit_rules_file)
    view = view.model_copy(update={"files": files, "exit_rules": exit_rules})
    show([view], _screen(view), json=json)
    if view.status != "up":
        raise typer.Exit(ExitCode.FAILED)


def _fault_of(exit_rules: Path) -> str:
    """Why the file of exit rules cannot be used; "" where it can."""
    try:
        terms_in(exit_rules)
    except BadExitTerms as error:
        return f"{error.message}; the desk keeps using the exit rules it has"
    return ""


async def _status(desk: RunningDesk, log: Path | None) -> DeskStatus:
    place = DeskStatus(
        status="unwell",
        pid=desk.pid,
        started_at=desk.started_at,
        console=desk.http_url,
        data_dir=desk.data_dir,
        log=log,
    )
    try:
        async with open_client(desk.nats_url, desk.secrets_dir) as client:
            services, storing, running, waiting, letters, halts = await asyncio.gather(
                client.services(),
                client.ask(STORING, StoringQuery(server="postgres")),
                client.ask(CYCLES, CyclesQuery(status=CycleStatus.RUNNING, limit=PAGE_MAX)),
                client.ask(APPROVALS, ApprovalsQuery(limit=PAGE_MAX)),
                client.ask(DEAD_LETTERS, DeadLettersQuery(limit=PAGE_MAX)),
                client.ask(HALTS, HaltsQuery()),
            )
    except DeskError as error:
        return place.model_copy(update={"problem": as_set(error.message)})
    missing = tuple(sorted(name for name, count in services.items() if not count))
    return place.model_copy(
        update={
            "status": "unwell" if missing or storing.problem else "up",
            "problem": storing.problem
            or (f"no answer from {', '.join(missing)}" if missing else ""),
            "services": sum(map(bool, services.values())),
            "services_missing": missing,
            "running_cycles": len(running.cycles),
            "waiting_approvals": len(waiting.approvals),
            "dead_letters": len(letters.letters),
            "halts": tuple(map(halted, halts.halts)),
        }
    )


def _screen(view: DeskStatus) -> Iterable[Shown]:
    word = ("✓ up", "bold green") if view.status == "up" else ("✗ unwell", "bold red")
    since = ""
    if view.started_at is not None:
        took = amounts.roughly(datetime.now(UTC) - view.started_at)
        since = f"  for {took}, process {view.pid}"
    yield Line.assemble(word, (since, "dim"))
    answering = f"{view.services} of {view.services + len(view.services_missing)} answer"
    rows = [
        ("Problem", say(view.problem, Tone.BAD)),
        ("Console", say(view.console or "")),
        ("Services", say(answering if view.services else "")),
        ("Cycles", say(f"{_many(view.running_cycles)} running")),
        ("Approvals", _asking(view.waiting_approvals, "waiting", "deskbus approvals list")),
        ("Letters", _asking(view.dead_letters, "kept", "deskbus dlq list")),
        *(("Halt", say(halt, Tone.WARN)) for halt in view.halts),
        *(("Files", say(note, Tone.WARN)) for note in view.files),
        ("Exit rules", say(view.exit_rules, Tone.WARN)),
        ("Data", say(str(view.data_dir or ""))),
        ("Log", say(str(view.log or ""))),
    ]
    yield Facts(tuple(it for it in rows if it[1].text))


def _asking(count: int, word: str, command: str) -> Cell:
    """A count; where there is something to do, how."""
    if not count:
        return say(f"none {word}", Tone.QUIET)
    return say(f"{_many(count)} {word}: {command}", Tone.WARN)


def _many(count: int) -> str:
    return f"{PAGE_MAX} or more" if count == PAGE_MAX else str(count)
