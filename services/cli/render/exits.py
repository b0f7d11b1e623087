"""Exit checks of each position, as a table."""

from rich.table import Table
from rich.text import Text

from libs.facts import amounts
from libs.report.exits import ExitRow
from libs.report.sections import Listed
from services.cli.shell.terminal import TONE_STYLES, rest, table

DETAIL_CHARS = 160


def drawn(rows: Listed[ExitRow]) -> Table:
    """One line a position: what its rules come to, what is to be sold, and the stop on the rest."""
    grid = table("position", "assessment", ("sell", "right"), ("then a stop at", "right"), "why")
    for row in rows.shown:
        quantity = row.check.quantity
        grid.add_row(
            Text(row.check.ticker, style="bold"),
            Text(row.assessment, style=TONE_STYLES[row.tone] if quantity is not None else ""),
            amounts.quantity(quantity) if quantity is not None else "",
            row.stop,
            Text(amounts.cut(row.why, DETAIL_CHARS), style="dim"),
        )
    for line in rest(rows):
        grid.add_row(Text(line, style="dim"))
    return grid
