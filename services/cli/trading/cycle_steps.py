"""A cycle with its steps; of a strategy cycle also its gates, its verdict and its file."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from contracts.cycle import STRATEGY
from contracts.cycle_query import CycleView
from libs.bus.client import Client
from libs.facts import amounts
from libs.report import operations
from libs.report.tones import MARKS
from services.cli.render.described import described
from services.cli.shell.request import CycleTree, with_nodes
from services.cli.shell.terminal import STATUS_STYLES, err, out, write

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


def tell(steps: CycleSteps) -> None:
    """Print how the cycle ended or where it is, and a line for each step."""
    view, nodes = steps.tree.view, steps.tree.nodes
    if view.kind == STRATEGY and nodes:
        from services.cli.render import strategy_story  # noqa: PLC0415 - other kinds need none

        strategy_story.tell(nodes[0], steps.strategy, out())
    else:
        status = str(view.status)
        took = amounts.between(view.accepted_at, view.ended_at)
        head = f"{MARKS[status]} {view.kind} cycle {amounts.short(view.cycle_id)} {status}"
        out().print(Text(f"{head} in {took}" if took else head, STATUS_STYLES[status]))
        if view.outcome:
            out().print(Text(amounts.plain(view.outcome)))
    out().print()
    steps_shown = operations.tree([n for n in nodes if n.type not in operations.CALLS])
    write(described(steps_shown, out()), out())
    err().print("deskbus operations show ID shows a step with its calls", style="dim")
