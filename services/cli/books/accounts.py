"""`deskbus accounts`: every account, and how it stands."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.text import Text

from contracts.message import MAIN_ACCOUNT
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.subjects.accounts import PERFORMANCE
from libs.bus.client import Client
from libs.facts import amounts
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, err, out, table, write

THROW_AWAY = "run-"
"""The beginning of the names that `deskbus run` opens for a single decision."""

app = group()


class AccountRow(BaseModel):
    """One account in a line."""

    account: str
    currency: str | None
    equity: Decimal
    gain: Decimal
    return_pct: Decimal | None
    benchmark_pct: Decimal | None
    max_drawdown_pct: Decimal | None
    open_positions: int
    clock: str | None


@app.command()
def accounts(
    everything: Annotated[
        bool, typer.Option("--all", help="Also the accounts that `deskbus run` opened.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the accounts: equity, P&L, return beside the benchmark, drawdown and open positions.

    Money and returns are those of the newest close, `as of`; open positions count a fill at the
    open after it too, as `deskbus portfolio` does.
    """
    settings = load_settings()

    async def work() -> tuple[Sequence[AccountRow], int]:
        async with reading_client(settings) as client:
            names = await _names(client)
            shown = [name for name in names if everything or not name.startswith(THROW_AWAY)]
            rows = [await _row(client, name) for name in shown]
            return rows, len(names) - len(shown)

    rows, hidden = asking(work())
    if json:
        emit(rows)
        return
    if rows:
        _tell(rows)
    else:
        err().print("no accounts yet: a cycle opens the account that it trades", style="dim")
    if hidden:
        count = amounts.count(hidden, "account")
        err().print(f"{count} of single runs not shown: deskbus accounts --all", style="dim")


async def _names(client: Client) -> Sequence[str]:
    query = PerformanceQuery(account=MAIN_ACCOUNT, trips=0, points=2)
    return (await client.ask(PERFORMANCE, query)).accounts


async def _row(client: Client, name: str) -> AccountRow:
    query = PerformanceQuery(account=name, trips=0, points=2)
    view: PerformanceView = await client.ask(PERFORMANCE, query)
    own, beside = view.account, view.compared
    return AccountRow(
        account=name,
        currency=view.currency,
        equity=view.equity,
        gain=view.equity - view.paid_in,
        return_pct=None if own is None else own.return_pct,
        benchmark_pct=None if beside is None else beside.return_pct,
        max_drawdown_pct=None if own is None else own.max_drawdown_pct,
        open_positions=view.trades.open,
        clock=None if view.last is None else str(view.last),
    )


def _tell(rows: Sequence[AccountRow]) -> None:
    grid = table(
        *("account", ("equity", "right"), ("P&L", "right"), ("return", "right")),
        *(("benchmark", "right"), ("drawdown", "right"), ("open", "right"), "as of"),
        spare=("as of", "benchmark"),
    )
    for row in rows:
        cells = [
            Text(row.account, "bold"),
            Text(amounts.money(row.equity, row.currency or "")),
            _toned(amounts.change(row.gain), row.gain),
            _gain(row.return_pct),
            _gain(row.benchmark_pct, plain=True),
            Text(_percent(row.max_drawdown_pct)),
            Text(str(row.open_positions)),
            Text(row.clock or amounts.UNKNOWN, "dim"),
        ]
        grid.add_row(*cells)
    write(grid, out())


def _gain(pct: Decimal | None, *, plain: bool = False) -> Text:
    if pct is None:
        return Text(amounts.UNKNOWN, "dim")
    text = amounts.gain_percent(pct)
    return Text(text) if plain else _toned(text, pct)


def _percent(pct: Decimal | None) -> str:
    return amounts.UNKNOWN if pct is None else amounts.percent(pct)


def _toned(text: str, amount: Decimal) -> Text:
    return Text(text, "green" if amount > 0 else "red" if amount < 0 else "dim")
