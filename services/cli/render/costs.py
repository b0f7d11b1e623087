"""The costs of a cycle, as facts or as a table by stage."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from libs.facts import amounts
from libs.report.costs import Costs, Stage
from libs.report.sections import text_of
from services.cli.render.tree import LOST, PAID, by_sort
from services.cli.shell.terminal import facts, table


def drawn(costs: Costs) -> RenderableType:
    """The facts, or where models were paid a line a stage."""
    if costs.facts:
        return facts([(fact.label, Text(text_of(fact.lines.items[0]))) for fact in costs.facts])
    return facts([("Cost", _by_stage(costs))])


def _by_stage(costs: Costs) -> RenderableType:
    # 80 columns hold it all but for lost replies: what stands last is cut, never the dollars.
    lost = bool(costs.total.usage.unsorted_tokens)
    heads = ("secs", "USD", "calls", *PAID, *([LOST] if lost else []))
    grid = table("stage", *((head, "right") for head in heads))
    for stage in costs.stages:
        grid.add_row(stage.name, *_figures(stage, lost=lost))
    total = (costs.total.name, *_figures(costs.total, lost=lost))
    grid.add_row(*(Text(cell, style="bold") for cell in total))
    return Group(grid, Text(f"and {costs.total.unpaid}"))


def _figures(stage: Stage, *, lost: bool) -> Sequence[str]:
    return (
        f"{stage.took_s:.2f}",
        amounts.paid(stage.usage.cost_usd),
        f"{stage.calls['model']:,}",
        *by_sort(stage.usage, lost=lost),
    )
