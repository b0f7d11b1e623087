"""The console's reads. Every statement is a select; nothing here is ever locked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from contracts.operation import OperationStatus
from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries
from libs.runtime.errors import Unavailable
from libs.runtime.nearest import UnknownAccount

sql = Queries(Path(__file__).parent / "queries.sql")

OPERATIONS_OF_CYCLE_MAX = 1_000
CALLS_OF_CYCLE_MAX = 2_000
TRIES_MAX = 200
"""Of a cycle's second tries that are marked."""
ACCOUNTS_MAX = 200
TICKERS_MAX = 200
NAMES_SEARCHED_MAX = 2_000
"""Strategies among which a name that is nearly right is looked for."""
CHANNELS_SHOWN_MAX = 100
"""Channels to people, with those that are in no settings any more."""
DECISIONS_BEFORE_MAX = 20
"""An account's earlier decisions among which the one before is looked for that has a step too."""
LATER_MEMORIES_MAX = 500
"""Memories that are searched for a decision's outcomes: many cycles a day, over a month."""


@dataclass(frozen=True)
class CyclePlace:
    """A place in a list of cycles: right behind this one."""

    as_of: date
    accepted_at: datetime
    cycle_id: UUID


@dataclass(frozen=True)
class PlaceOfOperation:
    """A place in a list of operations: right behind this one, of a cycle that began then."""

    accepted_at: datetime
    created_at: datetime
    op_id: UUID


CYCLES_SEARCHED = 2_000
"""Among so many newest cycles something is looked for that has no index."""
OPEN = frozenset({OperationStatus.PENDING, OperationStatus.RUNNING})
LOST = frozenset({OperationStatus.FAILED, OperationStatus.CANCELLED})
FRONT = CyclePlace(date(9999, 1, 1), datetime(9999, 1, 1, tzinfo=UTC), UUID(int=2**128 - 1))
"""In front of all cycles there are."""
FRONT_OPERATION = PlaceOfOperation(FRONT.accepted_at, FRONT.accepted_at, FRONT.cycle_id)


class Store:
    """The tables, as rows. `rows(sql.NAME, ...)` and `row` read a statement of queries.sql as it
    is; the other methods bound what is read, or give it another shape."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def rows(self, statement: str, *values: object) -> Sequence[Record]:
        """All rows of a statement."""
        rows: Sequence[Record] = await self._pool.fetch(statement, *values)
        return rows

    async def row(self, statement: str, *values: object) -> Record | None:
        """Its first row; None where it has none."""
        row: Record | None = await self._pool.fetchrow(statement, *values)
        return row

    async def column(self, statement: str, *values: object) -> list[Any]:
        """The first value of each of its rows."""
        return [row[0] for row in await self.rows(statement, *values)]

    async def by(self, column: str, statement: str, *values: object) -> Mapping[str, Record]:
        """Its rows by a column."""
        return {row[column]: row for row in await self.rows(statement, *values)}

    async def answers(self) -> bool:
        """Whether Postgres does."""
        try:
            return await self.row(sql.answers) is not None
        except Unavailable:
            return False

    async def contracts(self, op_ids: Sequence[UUID]) -> Mapping[UUID, bytes]:
        """The results of completed operations, as JSON."""
        rows = await self.rows(sql.contracts, list(op_ids))
        return {row["op_id"]: row["result"] for row in rows}

    async def outcomes(
        self, account: str, as_of: date, cycle_id: UUID, pipeline: str
    ) -> Sequence[str]:
        """The words of the account's later memories on a decision, as JSON; some may come twice."""
        return await self.column(
            sql.outcomes, account, as_of, str(cycle_id), pipeline, LATER_MEMORIES_MAX
        )

    async def prompt_texts(self, started_on: date, hashes: Sequence[str]) -> Mapping[str, str]:
        """Texts that models were sent, by hash; those that are not on record are left out."""
        wanted = [bytes.fromhex(digest) for digest in hashes]
        rows = await self.rows(sql.prompt_texts, started_on, wanted)
        return {row["sha256"].hex(): row["text"] for row in rows}

    async def operation(self, op_id: UUID) -> Record | None:
        """One operation with its command."""
        return await self.row(sql.operation, op_id)

    async def operations_between(self, first: UUID, last: UUID) -> Sequence[UUID]:
        """The ids of at most two operations, as `cycles_between` gives cycles."""
        return await self.column(sql.operations_between, first, last)

    async def journal(
        self, started_on: date, op_id: UUID, first: int = 0, count: int | None = None
    ) -> Sequence[bytes]:
        """Journal entries as JSON, from the `first`-th on; all of them where `count` is None."""
        return await self.column(sql.journal, started_on, op_id, first, count)

    async def newest_decisions(
        self, cycle_id: UUID | None, account: str | None, limit: int
    ) -> Sequence[Record]:
        """Validated proposals with what was executed of them, the newest first; without a cycle and
        an account those of studies are left out."""
        if cycle_id is not None:
            return await self.rows(sql.decisions_of_cycle, cycle_id, account, limit)
        if account is not None:
            return await self.rows(sql.decisions_of_account, account, limit)
        return await self.rows(sql.newest_decisions, limit)

    async def decisions_briefly(self, limit: int, account: str | None = None) -> Sequence[Record]:
        """The newest decisions, of all accounts or of one; one with nothing to do has neither its
        contract nor an outcome."""
        if account is not None:
            return await self.rows(sql.decisions_of_account_briefly, account, limit)
        return await self.rows(sql.decisions_briefly, limit)

    async def account(self, account: str) -> Record | None:
        """One account."""
        return await self.row(sql.account, account)

    async def accounts(self) -> Sequence[str]:
        """The names of all accounts, the main one first."""
        return await self.column(sql.accounts, ACCOUNTS_MAX)

    async def require_account(self, account: str | None) -> None:
        """Raises UnknownAccount where an account is named that there is not: a typo would look like
        an answer."""
        if account is not None and await self.account(account) is None:
            raise UnknownAccount(account, await self.accounts())

    async def balances(self, account: str) -> Sequence[Record]:
        """Every book's sum; positions by ticker."""
        return await self.rows(sql.balances, account)

    async def snapshots(self, accounts: Sequence[str]) -> Sequence[Record]:
        """Each account at the close of each session that could be valued, oldest first; the newest
        one with its positions' `closes` and what was paid in by now (`paid_in_now`)."""
        return await self.rows(sql.snapshots, list(accounts))

    async def closes_of(self, account: str, session: date) -> str | None:
        """The values of the positions in the snapshot of a session, as JSON."""
        row = await self.row(sql.closes_of, account, session)
        return None if row is None else row["closes"]

    async def moves(self, accounts: Sequence[str], limit: int) -> Sequence[Record]:
        """The entries that touched each of an account's tickers, in the order of the ledger, at
        most `limit` of each account."""
        return await self.rows(sql.moves, list(accounts), limit)

    async def held(self, account: str, tickers: Sequence[str]) -> Mapping[str, Record]:
        """The sector and the newest fill of each ticker."""
        return await self.by("ticker", sql.held, account, list(tickers))

    async def sectors_brought_in(self, account: str, tickers: Sequence[str]) -> Mapping[str, str]:
        """The sector of each ticker that the owner brought in, where the source had one."""
        rows = await self.rows(sql.sectors_brought_in, account, list(tickers))
        return {row["ticker"]: row["sector"] for row in rows}

    async def plans(self, account: str, tickers: Sequence[str]) -> Mapping[str, Record]:
        """The plan that each ticker was bought with last, where it was bought with one."""
        return await self.by("ticker", sql.plans, account, list(tickers))

    async def ticker_entries(self, account: str, ticker: str, limit: int) -> Sequence[Record]:
        """The account's entries in one ticker in the order of the ledger, each with its order."""
        return await self.rows(sql.ticker_entries, account, ticker, limit)

    async def ticker_closes(self, account: str, ticker: str) -> Sequence[Record]:
        """The ticker's close and waiting stop at each session that it was held at."""
        return await self.rows(sql.ticker_closes, account, ticker)

    async def last_order(self, account: str) -> Mapping[str, Any]:
        """The cycle and operation of the newest order; empty where none was placed."""
        return dict(await self.row(sql.last_order, account) or {})

    async def cycles_whole(self, cycle_ids: Sequence[UUID]) -> Sequence[Record]:
        """The requests of these cycles and their states, as JSON."""
        return await self.rows(sql.cycles_whole, list(cycle_ids))

    async def outcomes_of(self, op_ids: Sequence[UUID], sessions: int) -> Sequence[Record]:
        """The outcomes of filled picks after so many sessions, as these memories tell."""
        return await self.rows(sql.outcomes_of, list(op_ids), sessions)

    async def traded_among(self, accounts: Sequence[str]) -> frozenset[str]:
        """Of these accounts those that have ever held a share."""
        rows = await self.rows(sql.traded_among, list(accounts))
        return frozenset(row["account"] for row in rows)

    async def newest_entries(
        self, accounts: Sequence[str]
    ) -> Mapping[str, tuple[int, date | None]]:
        """The number of the newest entry of each of these ledgers that has one, and its newest
        valued close."""
        rows = await self.rows(sql.newest_entries, list(accounts))
        return {row["account"]: (row["entry_id"], row["closed_on"]) for row in rows}

    async def orders_of(self, decided: Collection[tuple[str, UUID]]) -> Sequence[Record]:
        """The orders of each account's cycle, as they stand now."""
        accounts = [account for account, _ in decided]
        return await self.rows(sql.orders_of, accounts, [cycle_id for _, cycle_id in decided])

    async def strategy_names(self) -> Sequence[str]:
        """Names, the newest first."""
        return await self.column(sql.strategy_names, NAMES_SEARCHED_MAX)

    async def newest_slots(
        self, names: Sequence[str], limit: int
    ) -> Mapping[str, Sequence[Record]]:
        """The newest runs of each of these jobs, at most `limit` each, the oldest first."""
        runs: dict[str, list[Record]] = {}
        for row in await self.rows(sql.newest_slots, list(names), limit):
            runs.setdefault(row["job"], []).append(row)
        return runs

    async def day_snapshots(self, account: str, session: date) -> Sequence[Record]:
        """The session's close and the one before it, the newest first."""
        return await self.rows(sql.day_snapshots, account, session)

    async def day_held(self, account: str, session: date, limit: int) -> Sequence[Record]:
        """Shares and their cost as of the session."""
        return await self.rows(sql.day_held, account, session, limit)

    async def place_of_operation(self, op_id: UUID) -> PlaceOfOperation | None:
        """The place of an operation; None where it is not there any more."""
        rows = await self.rows(sql.place_of_operation, op_id)
        return PlaceOfOperation(**rows[0]) if rows else None

    async def newest_operations(
        self,
        status: OperationStatus | None,
        step: str | None,
        limit: int,
        *,
        account: str | None = None,
        since: date = date.min,
        until: date = date.max,
        behind: PlaceOfOperation = FRONT_OPERATION,
    ) -> Sequence[Record]:
        """Operations, the newest first; by what was asked for each is read from an index.

        What goes on and what was lost is little. What was done is looked for in `CYCLES_SEARCHED`.
        """
        like = (account, since, until)
        place = (behind.created_at, behind.op_id)
        if status in OPEN:
            return await self.rows(sql.open_operations, status, step, limit, *like, *place)
        if status in LOST:
            return await self.rows(sql.lost_operations, status, step, limit, *like, *place)
        among = (CYCLES_SEARCHED, *like, behind.accepted_at)
        return await self.rows(sql.recent_operations, status, step, limit, *among, *place)

    async def walked(
        self, behind: CyclePlace, limit: int, *, status: str | None = None, kind: str | None = None
    ) -> Sequence[Record]:
        """The next cycles by time, newest first; of one status, or of one kind."""
        place = (behind.accepted_at, behind.cycle_id, limit)
        if status is not None:
            return await self.rows(sql.walked_by_status, *place, status)
        if kind is not None:
            return await self.rows(sql.walked_by_kind, *place, kind)
        return await self.rows(sql.walked_by_time, *place)

    async def walked_by_session(
        self, behind: CyclePlace, limit: int, first: date, last: date
    ) -> Sequence[Record]:
        """The next cycles as of these sessions, the newest session first."""
        place = (behind.accepted_at, behind.cycle_id, limit)
        return await self.rows(sql.walked_by_session, *place, first, last, behind.as_of)
