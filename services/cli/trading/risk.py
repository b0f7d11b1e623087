"""`deskbus risk`: an account against its limits."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

import typer

from contracts.risk_use import RiskQuery, RiskView
from contracts.subjects.accounts import RISK
from libs.facts import amounts
from libs.report import risk_use
from libs.runtime.nearest import UnknownAccount
from services.cli.render.described import Shown, head, show
from services.cli.shell.invalid import typed
from services.cli.shell.options import AccountArgument, JsonOption, group
from services.cli.shell.running import read

app = group()


@app.command()
def risk(
    account: AccountArgument = "main",
    days: Annotated[
        int, typer.Option(min=1, max=366, help="Count what was cut in so many days.")
    ] = 30,
    json: JsonOption = False,
) -> None:
    """Show how much of each limit an account uses, what was cut, and the setting to change.

    Usage is from the books at the account's newest close, with open buys. Measures that need a year
    of prices come from the newest decision.
    """
    view = read(RISK, typed("account", RiskQuery, account=account, days=days))
    if not view.found:
        raise UnknownAccount(account, view.accounts)
    show([view], screen(view, account), json=json)


def screen(view: RiskView, account: str) -> Iterable[Shown]:
    """The limits, and the rules that cut."""
    at = "" if view.as_of is None else f"as of {amounts.session(view.as_of)}"
    yield head(f"risk of {account}", at)
    yield from risk_use.heading(view)
    yield risk_use.table(view, account)
    since = "" if view.since is None else f" since {amounts.session(view.since)}"
    yield replace(risk_use.cuts(view), title=f"What the rules cut{since}")
