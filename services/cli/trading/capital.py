"""`deskbus portfolio import`, `deposit` and `withdraw`: what an owner brings in and takes out.

Each is shown first, with a hash; the same command with that hash does it. An import can be answered
with yes too, in a terminal or by --yes.
"""

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Group
from rich.text import Text as Line

from contracts.capital import (
    CashMoved,
    HoldingsImport,
    ImportFinding,
    ImportHoldings,
    MoveCash,
)
from contracts.subjects.accounts import IMPORT_HOLDINGS, MOVE_CASH
from libs.facts import amounts
from libs.report import view
from libs.report.view import Table, Text
from services.cli.render.described import Shown, head, show
from services.cli.shell.confirming import HASH_CHARS_MAX, HashOption, tell_how, whole_hash
from services.cli.shell.invalid import amount_of, day_of, pairs_of, typed
from services.cli.shell.options import AccountOption, DateOrder, DecimalMark, JsonOption
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.questions import answer_to, is_confirmed, is_terminal
from services.cli.shell.running import ask
from services.cli.shell.terminal import aside, emit, err, facts, put, write

if TYPE_CHECKING:
    from services.cli.trading.holdings_file import HoldingsFile

ASK_TIMEOUT_S = 60.0
"""A live source may be asked for the prices of every holding."""
FINDINGS_SHOWN_MAX = 40

AmountArgument = Annotated[
    str, typer.Argument(help="Amount in the account's currency, e.g. 1000 or 250.50.")
]
COLUMNS = frozenset(
    {
        "ticker",
        "quantity",
        "cost",
        "basis",
        "opened_on",
        "currency",
        "value",
        "action",
        "time",
        "side",
    }
)
"""The desk's columns of a file of holdings or trades."""


class BrokerName(StrEnum):
    """Brokers whose exports are known."""

    IBKR = "ibkr"
    SCHWAB = "schwab"
    FIDELITY = "fidelity"
    ROBINHOOD = "robinhood"
    TRADING_212 = "trading212"
    DEGIRO = "degiro"


def add_to(app: typer.Typer) -> None:
    """The commands, in the group that shows accounts."""
    app.command("import")(import_file)
    app.command("deposit")(deposit)
    app.command("withdraw")(withdraw)


def import_file(
    file: Annotated[
        Path,
        typer.Argument(help="Your broker's export, or your own CSV file."),
    ],
    account: Annotated[str, typer.Option(help="Name of the new account.")] = "main",
    cash: Annotated[str | None, typer.Option(help="Its cash, in its currency; 0 for none.")] = None,
    as_of: Annotated[
        str | None,
        typer.Option(help="Session at which the account opens, YYYY-MM-DD; by default the newest."),
    ] = None,
    opened_on: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"], help="Purchase date of the holdings, if the file has none."
        ),
    ] = None,
    broker: Annotated[
        BrokerName | None,
        typer.Option("--from", help="The broker, if the headings do not show it."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Headings of the columns: ticker=Symbol,quantity=Units,cost=Avg."),
    ] = None,
    tickers: Annotated[
        list[str] | None,
        typer.Option(
            "--ticker", help="The desk's ticker of a share, e.g. SAP=SAP.DE; may be repeated."
        ),
    ] = None,
    dates: Annotated[
        DateOrder | None, typer.Option(help="How to read dates such as 03/04/2024.")
    ] = None,
    decimal: Annotated[
        DecimalMark | None, typer.Option(help="How to read numbers such as 3,812.")
    ] = None,
    shares_only: Annotated[
        bool, typer.Option("--shares-only", help="Leave out options, bonds and crypto.")
    ] = False,
    confirmed: HashOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Open it without asking.")] = False,
    json: JsonOption = False,
) -> None:
    """Open a new account with the holdings in a file: shows them first, then asks you.

    The file is an export of your broker (Interactive Brokers, Schwab, Fidelity, Robinhood, Trading
    212, Degiro), or a CSV file with the columns `ticker`, `quantity` (shares, adjusted for splits
    to today), `cost` (per share, before fees), `opened_on` (session of the first purchase) and
    optionally `currency`. A list of trades becomes positions at average cost. It guesses nothing:
    it asks for what is missing.
    """
    from services.cli.trading.holdings_file import Reading, read_holdings  # noqa: PLC0415 - polars

    reading = Reading(
        opened_on=opened_on.date() if opened_on else None,
        broker=broker.value if broker else None,
        columns=pairs_of("--columns ticker=Symbol", (columns or "").split(","), COLUMNS),
        tickers=pairs_of("--ticker SAP=SAP.DE", tickers or ()),
        month_first=None if dates is None else dates is DateOrder.MONTH_FIRST,
        decimal_comma=None if decimal is None else decimal is DecimalMark.COMMA,
        is_shares_only=shares_only,
        is_without_cash=cash is not None,
    )
    can_ask = is_terminal() and not json
    read = read_holdings(file, reading)
    if can_ask and any(it.field == "opened_on" and not it.line for it in read.findings):
        reading = replace(reading, opened_on=_day("when were they bought? YYYY-MM-DD"))
        read = read_holdings(file, reading)
    findings = [*read.findings]
    stated = None if read.cash is None else str(read.cash)
    if cash is None and stated is None and can_ask:
        cash = answer_to("how much cash does the account have? 0 for none")
    if cash is None and stated is None:
        findings = _asked_for_cash(findings)
    if read.cash is not None and read.cash < 0:
        text = f"the file's cash is {read.cash}, a debt, which the desk does not support"
        findings.append(ImportFinding(field="cash", message=f"{text}: leave it out with --cash 0"))
        stated = None
    if not read.lines:
        _refuse(findings, read, file)
    request = typed(
        "import",
        ImportHoldings,
        account=account,
        holdings=tuple(read.lines),
        cash=amount_of("--cash", cash or stated or "0"),
        as_of=day_of("--as-of", as_of),
    )
    shown = ask(IMPORT_HOLDINGS, request, timeout_s=ASK_TIMEOUT_S)
    findings += shown.findings
    if stated is not None and read.cash_currency not in {"", shown.cash.currency}:
        text = f"the file's cash is in {read.cash_currency}, the account in {shown.cash.currency}"
        findings.append(ImportFinding(field="cash", message=f"{text}: give it with --cash"))
    if not json and shown.positions:
        show((), _import_screen(shown, is_whole=not findings), json=False)
        _tell_unused(read)
    if not findings and (digest := _answer(shown, confirmed, is_yes=yes, can_ask=can_ask)):
        confirmed_request = request.model_copy(update={"confirmed": digest})
        shown = ask(IMPORT_HOLDINGS, confirmed_request, timeout_s=ASK_TIMEOUT_S)
    if json:
        emit([shown.model_copy(update={"findings": tuple(findings)})])
    if findings:
        _refuse(findings, read, file)
    if not json:
        _end(shown, account, as_of)


def _answer(
    shown: HoldingsImport, confirmed: str | None, *, is_yes: bool, can_ask: bool
) -> str | None:
    """The hash to confirm; None where it is not confirmed. Raises `CliProblem` for another hash."""
    if confirmed is not None:
        return whole_hash(confirmed, shown.hash)
    is_open = shown.opened or not (is_yes or (can_ask and is_confirmed("Open this account?")))
    return None if is_open else shown.hash


def _end(shown: HoldingsImport, account: str, as_of: str | None) -> None:
    """Say what was done, and the next command."""
    if not shown.opened:
        tell_how(shlex.join(["deskbus", *sys.argv[1:]]), shown.hash)
    elif shown.changed:
        put(f"account {account} is open")
        day = f" --as-of {shown.as_of}" if as_of else ""
        named = "" if account == "main" else f" --account {account}"
        aside(f"next: deskbus cycle request{named}{day} --wait")
    else:
        put(f"account {account} was opened with these holdings before; nothing changed")


def _day(question: str) -> date:
    while True:
        try:
            return date.fromisoformat(answer_to(question))
        except ValueError:
            aside("write YYYY-MM-DD")


def deposit(
    amount: AmountArgument,
    account: AccountOption = "main",
    confirmed: HashOption = None,
    json: JsonOption = False,
) -> None:
    """Deposit cash into an account: shows the result first; confirm with --hash.

    It counts from the account's next session on. It is not a gain: returns are time-weighted.
    """
    _move("deposit", amount, account, confirmed, json=json)


def withdraw(
    amount: AmountArgument,
    account: AccountOption = "main",
    confirmed: HashOption = None,
    json: JsonOption = False,
) -> None:
    """Withdraw free cash from an account: shows the result first; confirm with --hash.

    It counts from the account's next session on. It is not a loss: returns are time-weighted.
    """
    _move("withdrawal", amount, account, confirmed, json=json)


def _asked_for_cash(findings: Sequence[ImportFinding]) -> list[ImportFinding]:
    """The findings, with the question for the cash; one question where dates are asked for too."""
    if [finding.field for finding in findings] == ["opened_on"] and not findings[0].line:
        text = "the file has neither purchase dates nor cash; give both with "
        options = "--opened-on YYYY-MM-DD --cash 0"
        return [ImportFinding(field="opened_on", message=f"{text}{options}")]
    text = "how much cash does the account have? give it with --cash, 0 for none"
    return [*findings, ImportFinding(field="cash", message=text)]


def _move(
    kind: Literal["deposit", "withdrawal"],
    amount: str,
    account: str,
    confirmed: str | None,
    *,
    json: bool,
) -> None:
    request = typed(kind, MoveCash, account=account, kind=kind, amount=amount_of("AMOUNT", amount))
    whole = (confirmed or "").lower()
    if len(whole) < HASH_CHARS_MAX:
        shown = ask(MOVE_CASH, request, timeout_s=ASK_TIMEOUT_S)
        whole = whole_hash(whole, shown.hash) if confirmed is not None else ""
    # A whole hash is asked about as it is: what it has posted already is first as that.
    if whole:
        confirmed_request = request.model_copy(update={"confirmed": whole})
        shown = ask(MOVE_CASH, confirmed_request, timeout_s=ASK_TIMEOUT_S)
    if json:
        emit([shown])
        return
    put(_cash_line(shown))
    if not shown.posted:
        command = "deposit" if kind == "deposit" else "withdraw"
        tell_how(f"deskbus portfolio {command} {amount} --account {account}", shown.hash)
    elif not shown.changed:
        put("it was already posted; nothing changed")


def _refuse(findings: Sequence[ImportFinding], read: "HoldingsFile", file: Path) -> None:
    """Print every finding. Raises `CliProblem`."""
    first = sorted(findings, key=lambda item: item.line or 0)[:FINDINGS_SHOWN_MAX]
    rows = [(f"line {item.line}" if item.line else item.field, item.message) for item in first]
    write(Group(Line(), facts(rows)), err())
    if len(findings) > FINDINGS_SHOWN_MAX:
        aside(f"  and {len(findings) - FINDINGS_SHOWN_MAX} more")
    if not read.lines:
        _tell_unused(read)
    count = amounts.count(len(findings), "thing")
    hint = (
        f"correct {file}" if any(item.line for item in findings) else "answer what is asked above"
    )
    if any("is not in source" in item.message for item in findings):
        hint += "; if the desk's market data has a share under another name: --ticker SAP=SAP.DE"
    raise CliProblem(f"{count} to fix before the account can be opened", hint, ExitCode.REJECTED)


def _tell_unused(read: "HoldingsFile") -> None:
    """Say what was made of the file, and what of it is not used."""
    for note in read.notes:
        aside(f"- {note}", "yellow")
    if read.unused:
        aside(f"columns that are not used: {', '.join(read.unused)}")


def _import_screen(shown: HoldingsImport, *, is_whole: bool) -> Iterable[Shown]:
    """The account as it would be opened; of a file with findings the positions that can be read,
    without sums, which would not be the owner's."""
    what = "account" if shown.opened else "would open account"
    if not is_whole:
        what = "the readable part of account"
    yield head(f"{what} {shown.account}", f"as of {amounts.session(shown.as_of)}")
    yield _positions(shown)
    if is_whole:
        cash, equity = (amounts.money(it) for it in (shown.cash, shown.equity))
        yield Text(f"cash {cash}, equity {equity}", None)


def _positions(shown: HoldingsImport) -> Table:
    currency = shown.cash.currency
    return view.table(
        (
            "Position",
            "Shares",
            "Cost",
            "Since",
            "Price",
            f"Value {currency}",
            f"P&L {currency}",
        ),
        (
            (
                it.ticker,
                view.shares(it.quantity),
                view.price(it.cost),
                it.opened_on.isoformat(),
                view.price(it.price),
                view.money(it.value, currency),
                view.gain(it.value - it.cost_value, currency),
            )
            for it in shown.positions
        ),
        currency=currency,
    )


def _cash_line(shown: CashMoved) -> str:
    done, way = ("paid", "into") if shown.kind == "deposit" else ("taken", "out of")
    amount, before, after = map(amounts.money, (shown.amount, shown.free_before, shown.free_after))
    would = "" if shown.posted else "would be "
    is_past = shown.posted and not shown.changed
    free = f"free cash {after}" if is_past else f"free cash {before} before, {after} after"
    since = f"counts from {amounts.session(shown.session)} on"
    return f"{amount} {would}{done} {way} account {shown.account}; {since}; {free}"
