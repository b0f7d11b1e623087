"""`deskbus strategies`: what was tried, how it did, and how strategies differ."""

from collections.abc import Callable, Sequence
from datetime import UTC
from decimal import Decimal
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from contracts.message import PAGE_MAX
from contracts.strategy_query import (
    NAMES_MAX,
    StrategiesPage,
    StrategiesQuery,
    StrategyView,
)
from contracts.subjects.strategies import STRATEGIES
from libs.bus.client import Client
from libs.facts import amounts
from libs.runtime.nearest import did_you_mean
from services.cli.render import chart, strategy_story
from services.cli.shell.invalid import invalid
from services.cli.shell.list_options import tell_limit
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import UNREADABLE, ExitCode, Problem
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, err, out, table, write
from services.cli.shell.typed import meant

CURVE_WIDTH = 12
ID_DIGITS = 8
NAME_CHARS_MAX = 28
NONE = "-"
PART, GAIN, RATIO, COUNT, LOSS = ".1%", "+.2%", ".2f", ",d", ".3f"
LISTED = (
    ("return", "total_return", GAIN),
    ("Sharpe", "sharpe_ratio", RATIO),
    ("drawdown", "max_drawdown", PART),
    ("trades", "total_trades", COUNT),
    ("buy-and-hold", "benchmark_return", GAIN),
    ("accuracy", "accuracy", PART),
    ("base rate", "base_rate", PART),
)
"""The figures of a list: head, field of the backtest or the training, and how it is written."""
SPARE = ("base rate", "accuracy", "buy-and-hold", "equity", "designed", "trades")
"""The columns of a list that a reader can do without, the first one first."""
DESIGN: Sequence[tuple[str, Callable[[StrategyView], str]]] = (
    ("ended", lambda view: strategy_story.end_of(view).plain),
    ("as of", lambda view: str(view.as_of)),
    ("model", strategy_story.model_of),
    ("features", lambda view: str(len(view.features))),
    ("horizon", lambda view: amounts.count(view.horizon_bars, "session")),
    ("trained from", lambda view: str(view.train.first)),
    ("held out from", lambda view: str(view.held_out.first)),
    ("held out to", lambda view: str(view.held_out.last)),
)
FIGURES = (
    ("out-of-sample accuracy", "accuracy", PART),
    ("base rate", "base_rate", PART),
    ("final loss", "final_loss", LOSS),
    ("return", "total_return", GAIN),
    ("buy-and-hold", "benchmark_return", GAIN),
    ("CAGR", "cagr", GAIN),
    ("Sharpe", "sharpe_ratio", RATIO),
    ("Sortino", "sortino_ratio", RATIO),
    ("deflated Sharpe", "deflated_sharpe", PART),
    ("max drawdown", "max_drawdown", PART),
    ("trades", "total_trades", COUNT),
    ("win rate", "win_rate", PART),
    ("turnover", "turnover", RATIO),
    ("exposure", "exposure", PART),
)
"""The rows of a comparison, as in LISTED."""

app = group()


@app.callback()
def strategies() -> None:
    """List, show and compare the strategies tried so far."""


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=PAGE_MAX, help="How many.")] = 20,
    json: JsonOption = False,
) -> None:
    """List the newest strategies, and how each ended."""
    page = _asked(StrategiesQuery(limit=limit))
    for name in page.unreadable:
        err().print(f"strategy {name}: {UNREADABLE}", style="yellow")
    if json:
        emit(page.strategies)
    elif page.strategies:
        _list(page.strategies, out())
    else:
        err().print("no strategy yet; start a cycle: deskbus agent trigger --wait", style="dim")
    if page.more:
        whole = "`deskbus export` writes the whole record"
        tell_limit(len(page.strategies), PAGE_MAX, whole)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The strategy's name.")], json: JsonOption = False
) -> None:
    """Show one strategy: its design, gates, backtest and assessment."""
    views = _named([name])
    if json:
        emit(views)
    else:
        strategy_story.show(views[0], out())


@app.command()
def compare(
    names: Annotated[list[str], typer.Argument(help=f"Two to {NAMES_MAX} names.")],
    json: JsonOption = False,
) -> None:
    """Compare strategies side by side, figure by figure."""
    if len({*names}) < 2:
        raise Problem(
            ExitCode.USAGE, "compare needs at least two different names", "deskbus strategies list"
        )
    views = _named(names)
    if json:
        emit(views)
    else:
        _compare(views, out())


async def strategy_named(client: Client, name: str) -> StrategyView | None:
    """The newest run of a strategy."""
    page = await client.ask(STRATEGIES, StrategiesQuery(names=(name,)))
    return page.strategies[0] if page.strategies else None


def _asked(query: StrategiesQuery) -> StrategiesPage:
    settings = load_settings()

    async def work() -> StrategiesPage:
        async with reading_client(settings) as client:
            return await client.ask(STRATEGIES, query)

    return asking(work())


def _named(names: Sequence[str]) -> Sequence[StrategyView]:
    """All of these. Raises `Problem` (not found) with the names that come near."""
    try:
        query = StrategiesQuery(names=tuple(names))
    except ValidationError as error:
        raise invalid("strategies", error) from None
    page = _asked(query)
    for unknown in page.unknown:
        near = " or ".join(unknown.near) or None
        raise Problem(
            ExitCode.NOT_FOUND,
            f"no strategy is named {unknown.name!r}{did_you_mean(near)}",
            meant(unknown.name, next(iter(unknown.near), None)) or "deskbus strategies list",
        )
    if page.more:
        raise Problem(ExitCode.FAILED, "they do not fit one answer", "name fewer at once")
    return page.strategies


def _list(views: Sequence[StrategyView], console: Console) -> None:
    """Names come again and again: the day and the cycle's first digits tell runs apart."""
    numbers = [(head, "right") for head, *_ in LISTED]
    grid = table("strategy", "designed", "cycle", "ended", *numbers, "equity", spare=SPARE)
    marks = chart.levels(console.encoding)
    for view in views:
        end = strategy_story.end_of(view)
        grid.add_row(
            Text(amounts.cut(view.name, NAME_CHARS_MAX), style="bold"),
            f"{view.designed_at.astimezone(UTC):%Y-%m-%d}",
            str(view.cycle_id)[:ID_DIGITS],
            Text(end.plain.removeprefix("stopped by the "), style=end.style),
            *(_figure(view, field, form) for _, field, form in LISTED),
            Text(_curve(view, marks), style="cyan", no_wrap=True),
        )
    write(grid, console)


def _compare(views: Sequence[StrategyView], console: Console) -> None:
    grid = table("", *((amounts.cut(view.name, NAME_CHARS_MAX), "right") for view in views))
    for label, of in (*DESIGN, *((label, _of(*figure)) for label, *figure in FIGURES)):
        grid.add_row(Text(label, style="cyan"), *(of(view) for view in views))
    marks = chart.levels(console.encoding)
    curves = [Text(_curve(view, marks), style="cyan", no_wrap=True) for view in views]
    grid.add_row(Text("equity", style="cyan"), *curves)
    write(grid, console)
    if len({(view.held_out.first, view.held_out.last) for view in views}) > 1:
        note = "their held-out periods differ, so their returns are hard to compare"
        console.print(Text(note, style="yellow"))


def _curve(view: StrategyView, marks: str) -> str:
    values = view.backtest.equity if view.backtest else ()
    return chart.sparkline([Decimal(str(value)) for value in values], CURVE_WIDTH, marks)


def _of(field: str, form: str) -> Callable[[StrategyView], str]:
    return lambda view: _figure(view, field, form)


def _figure(view: StrategyView, field: str, form: str) -> str:
    """A figure of the training or the backtest; a dash where there is none."""
    tested = next((part for part in (view.backtest, view.training) if hasattr(part, field)), None)
    value = getattr(tested, field, None)
    return NONE if value is None else format(value, form)
