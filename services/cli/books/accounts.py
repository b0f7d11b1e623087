"""`deskbus accounts`: every account, and how it stands."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

import typer
from pydantic import BaseModel

from contracts.message import MAIN_ACCOUNT
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.subjects.accounts import PERFORMANCE
from libs.bus.client import Client
from libs.facts import amounts
from libs.report import view
from libs.report.tones import Tone
from libs.report.view import Column, NoRows, Table
from services.cli.render.described import show
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import with_record
from services.cli.shell.terminal import aside

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
    fills_after: int = 0


@app.command()
def accounts(
    everything: Annotated[
        bool, typer.Option("--all", help="Include accounts opened by `deskbus run`.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List accounts: equity, P&L, return against the benchmark, drawdown and open positions.

    Numbers are as of each account's newest valued close, without later fills.
    """

    async def work(client: Client) -> tuple[Sequence[AccountRow], int]:
        names = await _names(client)
        shown = [name for name in names if everything or not name.startswith(THROW_AWAY)]
        rows = [await _row(client, name) for name in shown]
        return rows, len(names) - len(shown)

    rows, hidden = with_record(work)
    show(rows, [_table(rows)], json=json)
    if hidden and not json:
        count = amounts.count(hidden, "account")
        aside(f"{count} of single runs not shown: deskbus accounts --all")


async def _names(client: Client) -> Sequence[str]:
    query = PerformanceQuery(account=MAIN_ACCOUNT, trips=0, points=2)
    return (await client.ask(PERFORMANCE, query)).accounts


async def _row(client: Client, name: str) -> AccountRow:
    query = PerformanceQuery(account=name, trips=0, points=2)
    did: PerformanceView = await client.ask(PERFORMANCE, query)
    own, beside = did.account, did.compared
    return AccountRow(
        account=name,
        currency=did.currency,
        equity=did.equity,
        gain=did.equity - did.paid_in,
        return_pct=None if own is None else own.return_pct,
        benchmark_pct=None if beside is None else beside.return_pct,
        max_drawdown_pct=None if own is None else own.max_drawdown_pct,
        open_positions=did.trades.open,
        clock=None if did.last is None else str(did.last),
        fills_after=did.not_counted.fills,
    )


def _table(rows: Sequence[AccountRow]) -> Table:
    """An account a row, each as of its own newest close."""
    return Table(
        (
            Column("Account"),
            Column("Equity", right=True),
            Column("P&L", right=True),
            Column("Return", right=True),
            Column("Benchmark", right=True, spare=1),
            Column("Drawdown", right=True),
            Column("Open", right=True),
            Column("As of close", spare=3),
            Column("Later fills", right=True, spare=2),
        ),
        tuple(
            view.row(
                row.account,
                view.money(row.equity, row.currency or ""),
                view.gain(row.gain, ""),
                view.gain_percent(row.return_pct),
                view.gain_percent(row.benchmark_pct).toned(None),
                view.percent(row.max_drawdown_pct),
                view.count(row.open_positions),
                view.say(row.clock or amounts.UNKNOWN, Tone.QUIET),
                view.count(row.fills_after).toned(Tone.BUSY) if row.fills_after else view.BLANK,
            )
            for row in rows
        ),
        empty=NoRows("No accounts yet: a cycle opens the account that it trades."),
    )
