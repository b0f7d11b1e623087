"""Round trips: a ledger's rows as moves, and the closed trips of accounts, each ledger read again
only where it has grown."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from contracts.account import OrderType, Side
from libs.postgres.pool import Record
from libs.quant import trades
from libs.quant.trades import Closing, Move, Order
from services.console.store import Store

MOVES_MAX = 50_000
"""Entries of a ledger that round trips are made of: twenty years of ten a day."""
ACCOUNTS_KEPT_MAX = 200
BY_HAND = ("by_hand",)


class Closed(NamedTuple):
    """A round trip that has ended: the pipeline that opened it, if one did, and its gain."""

    on: date
    pipeline: str | None
    gain: Decimal


class PastTrips:
    """Keeps the closed round trips of the accounts asked for last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[int, Sequence[Closed] | None]] = OrderedDict()

    async def of(self, accounts: Sequence[str]) -> Mapping[str, Sequence[Closed] | None]:
        """Those of each account; None where its ledger has more than MOVES_MAX entries."""
        newest = await self._store.newest_entries(accounts)
        trips: dict[str, Sequence[Closed] | None] = {}
        for account in accounts:
            entry, kept = newest.get(account, 0), self._kept.get(account)
            if kept is None or kept[0] != entry:
                kept = entry, await self._read(account)
            self._kept[account] = kept
            self._kept.move_to_end(account)
            trips[account] = kept[1]
        while len(self._kept) > ACCOUNTS_KEPT_MAX:
            self._kept.popitem(last=False)
        return trips

    async def _read(self, account: str) -> Sequence[Closed] | None:
        moves = await self._store.moves(account, MOVES_MAX + 1)
        if len(moves) > MOVES_MAX:
            return None
        return [
            Closed(trip.closed, trip.entry.pipeline if trip.entry else None, trip.gain)
            for trip in trades.round_trips(map(move_of, moves))
            if trip.closed is not None
        ]


def move_of(row: Record) -> Move:
    """One entry of a ledger that touched a ticker."""
    return Move(
        session=row["session"],
        ticker=row["ticker"],
        quantity=row["quantity"],
        cost=row["cost"],
        realised=row["realised"],
        dividends=row["dividends"],
        fees=row["fees"],
        is_split=row["is_split"],
        order=None if row["cycle_id"] is None else _order(row),
    )


def _order(row: Record) -> Order:
    rules = tuple(row["exit_rules"] or ())
    return Order(row["cycle_id"], row["pipeline"], closing_of(row, rules), rules)


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
