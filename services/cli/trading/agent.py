"""`deskbus agent`: the strategy cycle. Ask for one, look where it is, stop it."""

import asyncio
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from contracts.cycle import STRATEGY, CycleRequest, CycleStatus, RequestAnswer
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
from services.cli.render import strategy_story
from services.cli.render.described import show
from services.cli.shell.invalid import own_file, typed
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import NoSuchThing
from services.cli.shell.progress import CycleProgress
from services.cli.shell.request import (
    ENDS,
    build,
    cancelled,
    request_and_follow,
    send,
)
from services.cli.shell.request_options import (
    DecisionOptions,
    KeyOption,
    RequestOptions,
    WaitOption,
    takes,
)
from services.cli.shell.running import (
    with_desk,
    with_record,
)
from services.cli.shell.terminal import emit, err, out
from services.cli.trading.cycle_steps import tell_begun
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
@takes(RequestOptions)
def trigger(
    wish: RequestOptions,
    spec: Annotated[
        Path | None,
        typer.Option(
            help="Use this design (YAML), e.g. one of strategies/, instead of creating one."
        ),
    ] = None,
    attempts: Annotated[
        int, typer.Option(min=1, help="Most designs to try until one passes the gates.")
    ] = 1,
    provider: Annotated[str, typer.Option(help="Provider for design and assessment.")] = "rules",
    key: KeyOption = None,
    wait: WaitOption = False,
    json: JsonOption = False,
) -> None:
    """Request a strategy cycle from the running desk. Without --wait, prints its id.

    If a gate stops the design, the cycle fails (exit 1) and shows each value and threshold.
    """
    options = DecisionOptions(**vars(wish), provider=[provider])
    request = build(options, kind=STRATEGY, key=key, strategy=_wish(spec, attempts))
    if wait:
        node, view = with_desk(lambda client: _request_and_wait(client, request))
        if json:
            emit([node])
        else:
            strategy_story.tell(node, view, out())
        raise typer.Exit(ENDS[_cycle_status(node)])
    tell_begun(with_desk(lambda client: send(client, request)), "deskbus agent status", json=json)


@app.command()
def status(json: JsonOption = False) -> None:
    """Show the strategy cycle's phase, or how the last one ended."""

    async def work(client: Client) -> AgentStatus:
        newest = await _newest(client)
        return AgentStatus.of(() if newest is None else await _nodes(client, newest))

    view = with_record(work)
    if json:
        emit([view])
    else:
        strategy_story.tell_phase(view.model_dump(), out())


@app.command()
def cancel(
    reason: Annotated[
        str, typer.Option(help="Reason, kept with the cycle.")
    ] = "cancelled by request",
    json: JsonOption = False,
) -> None:
    """Stop the running strategy cycle and its computations."""

    async def work(client: Client) -> RequestAnswer:
        running = await _newest(client, CycleStatus.RUNNING)
        if running is None:
            raise NoSuchThing("no strategy cycle is running")
        return await cancelled(client, running, reason)

    answer = with_desk(work)
    show([answer], [f"{answer.cycle_id} {answer.status}"], json=json)


def _wish(path: Path | None, attempts: int) -> StrategyWish:
    spec = own_file(path, spec_in, DESIGN_HINT, StrategySpec) if path else None
    return typed("request", StrategyWish, spec=spec, attempts=attempts)


async def _request_and_wait(
    client: Client, request: CycleRequest
) -> tuple[OperationView, StrategyView | None]:
    """The cycle's parent operation at its end, and the strategy that it designed last."""
    with CycleProgress(err(), _continues) as progress:
        looking = asyncio.create_task(_look(client, progress))
        try:
            view = await request_and_follow(client, request, progress.heard)
        finally:
            looking.cancel()
    if view.cycle_id is None:
        raise NoSuchThing(view.message)
    node = (await _nodes(client, view.cycle_id))[0]
    name = node.metadata.get("strategy_name")
    return node, await strategy_named(client, str(name)) if name else None


async def _look(client: Client, progress: CycleProgress) -> None:
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
