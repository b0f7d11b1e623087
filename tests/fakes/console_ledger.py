"""A ledger made by execution's own books and snapshots, read back through the console's store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from contracts.account import Side
from contracts.types import ExchangeRate
from libs.broker.broker import Filled
from libs.quant import ticks
from libs.quant.exchange import PriceMark, price_in
from libs.quant.sizing import trade_value
from services.console.store import sql
from services.execution import books as ledger
from services.execution.books import Book, Books, EntryKind, LedgerEntry
from services.execution.snapshots import Snapshot, Valued, known_from, snapshots

D = Decimal
NAME, CURRENCY, ABROAD = "main", "USD", "EUR"
FIRST = date(2012, 6, 4)
"""A Monday; the two weeks from here on have no holiday."""
CYCLE = UUID(int=7)


def session(number: int) -> date:
    return FIRST + timedelta(number + 2 * (number // 5))


@dataclass
class Ledger:
    """An account as execution keeps it, and the rows that the console reads of it."""

    cash: Decimal
    foreign: frozenset[str] = frozenset()
    books: Books = field(default_factory=lambda: Books(CURRENCY))
    entries: list[tuple[LedgerEntry, dict[str, Any]]] = field(default_factory=list)
    taken: list[Snapshot] = field(default_factory=list)
    rates: dict[date, ExchangeRate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.post(ledger.opening(self.cash, FIRST))

    @property
    def clock(self) -> date:
        return self.taken[-1].session if self.taken else FIRST

    def held(self, ticker: str) -> Decimal:
        return self.books.quantity(ticker)

    def rate(self, ticker: str, day: date, rate: Decimal) -> ExchangeRate | None:
        if ticker not in self.foreign:
            return None
        return ExchangeRate(currency=ABROAD, into=CURRENCY, rate=rate, on=day)

    def post(self, entry: LedgerEntry, **order: Any) -> None:
        self.books = self.books.posted(entry)
        self.entries.append((entry, order))

    def bring_in(self, ticker: str, shares: Decimal, cost: Decimal, rate: Decimal) -> None:
        day = FIRST - timedelta(30)
        known = self.rate(ticker, day, rate)
        paid = ticks.priced(cost, known.currency if known else CURRENCY)
        self.post(ledger.brought_in(ticker, shares, paid, day, known))

    def fill(
        self, side: Side, ticker: str, shares: Decimal, price: Decimal, day: date, rate: Decimal
    ) -> None:
        order = UUID(int=1_000 + len(self.entries))
        filled = Filled(price, shares, D("1.07"), day, rate=self.rate(ticker, day, rate))
        entry = ledger.filled(order, ticker, side, filled, self.books)
        self.post(entry, order_id=order, side=side.value, filled=filled)

    def split(self, ticker: str, ratio: Decimal, price: Decimal, day: date, rate: Decimal) -> None:
        known = self.rate(ticker, day, rate)
        self.post(ledger.split(ticker, day, ratio, price, self.books, known))

    def pay_dividend(self, ticker: str, each: Decimal, day: date, rate: Decimal) -> None:
        self.post(ledger.dividend(ticker, day, each, self.books, self.rate(ticker, day, rate)))

    def move_cash(self, amount: Decimal, day: date) -> None:
        self.post(ledger.cash_moved(amount, day, f"cash/{len(self.entries)}"))

    def close(self, day: date, prices: Mapping[str, Decimal], rate: Decimal) -> None:
        marks: dict[tuple[str, date], PriceMark | None] = {}
        for ticker, price in prices.items():
            known = self.rate(ticker, day, rate)
            traded_in = ABROAD if known else CURRENCY
            marks[ticker, day] = PriceMark(price, traded_in, price_in(price, known), known)
        before = self.taken[-1] if self.taken else None
        known_before = known_from(before.closes, before.session) if before else {}
        self.taken += snapshots(self.books, [day], marks, known_before, CURRENCY)

    # --- the console's store: the same rows as its queries give -------------------------------

    async def accounts(self) -> Sequence[str]:
        return [NAME]

    async def account(self, account: str) -> dict[str, Any] | None:
        newest = max(entry.session for entry, _ in self.entries)
        return {
            "account": account,
            "currency": CURRENCY,
            "clock": self.clock,
            "starting_cash": self.cash,
            "limits": "{}",
            "as_of": max(self.clock, newest),
            "closes": _closes(self.taken[-1]),
            "venue": None,
        }

    async def snapshots(self, accounts: Sequence[str]) -> Sequence[dict[str, Any]]:
        (account,) = accounts
        rows = [
            {"account": account, **_row(taken)} for taken in self.taken if taken.worth is not None
        ]
        rows[-1]["closes"] = _closes(self.taken[-1])
        rows[-1]["paid_in_now"] = self.books.paid_in
        return rows

    async def closes_of(self, account: str, day: date) -> str:
        del account
        return next(_closes(taken) for taken in self.taken if taken.session == day)

    async def moves(self, accounts: Sequence[str], limit: int) -> Sequence[dict[str, Any]]:
        (account,) = accounts
        ordered = sorted(self.entries, key=lambda each: each[0].session)
        moves = [_move(*each) for each in ordered if each[0].ticker is not None]
        return [{"account": account, **move} for move in moves[:limit]]

    async def balances(self, account: str) -> Sequence[dict[str, Any]]:
        del account
        plain = [
            {"book": book, "ticker": "", "amount": amount, "quantity": D(0), "opened_on": None}
            for book, amount in self.books.sums.items()
            if book is not Book.POSITION
        ]
        return [*plain, *(_holding(t, lot) for t, lot in self.books.holdings.items())]

    async def day_held(self, account: str, day: date, limit: int) -> Sequence[dict[str, Any]]:
        del account
        held = self.books.as_of(day).holdings
        return [
            {"ticker": ticker, "quantity": lot.quantity, "amount": lot.cost}
            for ticker, lot in sorted(held.items())
            if lot.quantity > 0
        ][:limit]

    async def held_facts(self, tickers: Sequence[str]) -> Mapping[str, dict[str, Any]]:
        facts: dict[str, dict[str, Any]] = {}
        for entry, order in self.entries:
            if order and entry.ticker in tickers:
                filled = order["filled"]
                rate = filled.rate
                facts[str(entry.ticker)] = {
                    "ticker": entry.ticker,
                    "sector": "technology",
                    "session": entry.session,
                    "price": price_in(filled.price, rate),
                    "currency": rate.currency if rate else None,
                    "foreign_price": filled.price if rate else None,
                    "rate": rate.rate if rate else None,
                    "rate_on": rate.on if rate else None,
                }
        return facts

    async def newest_entries(
        self, accounts: Sequence[str]
    ) -> Mapping[str, tuple[int, date | None]]:
        return {name: (len(self.entries), self.clock) for name in accounts}

    async def day_snapshots(self, account: str, day: date) -> Sequence[dict[str, Any]]:
        del account
        rows = [
            {**_row(it), "closes": _closes(it), "stops": "[]", "unpriced": list(it.unpriced)}
            for it in self.taken
            if it.session <= day
        ]
        return rows[::-1][:2]

    async def equity_of(
        self, accounts: Sequence[str], first: date, last: date
    ) -> Sequence[dict[str, Any]]:
        return [
            {"account": NAME, "currency": CURRENCY, **_row(taken)}
            for taken in self.taken
            if NAME in accounts and first <= taken.session <= last
        ]

    async def nothing(self, *_: object) -> Sequence[Any]:
        return ()


class Reading:
    """The ledger as a `Store`: what a view asks beyond the ledger is empty."""

    def __init__(self, of: Ledger) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name, self._of.nothing)

    async def rows(self, statement: str, *values: Any) -> Sequence[dict[str, Any]]:
        return await self._of.equity_of(*values) if statement == sql.equity_of_accounts else ()

    async def held(self, account: str, tickers: Sequence[str]) -> Mapping[str, dict[str, Any]]:
        del account
        return await self._of.held_facts(tickers)

    async def sectors_brought_in(self, account: str, tickers: Sequence[str]) -> Mapping[str, str]:
        return {}

    async def plans(self, account: str, tickers: Sequence[str]) -> Mapping[str, Any]:
        del account, tickers
        return {}

    async def last_order(self, account: str) -> Mapping[str, Any]:
        del account
        return {}

    async def contracts(self, op_ids: Sequence[UUID]) -> Mapping[UUID, bytes]:
        del op_ids
        return {}


def _row(taken: Snapshot) -> dict[str, Any]:
    worth = taken.worth
    assert worth is not None
    six = D("0.000001")  # as the table keeps them
    return {
        "session": taken.session,
        "cash": taken.cash,
        "positions": worth.value.quantize(six),
        "equity": taken.cash + worth.value.quantize(six),
        "paid_in": taken.paid_in,
        "realised": taken.realised,
        "unrealised": worth.gain.quantize(six),
        "dividends": taken.dividends,
        "fees": taken.fees,
    }


def _closes(taken: Snapshot) -> str:
    return orjson.dumps([_close(ticker, it) for ticker, it in taken.closes.items()]).decode()


def _close(ticker: str, valued: Valued) -> dict[str, Any]:
    mark, rate = valued.mark, valued.mark.rate
    return {
        "ticker": ticker,
        "price": str(mark.price),
        "currency": mark.currency,
        "amount": str(mark.amount),
        "rate": str(rate.rate) if rate else None,
        "rate_on": rate.on.isoformat() if rate else None,
        "priced_on": valued.priced_on.isoformat() if valued.priced_on else None,
    }


def _move(entry: LedgerEntry, order: Mapping[str, Any]) -> dict[str, Any]:
    def of(book: Book) -> Decimal:
        return sum((line.amount for line in entry.lines if line.book is book), D(0))

    filled = order.get("filled")
    traded = trade_value(price_in(filled.price, filled.rate), filled.quantity) if filled else D(0)
    return {
        "session": entry.session,
        "ticker": entry.ticker,
        "is_split": entry.kind is EntryKind.SPLIT,
        "quantity": sum((line.quantity for line in entry.lines), D(0)),
        "cost": of(Book.POSITION),
        "realised": -of(Book.REALISED),
        "dividends": -of(Book.DIVIDENDS),
        "fees": of(Book.FEES),
        "traded": traded,
        "order_id": order.get("order_id"),
        "cycle_id": CYCLE if order else None,
        "pipeline": "rules" if order else None,
        "side": order.get("side"),
        "type": "market",
        "exit": order.get("side") == Side.SELL.value,
        "exit_rules": ["momentum"],
    }


def _holding(ticker: str, lot: ledger.Holding) -> dict[str, Any]:
    return {
        "book": "position",
        "ticker": ticker,
        "amount": lot.cost,
        "quantity": lot.quantity,
        "opened_on": lot.opened_on,
    }
