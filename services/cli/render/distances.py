"""How far each position is from being sold, as a table."""

from rich.console import Console
from rich.text import Text

from contracts.exit_signal import ExitDistances, ExitTrigger, PositionExits
from libs.facts import amounts
from services.cli.shell.terminal import one_line, table, write

STYLES = {"STRONG": "bold red", "EXIT": "red", "ERROR": "red", "MONITOR": "yellow"}
"""By the assessment's first word."""


def show(view: ExitDistances, console: Console) -> None:
    """Print every position with its triggers, the nearest first."""
    console.print(
        Text.assemble(
            (f"exit signals of {view.account}", "bold"),
            (f"  as of {amounts.session(view.as_of)}", "dim"),
        )
    )
    console.print()
    if not view.positions:
        console.print(Text("no open positions", style="dim"))
        return
    grid = table(
        *("position", ("shares", "right"), ("price", "right"), "assessment"),
        *("trigger", ("left", "right"), ("at", "right"), "note"),
    )
    for position in view.positions:
        head = _head(position)
        for trigger in position.triggers:
            grid.add_row(*head, *_way(trigger))
            head = _nothing()
        if not position.triggers:
            grid.add_row(*head, Text(), Text(), Text(), one_line(_why(position), "red"))
    write(grid, console)
    console.print()
    for note in _notes(view):
        console.print(Text(amounts.plain(note), style="dim"))


def _head(position: PositionExits) -> tuple[Text, ...]:
    # The rules that made it follow in brackets, and stand on lines of their own here.
    assessment = "not checked" if position.failure else position.assessment.partition(" (")[0]
    style = "red" if position.failure else STYLES.get(assessment.split(" ")[0], "green")
    return (
        Text(position.ticker, style="bold"),
        Text(amounts.quantity(position.quantity)),
        Text(amounts.price(position.price)),
        Text(amounts.plain(assessment), style=style),
    )


def _nothing() -> tuple[Text, ...]:
    return (Text(), Text(), Text(), Text())


def _way(trigger: ExitTrigger) -> tuple[Text, ...]:
    at = amounts.price(trigger.at) if trigger.at else ""
    known = trigger.distance is not None
    words = [] if trigger.primary else ["warning only"]
    words += [] if known and not trigger.triggered else [trigger.detail]
    return (
        Text(trigger.rule.replace("_", " ")),
        Text(_left(trigger), style="red" if trigger.triggered or not known else ""),
        Text(at),
        one_line(": ".join(filter(None, words)), "dim"),
    )


def _left(trigger: ExitTrigger) -> str:
    """The way that is left, in its unit."""
    if trigger.distance is None:
        return "unknown"
    if trigger.triggered:
        return "fired"
    if trigger.unit == "sessions":
        return amounts.count(int(trigger.distance), "session")
    way = amounts.percent(trigger.distance * 100)
    if trigger.unit == "return":
        return f"{way.removesuffix('%')} points of return"
    return f"{way} {'up' if trigger.rule == 'take_profit' else 'down'}"


def _why(position: PositionExits) -> str:
    return position.failure.message if position.failure else "no rule is set"


def _notes(view: ExitDistances) -> list[str]:
    notes = [f"prices: {view.market_source}"] if view.market_source else []
    if view.more:
        notes.append(f"only the {len(view.positions):,} largest positions are shown")
    held_back = [f"{held.ticker} is not sold: {held.note}" for held in view.positions if held.note]
    return [*held_back, *view.warnings, *notes]
