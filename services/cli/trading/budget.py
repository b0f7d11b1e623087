"""`deskbus budget`: today's remaining model budget, and what was spent."""

from collections.abc import Iterable

from contracts.subjects.upkeep import BUDGET
from contracts.upkeep import BudgetQuery, BudgetView
from libs.facts import amounts
from libs.report import costs
from services.cli.render.described import Shown, head, show
from services.cli.shell.list_options import filters
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import read

app = group()


@app.command()
@filters(BudgetQuery)
def budget(query: BudgetQuery, json: JsonOption = False) -> None:
    """Show today's budget for models: its limits, what is spent, reserved and left.

    A day is a UTC day. When nothing is left, requests that use paid models are refused until the
    next day. The rules provider costs nothing.
    """
    view = read(BUDGET, query)
    show([view], screen(view, several=query.days > 1), json=json)


def screen(view: BudgetView, *, several: bool) -> Iterable[Shown]:
    """The budget of today and, where asked for, what the last days used."""
    until = f"UTC; the next day begins {view.resets_at:%Y-%m-%d %H:%M}"
    yield head(f"budget of {amounts.session(view.today)}", until)
    yield costs.budget(view)
    if several:
        yield costs.by_day(view)
