"""Whether holdings can be opened as their owner states them, and the entries that open them. Pure.

Nothing is guessed: what is missing or wrong is a finding, and while there is one nothing is opened.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import orjson

from contracts.capital import (
    CASH_MAX,
    HeldLine,
    HoldingsImport,
    ImportFinding,
    ImportHoldings,
    OpeningPosition,
)
from contracts.types import ExchangeRate, Money
from libs.facts import amounts
from libs.quant import ticks
from libs.quant.exchange import PriceMark, cents_in, no_rate
from libs.quant.sizing import CENT, trade_value
from services.execution import books
from services.execution.books import LedgerEntry

EQUITY_MAX = 10 * CASH_MAX


@dataclass(frozen=True, slots=True)
class HoldingQuote:
    """The market source's data of one line: its close at as_of, and the rate on the day that it was
    opened on where it trades in another currency than the account's.
    """

    mark: PriceMark
    rate: ExchangeRate | None = None


def import_hash(request: ImportHoldings, as_of: date, currency: str) -> str:
    """The hash that a confirmation is bound to: account, session, cash and every position; not the
    file's name, and not the order of its lines.
    """
    terms = {
        "account": request.account,
        "as_of": as_of,
        "currency": currency,
        "cash": f"{request.cash.normalize():f}",
        "holdings": sorted(
            [
                holding.ticker,
                f"{holding.quantity.normalize():f}",
                f"{holding.cost.normalize():f}",
                holding.opened_on.isoformat(),
                holding.currency or "",
            ]
            for holding in request.holdings
        ),
    }
    return hashlib.sha256(orjson.dumps(terms)).hexdigest()


def import_key(digest: str) -> str:
    """The key of the entry of cash with which holdings are opened."""
    return f"import/{digest}"


def told_twice(lines: Sequence[HeldLine]) -> Sequence[ImportFinding]:
    """A ticker on two lines: which one is meant, or both together, only the owner knows."""
    times = Counter(row.ticker for row in lines)
    return [
        ImportFinding(
            line=row.line,
            field="ticker",
            message=f"{row.ticker} stands on {times[row.ticker]} lines; write one line per "
            "position: all its shares, at their average cost",
        )
        for row in lines
        if times[row.ticker] > 1
    ]


def of_the_line(line: HeldLine, as_of: date) -> Sequence[ImportFinding]:
    """The problems of a line by itself."""
    findings = []
    if line.opened_on > as_of:
        findings.append(
            _of(
                line,
                "opened_on",
                f"{line.opened_on} is after {as_of}, the session at which the account opens",
            )
        )
    return findings


def of_the_market(
    line: HeldLine, known: HoldingQuote, account_currency: str
) -> Sequence[ImportFinding]:
    """The problems of a line beside the market source's data."""
    traded = known.mark.currency
    if line.currency not in {None, traded}:
        return [
            _of(
                line,
                "currency",
                f"{line.ticker} trades in {traded}, its cost is in {line.currency}: state the cost"
                f" in {traded}",
            )
        ]
    if traded == account_currency:
        return []
    for rate, on in ((known.rate, line.opened_on), (known.mark.rate, None)):
        if rate is None:
            when = f"on {on}" if on else "at the session that the account opens at"
            return [
                _of(
                    line,
                    "currency",
                    f"{line.ticker} trades in {traded}: {no_rate(traded, account_currency)} {when};"
                    " add it to the market source (fx.csv of a replay directory)",
                )
            ]
    return []


def position(line: HeldLine, known: HoldingQuote) -> OpeningPosition:
    """The line as it would stand in the account. Its mark has an amount."""
    paid, worth = trade_value(line.cost, line.quantity), known.mark.amount or Decimal(0)
    traded = known.mark.currency
    return OpeningPosition(
        ticker=line.ticker,
        quantity=line.quantity,
        cost=Money(amount=line.cost, currency=traded),
        opened_on=line.opened_on,
        price=Money(amount=known.mark.price, currency=traded),
        cost_value=cents_in(paid, known.rate),
        value=(worth * line.quantity).quantize(CENT),
    )


def of_the_whole(cash: Money, positions: Sequence[OpeningPosition]) -> Sequence[ImportFinding]:
    """An account larger than the books have places for."""
    most = cash.amount + max(
        sum((position.value for position in positions), Decimal(0)),
        sum((position.cost_value for position in positions), Decimal(0)),
    )
    if most <= EQUITY_MAX:
        return []
    worth = amounts.money(ticks.priced(most, cash.currency))
    message = f"the account would come to {worth}; at most {EQUITY_MAX:,} can be kept"
    return [ImportFinding(message=message)]


def entries(
    shown: HoldingsImport,
    rates: Mapping[str, ExchangeRate | None],
    sectors: Mapping[str, str],
) -> Sequence[LedgerEntry]:
    """Cash and every position against the owner's capital, by ticker; `rates` are those of the day
    that each was opened on, `sectors` what the market source has at as_of."""
    return (
        books.opening(shown.cash.amount, shown.as_of, import_key(shown.hash)),
        *(
            books.brought_in(
                it.ticker,
                it.quantity,
                it.cost,
                it.opened_on,
                rates[it.ticker],
                sectors.get(it.ticker),
            )
            for it in shown.positions
        ),
    )


def _of(line: HeldLine, field: str, message: str) -> ImportFinding:
    return ImportFinding(line=line.line, field=field, message=message)
