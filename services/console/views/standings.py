"""Accounts as they stand: their closes and ledgers as rows, given to the one computation of their
figures (libs/quant/standing.py)."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from contracts.account import OrderType, Side
from contracts.account_query import HeldAtClose, NotCounted
from contracts.types import ExchangeRate, Foreign, Money
from libs.postgres.pool import Record
from libs.quant.standing import AccountStanding, Close, standing
from libs.quant.trades import Closing, Move, PlacedOrder
from services.console.store import Store

MOVES_MAX = 50_000
"""Entries of a ledger that round trips are made of: twenty years of ten a day."""
ACCOUNTS_KEPT_MAX = 200
ACCOUNTS_AT_ONCE = 20
"""Accounts whose ledgers are in memory at once."""
BY_HAND = ("by_hand",)

# A ledger has many rows: their columns are those of the fields, read at once.
_close_columns = itemgetter(*(field.name for field in fields(Close)))
_MOVE_COLUMNS = [field.name for field in fields(Move) if field.name != "order"]


class KeptClose(NamedTuple):
    """A share's value at a close, in the account's currency; `priced_on` where it is older."""

    amount: Decimal
    foreign: Foreign | None
    priced_on: date | None


async def standing_of(account: str, store: Store) -> AccountStanding | None:
    """The account as of its newest valued close; None where it has none. A ledger of more than
    MOVES_MAX entries has no round trips."""
    return (await standings_of([account], store))[account]


async def standings_of(
    accounts: Sequence[str], store: Store
) -> Mapping[str, AccountStanding | None]:
    """The same of several accounts, ACCOUNTS_AT_ONCE in one question."""
    stands: dict[str, AccountStanding | None] = {}
    for first in range(0, len(accounts), ACCOUNTS_AT_ONCE):
        names = accounts[first : first + ACCOUNTS_AT_ONCE]
        closes = _by_account(await store.snapshots(names))
        moves = _by_account(await store.moves(list(closes), MOVES_MAX + 1)) if closes else {}
        stands |= {name: _standing(closes.get(name, []), moves.get(name, [])) for name in names}
    return stands


def _by_account(rows: Sequence[Record]) -> dict[str, list[Record]]:
    by_account: dict[str, list[Record]] = {}
    for row in rows:
        by_account.setdefault(row["account"], []).append(row)
    return by_account


def _standing(rows: Sequence[Record], moves: Sequence[Record]) -> AccountStanding | None:
    if not rows:
        return None
    return standing(
        [close_of(row) for row in rows],
        {kept["ticker"]: Decimal(kept["amount"]) for kept in orjson.loads(rows[-1]["closes"])},
        list(map(move_of, moves)) if len(moves) <= MOVES_MAX else None,
        rows[-1]["paid_in_now"],
    )


def close_of(row: Record) -> Close:
    """A snapshot that could be valued."""
    return Close(*_close_columns(row))


def not_counted(stands: AccountStanding) -> NotCounted:
    """The entries after the cut-off."""
    return NotCounted(fills=stands.after.fills, paid_in=stands.after.paid_in)


def kept_closes(kept: str | None, into: str) -> Mapping[str, KeptClose]:
    """The `closes` of a snapshot, by ticker; those that could not be exchanged are left out."""
    rows = orjson.loads(kept or "[]")
    return {row["ticker"]: _kept(row, into) for row in rows if row["amount"] is not None}


def _kept(fields: Mapping[str, Any], into: str) -> KeptClose:
    foreign = None
    if fields["rate"] is not None:
        currency = fields["currency"]
        rate = ExchangeRate(currency=currency, into=into, rate=fields["rate"], on=fields["rate_on"])
        foreign = Foreign(price=Money(amount=fields["price"], currency=currency), rate=rate)
    on = fields["priced_on"]
    return KeptClose(
        Decimal(fields["amount"]), foreign, None if on is None else date.fromisoformat(on)
    )


async def held_at(
    account: str, session: date, kept: Mapping[str, KeptClose], limit: int, store: Store
) -> tuple[HeldAtClose, ...]:
    """The positions at the close of a session, as its snapshot valued them."""
    rows = await store.day_held(account, session, limit)
    return tuple(_held(row, kept.get(row["ticker"])) for row in rows)


def _held(row: Record, close: KeptClose | None) -> HeldAtClose:
    held = HeldAtClose(ticker=row["ticker"], quantity=row["quantity"], cost=row["amount"])
    if close is None:
        return held
    value = row["quantity"] * close.amount
    return held.model_copy(
        update={
            "price": close.amount,
            "value": value,
            "gain": value - row["amount"],
            "priced_on": close.priced_on,
            "foreign": close.foreign,
        }
    )


class Closed(NamedTuple):
    """A round trip that has ended: the pipeline and the cycle that opened it, if any did, and its
    gain."""

    on: date
    pipeline: str | None
    gain: Decimal
    cycle_id: UUID | None = None


class Past(NamedTuple):
    """The closed round trips of an account, up to its newest valued close, and the sessions of its
    fills."""

    trips: Sequence[Closed] = ()
    fills: Sequence[date] = ()


class PastTrips:
    """Keeps the closed round trips of the accounts asked for last. Each ledger is read again only
    where it, or its closes, have grown."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[tuple[int, date | None], Past | None]] = OrderedDict()

    async def of(self, accounts: Sequence[str]) -> Mapping[str, Past | None]:
        """Those of each account; None where its ledger has more than MOVES_MAX entries."""
        newest = await self._store.newest_entries(accounts)
        past: dict[str, Past | None] = {}
        for account in accounts:
            state, kept = newest.get(account, (0, None)), self._kept.get(account)
            if kept is None or kept[0] != state:
                kept = state, await self._read(account)
            self._kept[account] = kept
            self._kept.move_to_end(account)
            past[account] = kept[1]
        while len(self._kept) > ACCOUNTS_KEPT_MAX:
            self._kept.popitem(last=False)
        return past

    async def _read(self, account: str) -> Past | None:
        stands = await standing_of(account, self._store)
        if stands is None:
            return Past()
        if stands.trips is None:
            return None
        closed = [
            Closed(trip.closed, trip.entry.pipeline, trip.gain, trip.entry.cycle_id)
            if trip.entry
            else Closed(trip.closed, None, trip.gain)
            for trip in stands.trips
            if trip.closed is not None
        ]
        return Past(closed, stands.fills)


def move_of(row: Record) -> Move:
    """One entry of a ledger that touched a ticker."""
    order = None if row["cycle_id"] is None else _order(row)
    return Move(**{name: row[name] for name in _MOVE_COLUMNS}, order=order)


def _order(row: Record) -> PlacedOrder:
    rules = tuple(row["exit_rules"] or ())
    closing = closing_of(row, rules)
    return PlacedOrder(row["order_id"], row["cycle_id"], row["pipeline"], closing, rules)


def closing_of(row: Record, rules: Sequence[str]) -> Closing | None:
    """The cause of a sale by its order's row and the exit rules it acted on; None of a buy."""
    if row["side"] != Side.SELL:
        return None
    if row["type"] == OrderType.STOP:
        return Closing.STOP
    if not row["exit"]:
        return Closing.DECISION
    # A sale by hand acts on no rule.
    return Closing.SIGNAL if rules and tuple(rules) != BY_HAND else Closing.BY_HAND
