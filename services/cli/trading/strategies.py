"""`deskbus strategies`: what was tried, how it did, and how strategies differ."""

from collections.abc import Sequence
from typing import Annotated

import typer

from contracts.strategy_query import (
    NAMES_MAX,
    StrategiesQuery,
    StrategyView,
)
from contracts.subjects.strategies import STRATEGIES
from libs.bus.client import Client
from libs.report.strategies import tables
from libs.runtime.nearest import did_you_mean
from services.cli.render import strategy_story
from services.cli.render.described import show as show_answer
from services.cli.shell.invalid import typed
from services.cli.shell.list_options import filters, tell_limit
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import UNREADABLE, CliProblem, NoSuchThing, WrongUsage
from services.cli.shell.running import read
from services.cli.shell.terminal import aside

app = group()


@app.command("list")
@filters(StrategiesQuery, "names")
def list_(query: StrategiesQuery, json: JsonOption = False) -> None:
    """List the newest strategies with their results."""
    page = read(STRATEGIES, query)
    for name in page.unreadable:
        aside(f"strategy {name}: {UNREADABLE}", "yellow")
    show_answer(page.strategies, [tables.listed(page.strategies)], json=json)
    if page.more:
        tell_limit(len(page.strategies))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The strategy's name.")], json: JsonOption = False
) -> None:
    """Show one strategy: its design, gates, backtest and assessment."""
    views = _named([name])
    show_answer(views, strategy_story.screen(views[0]), json=json)


@app.command()
def compare(
    names: Annotated[list[str], typer.Argument(help=f"Two to {NAMES_MAX} names.")],
    json: JsonOption = False,
) -> None:
    """Compare the numbers of several strategies."""
    if len({*names}) < 2:
        raise WrongUsage("compare needs at least two different names", "deskbus strategies list")
    views = _named(names)
    show_answer(views, [tables.compared(views)], json=json)


async def strategy_named(client: Client, name: str) -> StrategyView | None:
    """The newest run of a strategy."""
    page = await client.ask(STRATEGIES, StrategiesQuery(names=(name,)))
    return page.strategies[0] if page.strategies else None


def _named(names: Sequence[str]) -> Sequence[StrategyView]:
    """All of these. Raises `CliProblem` (not found) with the names that come near."""
    page = read(STRATEGIES, typed("strategies", StrategiesQuery, names=tuple(names)))
    for unknown in page.unknown:
        near = " or ".join(unknown.near) or None
        raise NoSuchThing(
            f"unknown strategy {unknown.name!r}{did_you_mean(near)}", "deskbus strategies list"
        )
    if page.more:
        raise CliProblem("they do not fit into one answer", "name fewer strategies")
    return page.strategies
