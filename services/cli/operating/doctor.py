"""`deskbus doctor`: what works here, and what to do about what does not."""

import asyncio
import os
import platform
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from contracts.cycle_query import CyclesQuery
from contracts.halt import Halts, HaltsQuery
from contracts.provider import ProvidersQuery, ProviderStanding
from contracts.subjects.cycles import CYCLES
from contracts.subjects.halts import HALTS
from contracts.subjects.preflight import PROVIDERS
from contracts.subjects.upkeep import DEAD_LETTERS, STORING
from contracts.subjects.venue import VENUE
from contracts.upkeep import DeadLettersQuery, StoringQuery
from contracts.venue import VenueQuery
from libs.bus.client import Client, open_client
from libs.facts import amounts
from libs.keys.credentials import mode_of
from libs.llm.endpoints.endpoint import endpoints_of, prices_of
from libs.llm.endpoints.keys import key_source
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import NotUsable, all_providers, standings
from libs.market.choice import CAN, DataKind, chosen, source_of
from libs.market.exit_terms import BadExitTerms, terms_in
from libs.report.account import halted, remedy
from libs.report.settings import without_login
from libs.runtime.errors import DeskError, StartError, Unavailable
from libs.runtime.model_settings import BUILT_IN
from libs.runtime.own_folder import OTHERS_LOOK, OWN_FOLDER, data_dir_mode
from libs.runtime.proposers import Proposers, ProposersUnreadable
from libs.runtime.setting_names import as_set
from libs.runtime.settings import Settings
from libs.servers.binaries import find_nats_server, find_postgres_bindir
from libs.servers.child_log import last_line
from libs.servers.nats_server import monitored, nats_problem
from libs.servers.placement import server_identity
from libs.servers.server_record import DataDirError, ServerRecord, check_path
from services.cli.operating import certificates, surroundings
from services.cli.operating.channels import channels_here, channels_of
from services.cli.operating.checks import CheckVerdict, DoctorCheck, off, ok, problem
from services.cli.operating.market_files import market_files
from services.cli.operating.model_call import SETTINGS, called
from services.cli.operating.plugins import plugins_tried
from services.cli.operating.programs import programs_tried
from services.cli.operating.source_words import WORDS, alpaca_lacks
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.running import RunningDesk, asking, find_desk, load_settings
from services.cli.shell.terminal import emit, out, put, write

PYTHON_MIN = (3, 11)
DISK_BYTES_MIN = 500 * 1024**2
MISSES_SHOWN_MAX = 5
BROKER_S_MAX = 60.0
"""Four questions to the broker, each of which may take its whole time."""
STORING_S_MAX = 15.0
"""It is told by the next message that is stored, or that is not stored in time."""
NAME_WIDTH = 16
YOU = "an agent with a shell under your user has your rights"
OTHERS = 0o077
"""The rights of a file that its owner's group and everybody have."""

app = group()

CallOption = Annotated[
    str | None,
    typer.Option(
        "--call", metavar="NAME", help="Test this provider with real calls (at most one cent)."
    ),
]


STYLES = {
    CheckVerdict.OK: ("✓", "green"),
    CheckVerdict.OFF: ("·", "dim"),
    CheckVerdict.PROBLEM: ("✗", "bold red"),
}


@app.command()
def doctor(call: CallOption = None, json: JsonOption = False) -> None:
    """Check this machine and the running desk; exit 1 if something is wrong.

    With --call, make real calls to a model endpoint instead (at most one cent), and show its
    features, its speed and the settings to use. Needs no running desk.
    """
    settings = load_settings()
    if call is not None:
        checks = asking(called(settings, call))
    else:
        checks = [
            *machine(settings),
            *asking(plugins_tried(settings)),
            *asking(programs_tried(settings)),
            *asking(market_files(settings)),
            *asking(running(settings)),
        ]
    checks = [
        check.model_copy(update={"said": as_set(check.said), "todo": as_set(check.todo)})
        for check in checks
    ]
    if json:
        emit(checks)
    else:
        for check in checks:
            if check.name == SETTINGS:
                put(f"\nfor deskbus.toml:\n\n{check.said}")
            else:
                _show(check)
    if any(check.verdict is CheckVerdict.PROBLEM for check in checks):
        raise typer.Exit(ExitCode.FAILED)


def _show(check: DoctorCheck) -> None:
    mark, style = STYLES[check.verdict]
    if not out().is_terminal:  # a line a check, for programs that read lines
        line = Text.assemble((f"{mark} ", style), f"{check.name:<{NAME_WIDTH - 1}} ", check.said)
        put(line)
        if check.todo:
            put(f"{'':<{NAME_WIDTH + 2}}→ {check.todo}")
        return
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(width=NAME_WIDTH - 1)
    grid.add_column(overflow="fold")
    todo = Text(f"\n→ {check.todo}", "yellow") if check.todo else Text()
    grid.add_row(Text(mark, style), check.name, Text.assemble(check.said, todo))
    write(grid, out())


# --- this machine -------------------------------------------------------------------------------


def machine(settings: Settings) -> Sequence[DoctorCheck]:
    """Everything that can be seen without a running desk."""
    own = settings.nats.url is not None
    checks = [_python()]
    if not own:
        checks += [
            _tried("nats-server", lambda: str(find_nats_server())),
            _tried("postgres", lambda: str(find_postgres_bindir(settings.postgres.bindir))),
            _user(),
        ]
    return [
        *checks,
        _data_dir(settings.data_dir),
        _tried("market data", lambda: WORDS[source_of(settings)](settings)),
        *_lacking(settings),
        *_kinds(settings),
        _exit_rules(settings.exit_rules_file),
        _credentials(settings.secrets_path),
        *_proposers(settings.secrets_path),
        *certificates.in_files(settings),
        *surroundings.proxies(settings),
        *surroundings.variables(settings),
        *_providers(settings),
    ]


def _python() -> DoctorCheck:
    version = platform.python_version()
    if sys.version_info < PYTHON_MIN:
        need = ".".join(map(str, PYTHON_MIN))
        return problem("python", version, f"install Python {need} or newer")
    return ok("python", f"{version} on {platform.system()} {platform.machine()}")


def _tried(name: str, look: Callable[[], str]) -> DoctorCheck:
    try:
        return ok(name, look())
    except (StartError, DeskError, OSError) as error:
        return problem(name, str(error))


def _user() -> DoctorCheck:
    identity = server_identity()
    if identity is None:
        return ok("user", "an ordinary user: the servers run as you")
    return ok("user", f"root: the servers run as uid {identity.uid}, since Postgres refuses root")


def _proposers(secrets: Path) -> Sequence[DoctorCheck]:
    """Who may propose, and what no token can change: whose shell it is."""
    try:
        known = Proposers(secrets).active()
    except ProposersUnreadable as error:
        return [problem("proposers", error.message)]
    if not known:
        return []
    names = ", ".join(f"{one.name} for account {one.account}" for one in known)
    unasked = [one.name for one in known if not one.approval_required]
    nobody = f"; nobody approves {', '.join(unasked)}" if unasked else ""
    return [ok("proposers", f"{names}{nobody}; {YOU}, whatever its token may not")]


def _data_dir(path: Path) -> DoctorCheck:
    here = path.absolute()
    try:
        check_path(here)
    except DataDirError as error:
        return problem("data", str(error))
    nearest = next(parent for parent in (here, *here.parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return problem(
            "data", f"{here} cannot be written", "make it writable, or set DESKBUS_DATA_DIR"
        )
    free = os.statvfs(nearest)
    room = free.f_bavail * free.f_frsize
    finding = f"{here}, {room / 1024**3:.1f} GiB free"
    if room < DISK_BYTES_MIN:
        return problem("data", finding, "free disk space: Postgres stops when the disk is full")
    if here.exists() and here.stat().st_mode & OTHERS_LOOK:
        return problem(
            "data",
            f"{here}: other users can list it or write to it, a program that runs as one too",
            f"chmod {data_dir_mode():o} {here}",
        )
    return ok("data", finding if here.exists() else f"{finding} (created at the first start)")


def _providers(settings: Settings) -> Sequence[DoctorCheck]:
    providers = all_providers(settings)
    return [
        _provider(standing, _offer(providers[standing.name], settings, standing.name))
        for standing in standings(providers, settings.providers)
    ]


def _offer(provider: Provider, settings: Settings, name: str) -> str:
    """Where an endpoint's key comes from, how fast it may be asked, and its models' prices."""
    if name in BUILT_IN or isinstance(provider, NotUsable):
        return ""
    prices = prices_of(settings)
    models = dict.fromkeys(provider.model_for("", size) for size in ModelSize)
    costs = [
        f"{model} ${prices[model].input:f} in and ${prices[model].output:f} out"
        for model in models
        if model in prices
    ]
    a_million = f"; a million tokens of {', '.join(costs)}" if costs else ""
    unpriced = [model for model in models if model not in prices]
    if unpriced and not endpoints_of(settings)[name].free:
        a_million += (
            f"; {' and '.join(unpriced)} without a price: the cost is unknown, only token budgets "
            f"limit it (set [prices.{unpriced[0]!r}])"
        )
    source = key_source(endpoints_of(settings)[name], settings.secrets_path)
    key = f"with the key of {source}" if source else "without a key"
    return f"set up {key}; not called here; {settings.rate_of(name)}{a_million}"


def _provider(standing: ProviderStanding, offer: str) -> DoctorCheck:
    name = f"model {standing.name}"
    if standing.usable:
        return ok(name, "; ".join(filter(None, (offer or "can be used", standing.described))))
    return (problem if standing.expected else off)(name, standing.why)


def _exit_rules(path: Path) -> DoctorCheck:
    try:
        rules = terms_in(path)
    except BadExitTerms as error:
        return problem(
            "exit rules",
            error.message,
            "correct the file: a running desk keeps its current rules, a new one does not start",
        )
    if not path.exists():
        return ok("exit rules", f"the defaults: {path} does not exist")
    return ok(
        "exit rules", f"{path}: {amounts.count(len(rules.position), 'position')} with their own"
    )


def _lacking(settings: Settings) -> Sequence[DoctorCheck]:
    """What sources need beside their own settings; nothing where all is there."""
    lacks = alpaca_lacks(settings)
    file = settings.alpaca.data_key_file
    checks = [off("market data", lacks)] if lacks else []
    if file is not None and file.exists() and stat.S_IMODE(file.stat().st_mode) & OTHERS:
        finding = f"other users can read {file}, the Alpaca key"
        checks.append(problem("credentials", finding, f"chmod 600 {file}"))
    return checks


def _kinds(settings: Settings) -> Sequence[DoctorCheck]:
    """The kinds of data that have another source than prices, or none at all."""
    checks = []
    for kind in DataKind:
        name = chosen(settings, kind)
        if kind not in CAN[name]:
            others = " or ".join(source for source in CAN if kind in CAN[source])
            finding = (
                f"none: {name} has none; set DESKBUS_MARKET_{kind.upper()} to {others} for them"
            )
            checks.append(off(kind, finding))
        elif name != source_of(settings):
            checks.append(_tried(kind, partial(WORDS[name], settings)))
    return checks


def _credentials(directory: Path) -> DoctorCheck:
    if not directory.exists():
        finding = f"{directory} is created at the first start"
        return off("credentials", finding)
    allowed = {directory: OWN_FOLDER, **{p: mode_of(p.name) for p in _files(directory)}}
    wide = {
        path: mode for path, mode in allowed.items() if stat.S_IMODE(path.stat().st_mode) & ~mode
    }
    if wide:
        modes = [f"{path.name} is {stat.S_IMODE(path.stat().st_mode):o}" for path in wide]
        todo = [f"chmod {mode:o} {path}" for path, mode in wide.items()]
        return problem(
            "credentials",
            f"other users can read secrets: {', '.join(modes[:MISSES_SHOWN_MAX])}",
            " && ".join(todo[:MISSES_SHOWN_MAX]),
        )
    return ok("credentials", f"{len(_files(directory))} files in {directory}, secrets yours only")


def _files(directory: Path) -> Sequence[Path]:
    return sorted(path for path in directory.iterdir() if path.is_file())


# --- the running desk ---------------------------------------------------------------------------


async def running(settings: Settings) -> Sequence[DoctorCheck]:
    """The desk's own checks; one line where none is running."""
    try:
        desk = find_desk(settings)
    except CliProblem as none:
        none_here = off("desk", none.message, none.hint)
        return [*await channels_here(settings), none_here]
    since = f" since {desk.started_at.astimezone():%Y-%m-%d %H:%M}" if desk.started_at else ""
    where = f"process {desk.pid}{since}" if desk.pid else "own servers"
    checks = [ok("desk", where), *await _bus(desk, settings)]
    dsn = _dsn(desk, settings)
    if dsn is not None:
        checks.append(await _database(desk, dsn))
    checks += await certificates.shown(desk, dsn)
    if desk.data_dir is not None and settings.nats.url is None:
        checks += await _server(desk.data_dir)
    return checks


def _dsn(desk: RunningDesk, settings: Settings) -> str | None:
    """The database's address; None where it is not known here, as from outside of containers."""
    own = settings.postgres.dsn
    return own.get_secret_value() if own is not None else desk.postgres_dsn


async def _bus(desk: RunningDesk, settings: Settings) -> Sequence[DoctorCheck]:
    try:
        async with open_client(desk.nats_url, desk.secrets_dir) as client:
            return [
                ok("nats", without_login(desk.nats_url)),
                await _services(client),
                *await _answers(client, settings),
                *([await _committing(client)] if _dsn(desk, settings) is None else []),
                *await _broker(client),
                *await channels_of(client, settings),
            ]
    except DeskError as error:
        return [problem("nats", error.message, _last_word(desk.data_dir, "nats"))]


async def _broker(client: Client) -> Sequence[DoctorCheck]:
    """The broker's side, as execution sees it; nothing without a trading key."""
    try:
        standing = await client.ask(VENUE, VenueQuery(), timeout_s=BROKER_S_MAX)
    except DeskError as error:
        return [problem("broker", error.message, "see the log of execution for the reason")]
    return [
        DoctorCheck(
            name=f"broker {finding.name}",
            verdict=CheckVerdict.OFF if finding.ok is None else _verdict(ok=finding.ok),
            said=finding.said,
            todo=finding.todo,
        )
        for finding in standing.findings
    ]


def _verdict(*, ok: bool) -> CheckVerdict:
    return CheckVerdict.OK if ok else CheckVerdict.PROBLEM


async def _services(client: Client) -> DoctorCheck:
    """Who answers; one whose key NATS refuses does not."""
    there = await client.services()
    missing = sorted(name for name, count in there.items() if not count)
    todo = "see the log of the desk or of the service: it ended, or NATS refuses its key"
    return _complete("services", missing, sorted(there), todo)


async def _answers(client: Client, settings: Settings) -> Sequence[DoctorCheck]:
    try:
        page = await client.ask(CYCLES, CyclesQuery(limit=1))
        newest = page.cycles[0] if page.cycles else None
        finding = (
            f"answers; newest cycle {amounts.short(newest.cycle_id)}, {newest.status}"
            if newest
            else "answers; no cycle yet"
        )
        await client.ask(DEAD_LETTERS, DeadLettersQuery(limit=1))
        halts = await client.ask(HALTS, HaltsQuery())
    except DeskError as error:
        return [problem("console", error.message, "see the desk's log; restart the desk")]
    return [
        ok("console", finding),
        *_trading(halts),
        await models_of(client, settings),
        await _stream_storing(client),
    ]


def _trading(halts: Halts) -> Sequence[DoctorCheck]:
    if not halts.halts:
        return [ok("trading", "no halt: buys are allowed")]
    return [off("trading", halted(halt), todo=remedy(halt)) for halt in halts.halts]


async def models_of(client: Client, settings: Settings) -> DoctorCheck:
    """The providers that the running desk can use: keys are read when it starts, in its
    environment. One that is set up here alone is told, for its key came later.
    """
    try:
        view = await client.ask(PROVIDERS, ProvidersQuery())
    except DeskError as error:
        return problem("models", error.message, "see the log of the sentiment service")
    usable = [provider.name for provider in view.providers if provider.usable]
    finding = f"the running desk can use {', '.join(usable)}"
    standing = standings(all_providers(settings), settings.providers)
    here = [one.name for one in standing if one.usable]
    if absent := [name for name in here if name not in usable]:
        finding += (
            f", not {' or '.join(absent)}, which is configured here: the desk started without it"
        )
        todo = "start it again from here: deskbus down && deskbus up --detach"
        return off("models", finding, todo)
    return ok("models", finding)


async def _storing(
    client: Client, name: str, query: StoringQuery, well: str, todos: tuple[str, str]
) -> DoctorCheck:
    """Whether a server stores; `todos` are for where nobody says so, and for where it does not."""
    try:
        storing = await client.ask(STORING, query, timeout_s=STORING_S_MAX)
    except DeskError as error:
        return problem(name, error.message, todos[0])
    return problem(name, storing.problem, todos[1]) if storing.problem else ok(name, well)


def _stream_storing(client: Client) -> Awaitable[DoctorCheck]:
    todos = ("see the console's log", "free space on NATS' disk")
    return _storing(client, "storing", StoringQuery(), "NATS stores messages", todos)


def _committing(client: Client) -> Awaitable[DoctorCheck]:
    """The database as the console finds it: its address is not known here."""
    query = StoringQuery(server="postgres")
    todos = ("see the logs of the console and of Postgres", "see the log of Postgres")
    return _storing(client, "database", query, "Postgres commits", todos)


async def _database(desk: RunningDesk, dsn: str) -> DoctorCheck:
    # Only where a desk runs whose database can be asked.
    from libs.postgres.migrate import migrations  # noqa: PLC0415
    from libs.postgres.pool import (  # noqa: PLC0415
        CAN_COMMIT,
        CONSOLE_ROLE,
        PostgresError,
        dsn_for,
        open_pool,
    )

    newest = migrations()[-1].version
    address = without_login(dsn)
    try:
        async with open_pool(dsn_for(dsn, CONSOLE_ROLE, desk.secrets_dir), size_max=1) as pool:
            version = await pool.fetchval("select max(version) from schema_migrations")
            if version != newest:
                behind = f"{address} is at version {version} of {newest}"
                return problem("database", behind, "run `deskbus db migrate`")
            await pool.execute(CAN_COMMIT)
    except (Unavailable, PostgresError) as error:
        return problem("database", f"{address}: {error}", _last_word(desk.data_dir, "postgres"))
    return ok("database", f"{address}, version {version} of {newest}")


async def _server(data_dir: Path) -> Sequence[DoctorCheck]:
    """The embedded NATS server's own report, and its streams."""
    port = ServerRecord.load(data_dir).ports.get("nats_monitor")
    if port is None:
        return []
    finding = await nats_problem(port)
    is_well = ok("server nats", "is well")
    return [
        problem("server nats", finding, _last_word(data_dir, "nats")) if finding else is_well,
        await asyncio.to_thread(_streams, port),
    ]


def _last_word(data_dir: Path | None, server: str) -> str:
    """Where to look, and what an embedded server said last there."""
    path = (data_dir or Path()) / "logs" / f"{server}.log"
    if not path.exists():
        return f"see the log of {server}"
    return f"the desk restarts it until it runs; {path} ends: {last_line(path)}"


def _streams(port: int) -> DoctorCheck:
    try:
        details = monitored(port, "jsz?streams=true")["account_details"]
    except (OSError, KeyError, ValueError) as error:
        return problem("monitor", f"port {port} does not answer: {error}")
    from libs.bus.streams import streams  # noqa: PLC0415 - only beside servers of the desk's own

    names = {entry["name"] for detail in details for entry in detail.get("stream_detail", ())}
    wanted = {stream.name or "" for stream in streams()}
    todo = "the provisioner creates them within a second; if not, restart the desk"
    return _complete("streams", sorted(wanted - names), sorted(wanted), todo)


def _complete(name: str, missing: Sequence[str], wanted: Sequence[str], todo: str) -> DoctorCheck:
    if missing:
        return problem(name, f"missing: {', '.join(missing)}", todo)
    return ok(name, ", ".join(wanted))
