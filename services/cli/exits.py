"""What an exit cycle found of each position."""

from rich.table import Table
from rich.text import Text

from contracts.exit_signal import ExitCheck, ExitReport
from libs.facts import amounts
from services.cli.terminal import table

LISTED_MAX = 25
"""Positions shown, those to be sold first."""
DETAIL_CHARS = 160


def checked(report: ExitReport) -> Table:
    """One line a position: what its rules come to, what is to be sold, and the stop on the rest."""
    made = table("position", "assessment", ("sell", "right"), ("then a stop at", "right"), "")
    ordered = sorted(report.checks, key=lambda each: (each.quantity is None, each.ticker))
    for each in ordered[:LISTED_MAX]:
        _add(made, each)
    more = len(ordered) - LISTED_MAX
    if more > 0:
        made.add_row(Text(f"and {more} more: --stage check_exits", style="dim"))
    return made


def _add(made: Table, check: ExitCheck) -> None:
    sells = check.quantity is not None
    stop = check.stop_price
    made.add_row(
        Text(check.ticker, style="bold"),
        Text(check.assessment or "not checked", style="bold red" if sells else ""),
        amounts.quantity(check.quantity) if check.quantity is not None else "",
        amounts.money(stop.amount, stop.currency) if stop else "",
        Text(amounts.cut(_why(check), DETAIL_CHARS), style="dim"),
    )


def _why(check: ExitCheck) -> str:
    if check.failure is not None:
        return check.failure.message
    told = [each.detail for each in check.signals if each.triggered or each.failed]
    return "; ".join([*told, *([check.note] if check.note else [])])


def in_short(report: ExitReport) -> str:
    """Why nothing was ordered."""
    wanted = sum(each.quantity is not None for each in report.checks)
    if wanted:
        return f"nothing ordered: the rules left nothing of {amounts.count(wanted, 'exit')}"
    held = amounts.count(len(report.checks), "position")
    return f"nothing ordered: none of {held} is to be sold"
