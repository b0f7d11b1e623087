"""A cycle with its steps; of a strategy cycle also its gates, its verdict and its file."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import typer

from contracts.cycle import STRATEGY, CycleStatus, RequestAnswer
from contracts.cycle_query import CycleView
from contracts.schedule import JobRun
from libs.bus.client import Client
from libs.facts import amounts
from libs.report import operations
from libs.report.tones import MARKS
from services.cli.render.described import described, write_screen
from services.cli.shell.request import ENDS, CycleTree, with_nodes
from services.cli.shell.terminal import STATUS_STYLES, aside, emit, out, put, write

if TYPE_CHECKING:
    from contracts.strategy_query import StrategyView


@dataclass(frozen=True)
class CycleSteps:
    """A cycle's tree, and the strategy that it designed last, if any."""

    tree: CycleTree
    strategy: "StrategyView | None"


async def steps_of(client: Client, view: CycleView) -> CycleSteps:
    """The cycle's steps. Raises QuestionRefused and DeskNotReachable."""
    tree = await with_nodes(client, view)
    name = tree.nodes[0].metadata.get("strategy_name") if tree.nodes else None
    if not name:
        return CycleSteps(tree, None)
    from services.cli.trading.strategies import strategy_named  # noqa: PLC0415 - others need none

    return CycleSteps(tree, await strategy_named(client, str(name)))


def tell_story(outcome: CycleTree, *, json: bool) -> None:
    """Print the cycle's story."""
    if json:
        emit([outcome.view])
    else:
        from services.cli.render import story  # noqa: PLC0415 - lists of cycles need none

        story.tell(outcome.view, out(), outcome.nodes)


def end(outcome: CycleTree, *, json: bool) -> NoReturn:
    """Print the story of a cycle that was waited for, and leave with the exit code it means."""
    tell_story(outcome, json=json)
    raise typer.Exit(ENDS[outcome.view.status or CycleStatus.RUNNING])


def tell_begun(answer: RequestAnswer | JobRun, command: str, *, json: bool) -> None:
    """Print the id of a cycle that nobody waits for, and the `command` that looks at it."""
    if json:
        emit([answer])
    else:
        put(str(answer.cycle_id))
        aside(f"{answer.status}: {command.format(answer.cycle_id)}")


def tell(steps: CycleSteps) -> None:
    """Print how the cycle ended or where it is, and a line for each step."""
    view, nodes = steps.tree.view, steps.tree.nodes
    if view.kind == STRATEGY and nodes:
        from services.cli.render import strategy_story  # noqa: PLC0415 - other kinds need none

        write_screen(strategy_story.ended(nodes[0], steps.strategy), out())
    else:
        status = str(view.status)
        took = amounts.between(view.accepted_at, view.ended_at)
        head = f"{MARKS[status]} {view.kind} cycle {amounts.short(view.cycle_id)} {status}"
        put(f"{head} in {took}" if took else head, STATUS_STYLES[status])
        if view.outcome:
            put(amounts.plain(view.outcome))
    put("")
    steps_shown = operations.tree([n for n in nodes if n.type not in operations.CALLS])
    write(described(steps_shown, out()), out())
    aside("deskbus operations show ID shows a step with its calls")
