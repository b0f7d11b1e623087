"""How past decisions fared, as a table under their own story."""

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Group, RenderableType
from rich.text import Text

from contracts.memory import DecisionOutcome
from libs.facts import amounts
from libs.report import outcomes as past
from services.cli.shell.terminal import table


def drawn(outcomes: Sequence[DecisionOutcome]) -> RenderableType:
    """One line a pick and one for all candidates, one column an outcome; then what is missing."""
    columns = ((f"after {outcome.sessions}\n{outcome.session}", "right") for outcome in outcomes)
    grid = table("ticker", "outcome", "counted from", *columns)
    for row in past.rows(outcomes):
        cells = (
            _change(row.returns[outcome.sessions]) if outcome.sessions in row.returns else Text()
            for outcome in outcomes
        )
        grid.add_row(Text(row.name, "bold"), row.fate, row.counted_from, *cells)
    missing = list(past.missing(outcomes))
    return Group(grid, Text("\n".join(missing), style="dim")) if missing else grid


def _change(return_pct: Decimal | None) -> Text:
    """`+4.93%`; a dash where it is not known."""
    if return_pct is None:
        return Text(amounts.UNKNOWN, style="yellow")
    return Text(amounts.gain_percent(return_pct), style="green" if return_pct >= 0 else "red")
