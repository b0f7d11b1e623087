"""The halts that stand, as lines."""

from collections.abc import Sequence

from rich.text import Text

from contracts.halt import Halt
from libs.report.account import halted, remedy
from services.cli.shell.terminal import out


def show(halts: Sequence[Halt]) -> None:
    """Print the halts that stand, one a line, each with what ends it."""
    if not halts:
        out().print("no halt: buys are allowed", style="green")
    for halt in halts:
        out().print(Text(halted(halt), style="bold yellow"), soft_wrap=True)
        out().print(Text(f"  → {remedy(halt)}", style="dim"), soft_wrap=True)
