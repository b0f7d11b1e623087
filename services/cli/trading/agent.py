"""`deskbus agent`: the strategy cycle. Ask for one, look where it is, stop it."""

import asyncio
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from pydantic import ValidationError

from contracts.cycle import STRATEGY, CycleStatus, RequestAnswer
from contracts.cycle_query import CyclesQuery
from contracts.http import AgentStatus
from contracts.operation import OperationsQuery, OperationView
from contracts.strategy import StrategySpec, StrategyWish
from contracts.strategy_query import StrategyView
from contracts.subjects.cycles import CYCLES
from contracts.subjects.operations import OPERATIONS
from libs.bus.client import Client
from libs.report.strategies.files import spec_in
from libs.runtime.errors import DeskError
from libs.runtime.own_text import UnreadableFile
from libs.runtime.settings import Settings
from services.cli.render import strategy_story
from services.cli.shell import progress as meanwhile
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.request import (
    ENDS,
    CycleOptions,
    build,
    cancelled,
    request_and_follow,
    send,
)
from services.cli.shell.request_options import (
    AsOfOption,
    MaxCostOption,
    MaxTokensOption,
    TimeoutOption,
    UniverseOption,
)
from services.cli.shell.running import asking, desk_client, load_settings, reading_client
from services.cli.shell.terminal import emit, err, out
from services.cli.trading.strategies import strategy_named

LOOK_EVERY_S = 1.0
DESIGN_HINT = (
    "`deskbus agent trigger --wait` designs one, and writes it to strategies/ as a file for --spec"
)
"""How often a computation is asked how far it is."""

app = group()


@app.callback()
def agent() -> None:
    """Design, train, backtest and assess a strategy."""


@app.command()
def trigger(
    spec: Annotated[
        Path | None,
        typer.Option(
            help="Use this design (YAML), e.g. one of strategies/, instead of creating one."
        ),
    ] = None,
    attempts: Annotated[
        int, typer.Option(min=1, help="How many designs to try until one passes the gates.")
    ] = 1,
    provider: Annotated[str, typer.Option(help="Provider that designs and assesses.")] = "rules",
    as_of: AsOfOption = None,
    universe: UniverseOption = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="Idempotency key: repeating the same request with it starts nothing new."
        ),
    ] = None,
    timeout_s: TimeoutOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the cycle to end, then show it.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Ask the running desk for a strategy cycle. Without --wait the answer is its id.

    A design that a gate stops ends the cycle as failed, with each value and threshold: exit 1.
    """
    settings = load_settings()
    wish = CycleOptions(
        kind=STRATEGY,
        as_of=as_of,
        universe=universe if universe is not None else (),
        providers=(provider,),
        key=key,
        timeout_s=timeout_s,
        tokens=max_tokens,
        cost_usd=max_cost,
        strategy=_wish(spec, attempts),
    )
    if wait:
        node, view = asking(_request_and_wait(settings, wish))
        if json:
            emit([node])
        else:
            strategy_story.tell(node, view, out())
        raise typer.Exit(ENDS[_cycle_status(node)])
    answer = asking(_request(settings, wish))
    if json:
        emit([answer])
    else:
        out().print(str(answer.cycle_id))
        err().print(f"{answer.status}: deskbus agent status", style="dim")


@app.command()
def status(json: JsonOption = False) -> None:
    """Show the strategy cycle's phase, or how the last one ended."""
    settings = load_settings()

    async def work() -> AgentStatus:
        async with reading_client(settings) as client:
            newest = await _newest(client)
            return AgentStatus.of(() if newest is None else await _nodes(client, newest))

    view = asking(work())
    if json:
        emit([view])
    else:
        strategy_story.tell_phase(view.model_dump(), out())


@app.command()
def cancel(
    reason: Annotated[str, typer.Option(help="Kept with the cycle.")] = "cancelled by request",
    json: JsonOption = False,
) -> None:
    """Stop the running strategy cycle and its computations."""
    settings = load_settings()

    async def work() -> RequestAnswer:
        async with desk_client(settings) as client:
            running = await _newest(client, CycleStatus.RUNNING)
            if running is None:
                raise CliProblem(ExitCode.NOT_FOUND, "no strategy cycle is running")
            return await cancelled(client, running, reason)

    answer = asking(work())
    if json:
        emit([answer])
    else:
        out().print(f"{answer.cycle_id} {answer.status}")


def _wish(path: Path | None, attempts: int) -> StrategyWish:
    try:
        return StrategyWish(spec=_spec(path) if path else None, attempts=attempts)
    except ValidationError as error:
        raise invalid("request", error) from error


def _spec(path: Path) -> StrategySpec:
    """The design in a file. Raises `CliProblem` (usage) that names the field at fault."""
    try:
        return spec_in(path)
    except OSError as error:
        why = f"{path} cannot be read: {error.strerror}"
        raise CliProblem(ExitCode.USAGE, why, DESIGN_HINT) from error
    except UnreadableFile as error:
        raise CliProblem(ExitCode.USAGE, f"{path}: {error.message}", DESIGN_HINT) from error
    except ValidationError as error:
        raise invalid(f"spec ({path})", error, StrategySpec) from error


async def _request(settings: Settings, wish: CycleOptions) -> RequestAnswer:
    request = build(wish)
    async with desk_client(settings) as client:
        return await send(client, request)


async def _request_and_wait(
    settings: Settings, wish: CycleOptions
) -> tuple[OperationView, StrategyView | None]:
    """The cycle's parent operation at its end, and the strategy that it designed last."""
    request = build(wish)
    async with desk_client(settings) as client:
        with meanwhile.CycleProgress(err(), _continues) as progress:
            looking = asyncio.create_task(_look(client, progress))
            try:
                view = await request_and_follow(client, request, progress.heard)
            finally:
                looking.cancel()
        if view.cycle_id is None:
            raise CliProblem(ExitCode.NOT_FOUND, view.message)
        node = (await _nodes(client, view.cycle_id))[0]
        name = node.metadata.get("strategy_name")
        return node, await strategy_named(client, str(name)) if name else None


async def _look(client: Client, progress: meanwhile.CycleProgress) -> None:
    """Show how far the computation is: it tells no event of its parts."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            newest = await _newest(client, CycleStatus.RUNNING)
            nodes = () if newest is None else await _nodes(client, newest)
        except DeskError:
            continue  # who waits for the end says it, where the desk has gone
        part = AgentStatus.of(nodes).progress
        if part.step:
            progress.details(f"{part.percentage:.0f}% {part.step}", part.percentage / 100)


def _continues(cycle: str) -> str:
    """The desk goes on with the computation, whoever waits for it."""
    if not cycle:
        return ""
    return (
        f"strategy cycle {cycle} is still running\n"
        "  watch it: deskbus agent status    stop it: deskbus agent cancel"
    )


async def _newest(client: Client, status: CycleStatus | None = None) -> UUID | None:
    page = await client.ask(CYCLES, CyclesQuery(kind=STRATEGY, status=status, limit=1))
    return page.cycles[0].cycle_id if page.cycles else None


async def _nodes(client: Client, cycle_id: UUID) -> tuple[OperationView, ...]:
    page = await client.ask(OPERATIONS, OperationsQuery(cycle_id=cycle_id))
    return page.operations


def _cycle_status(node: OperationView) -> CycleStatus:
    """Of the parent operation, whose status is its cycle's where it has one of that name."""
    return CycleStatus(node.status.value)
