"""The console's reads. Every statement is a select; nothing here is ever locked."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries
from libs.runtime.errors import Unavailable

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


class Store:
    """The tables, as rows."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def _rows(self, statement: str, *values: object) -> Sequence[Record]:
        rows: Sequence[Record] = await self._pool.fetch(statement, *values)
        return rows

    async def _row(self, statement: str, *values: object) -> Record | None:
        row: Record | None = await self._pool.fetchrow(statement, *values)
        return row

    async def answers(self) -> bool:
        """Whether Postgres does."""
        try:
            return await self._row(sql.answers) is not None
        except Unavailable:
            return False

    async def cycles_between(self, first: UUID, last: UUID) -> Sequence[Record]:
        """At most two cycles with ids from `first` to `last`: none, the one, or too many."""
        return await self._rows(sql.cycles_between, first, last)

    async def newest_cycles(
        self, statuses: Sequence[str] | None, limit: int, kind: str | None = None
    ) -> Sequence[Record]:
        """Cycles, newest first."""
        return await self._rows(sql.newest_cycles, statuses, limit, kind)

    async def cycles_of_status(
        self, status: str, since: datetime | None, limit: int
    ) -> Sequence[Record]:
        """Cycles of one status that were accepted since then, newest first."""
        return await self._rows(sql.cycles_of_status, status, since, limit)

    async def stuck_operations(
        self, sends: int, due_before: datetime, limit: int
    ) -> Sequence[Record]:
        """Work that nobody answers: sent so often, or due before then; the oldest first."""
        return await self._rows(sql.stuck_operations, sends, due_before, limit)

    async def attention(
        self, since: datetime, sends: int, due_before: datetime, failed_max: int
    ) -> Mapping[str, int]:
        """How many cycles run, how many accepted since then failed (up to `failed_max`), how many
        proposals wait for a person, and how much work is stuck as `stuck_operations` has it."""
        (row,) = await self._rows(sql.attention, since, sends, due_before, failed_max)
        return dict(row)

    async def contracts(self, op_ids: Sequence[UUID]) -> Mapping[UUID, bytes]:
        """The results of completed operations, as JSON."""
        rows = await self._rows(sql.contracts, list(op_ids))
        return {row["op_id"]: row["result"] for row in rows}

    async def outcomes(
        self, account: str, as_of: date, cycle_id: UUID, pipeline: str
    ) -> Sequence[str]:
        """The words of the account's later memories on a decision, as JSON; some may come twice."""
        rows = await self._rows(
            sql.outcomes, account, as_of, str(cycle_id), pipeline, LATER_MEMORIES_MAX
        )
        return [row["outcome"] for row in rows]

    async def operations_of(self, cycle_id: UUID) -> Sequence[Record]:
        """A cycle's operations in the order of their making."""
        return await self._rows(sql.operations_of_cycle, cycle_id, OPERATIONS_OF_CYCLE_MAX)

    async def calls_of(
        self,
        cycle_id: UUID,
        first: int = 0,
        count: int = CALLS_OF_CYCLE_MAX,
        op_id: UUID | None = None,
    ) -> Sequence[Record]:
        """Journalled calls of a cycle, or of one operation of it, without their bodies, from the
        `first`-th on."""
        return await self._rows(sql.calls_of_cycle, cycle_id, first, count, op_id)

    async def calls_counted(self, cycle_id: UUID) -> Sequence[Record]:
        """How many calls each operation of a cycle has made under each claim, and since when."""
        return await self._rows(sql.calls_counted, cycle_id)

    async def tries_of(self, cycle_id: UUID) -> Sequence[Record]:
        """The times at which a model was asked again after a call of the cycle had failed."""
        return await self._rows(sql.tries_of_cycle, cycle_id, TRIES_MAX)

    async def kinds_of_calls(self, started_on: date, op_id: UUID, limit: int) -> Sequence[Record]:
        """The index and the kind of an operation's first calls."""
        return await self._rows(sql.kinds_of_calls, started_on, op_id, limit)

    async def calls_between(
        self, started_on: date, op_id: UUID, first: int, last: int
    ) -> Sequence[Record]:
        """The journal's entries of these indexes, each with its claim and time."""
        return await self._rows(sql.calls_between, started_on, op_id, first, last)

    async def prompt_texts(self, started_on: date, hashes: Sequence[str]) -> Mapping[str, str]:
        """Texts that models were sent, by hash; those that are not on record are left out."""
        wanted = [bytes.fromhex(digest) for digest in hashes]
        rows = await self._rows(sql.prompt_texts, started_on, wanted)
        return {row["sha256"].hex(): row["text"] for row in rows}

    async def same_step_before(self, op_id: UUID) -> Record | None:
        """The operation of the same step in the account's decision before; None where none is."""
        return await self._row(sql.same_step_before, op_id, DECISIONS_BEFORE_MAX)

    async def operation(self, op_id: UUID) -> Record | None:
        """One operation with its command."""
        return await self._row(sql.operation, op_id)

    async def operations_between(self, first: UUID, last: UUID) -> Sequence[UUID]:
        """The ids of at most two operations, as `cycles_between` gives cycles."""
        return [row["op_id"] for row in await self._rows(sql.operations_between, first, last)]

    async def journal(
        self, started_on: date, op_id: UUID, first: int = 0, count: int | None = None
    ) -> Sequence[bytes]:
        """Journal entries as JSON, from the `first`-th on; all of them where `count` is None."""
        rows = await self._rows(sql.journal, started_on, op_id, first, count)
        return [row["entry"] for row in rows]

    async def sizes_on_record(self, cycle_id: UUID) -> Sequence[Record]:
        """How large the records of a cycle's operations are."""
        return await self._rows(sql.sizes_on_record, cycle_id)

    async def waiting_approvals(self, cycle_id: UUID | None, limit: int) -> Sequence[Record]:
        """The waiting proposals, in one cycle or in all; the first to expire first."""
        return await self._rows(sql.waiting_approvals, cycle_id, limit)

    async def newest_decisions(
        self, cycle_id: UUID | None, account: str | None, limit: int
    ) -> Sequence[Record]:
        """Validated proposals with what was executed of them, the newest first; without a cycle and
        an account those of studies are left out."""
        if cycle_id is not None:
            return await self._rows(sql.decisions_of_cycle, cycle_id, account, limit)
        if account is not None:
            return await self._rows(sql.decisions_of_account, account, limit)
        return await self._rows(sql.newest_decisions, limit)

    async def decisions_briefly(self, limit: int, account: str | None = None) -> Sequence[Record]:
        """The newest decisions, of all accounts or of one; one with nothing to do has neither its
        contract nor an outcome."""
        if account is not None:
            return await self._rows(sql.decisions_of_account_briefly, account, limit)
        return await self._rows(sql.decisions_briefly, limit)

    async def events_after(self, cycle_id: UUID, sequence: int, limit: int) -> Sequence[Record]:
        """A cycle's events in order, after the first `sequence` ones."""
        return await self._rows(sql.events_after, cycle_id, sequence, limit)

    async def account(self, account: str) -> Record | None:
        """One account."""
        return await self._row(sql.account, account)

    async def halts(self) -> Sequence[Record]:
        """The halts that stand, the one of all accounts first."""
        return await self._rows(sql.halts)

    async def accounts(self) -> Sequence[str]:
        """The names of all accounts, the main one first."""
        return [row["account"] for row in await self._rows(sql.accounts, ACCOUNTS_MAX)]

    async def watched_accounts(self) -> Sequence[str]:
        """The names of all accounts: the main one, those that hold something, the newest first."""
        return [row["account"] for row in await self._rows(sql.watched_accounts, ACCOUNTS_MAX)]

    async def balances(self, account: str) -> Sequence[Record]:
        """Every book's sum; positions by ticker."""
        return await self._rows(sql.balances, account)

    async def snapshots(self, accounts: Sequence[str]) -> Sequence[Record]:
        """Each account at the close of each session that could be valued, oldest first; the newest
        one with its positions' `closes` and what was paid in by now (`paid_in_now`)."""
        return await self._rows(sql.snapshots, list(accounts))

    async def closes_of(self, account: str, session: date) -> str | None:
        """The values of the positions in the snapshot of a session, as JSON."""
        row = await self._row(sql.closes_of, account, session)
        return None if row is None else row["closes"]

    async def moves(self, accounts: Sequence[str], limit: int) -> Sequence[Record]:
        """The entries that touched each of an account's tickers, in the order of the ledger, at
        most `limit` of each account."""
        return await self._rows(sql.moves, list(accounts), limit)

    async def held(self, account: str, tickers: Sequence[str]) -> Mapping[str, Record]:
        """The sector and the newest fill of each ticker."""
        rows = await self._rows(sql.held, account, list(tickers))
        return {row["ticker"]: row for row in rows}

    async def sectors_brought_in(self, account: str, tickers: Sequence[str]) -> Mapping[str, str]:
        """The sector of each ticker that the owner brought in, where the source had one."""
        rows = await self._rows(sql.sectors_brought_in, account, list(tickers))
        return {row["ticker"]: row["sector"] for row in rows}

    async def plans(self, account: str, tickers: Sequence[str]) -> Mapping[str, Record]:
        """The plan that each ticker was bought with last, where it was bought with one."""
        rows = await self._rows(sql.plans, account, list(tickers))
        return {row["ticker"]: row for row in rows}

    async def working_orders(self, account: str) -> Sequence[Record]:
        """Orders that wait for their fill."""
        return await self._rows(sql.working_orders, account)

    async def newest_fills(self, account: str, limit: int) -> Sequence[Record]:
        """Fills, newest first."""
        return await self._rows(sql.newest_fills, account, limit)

    async def ticker_entries(self, account: str, ticker: str, limit: int) -> Sequence[Record]:
        """The account's entries in one ticker in the order of the ledger, each with its order."""
        return await self._rows(sql.ticker_entries, account, ticker, limit)

    async def traded_tickers(self, account: str) -> Sequence[str]:
        """Every ticker that the account ever held, those that it holds first."""
        rows = await self._rows(sql.traded_tickers, account, TICKERS_MAX)
        return [row["ticker"] for row in rows]

    async def ticker_closes(self, account: str, ticker: str) -> Sequence[Record]:
        """The ticker's close and waiting stop at each session that it was held at."""
        return await self._rows(sql.ticker_closes, account, ticker)

    async def last_order(self, account: str) -> Mapping[str, Any]:
        """The cycle and operation of the newest order; empty where none was placed."""
        return dict(await self._row(sql.last_order, account) or {})

    async def day_budgets(self, today: date, limit: int) -> Sequence[Record]:
        """The spending of each day with paid calls up to today, the newest first."""
        return await self._rows(sql.day_budgets, today, limit)

    async def paid_calls(self, since: date, operations: int) -> Sequence[Record]:
        """Usage of the newest operations with paid calls since a UTC day, by day, model, step."""
        return await self._rows(sql.paid_calls, since, operations)

    async def decision_cycles(self, first: date, last: date, limit: int) -> Sequence[UUID]:
        """The newest ended decision cycles with an as_of between the days, in order of time."""
        rows = await self._rows(sql.decision_cycles, first, last, limit)
        return [row["cycle_id"] for row in rows]

    async def cycles_whole(self, cycle_ids: Sequence[UUID]) -> Sequence[Record]:
        """The requests of these cycles and their states, as JSON."""
        return await self._rows(sql.cycles_whole, list(cycle_ids))

    async def runs_of(self, cycle_ids: Sequence[UUID]) -> Sequence[Record]:
        """The usage, picks and vetoes of each pipeline of these cycles."""
        return await self._rows(sql.runs_of_cycles, list(cycle_ids))

    async def memories_of(self, accounts: Sequence[str], since: date, limit: int) -> Sequence[UUID]:
        """The newest memories of these accounts, `limit` of each, of an as_of from `since` on."""
        rows = await self._rows(sql.memories_of, list(accounts), since, limit)
        return [row["op_id"] for row in rows]

    async def outcomes_told(self, op_ids: Sequence[UUID], sessions: int) -> Sequence[Record]:
        """The outcomes of filled picks after so many sessions, as these memories tell."""
        return await self._rows(sql.outcomes_told, list(op_ids), sessions)

    async def equity_of(self, accounts: Sequence[str], first: date, last: date) -> Sequence[Record]:
        """The equity of these accounts at the close of each session that could be valued."""
        return await self._rows(sql.equity_of_accounts, list(accounts), first, last)

    async def traded_among(self, accounts: Sequence[str]) -> frozenset[str]:
        """Of these accounts those that have ever held a share."""
        rows = await self._rows(sql.traded_among, list(accounts))
        return frozenset(row["account"] for row in rows)

    async def newest_entries(
        self, accounts: Sequence[str]
    ) -> Mapping[str, tuple[int, date | None]]:
        """The number of the newest entry of each of these ledgers that has one, and its newest
        valued close."""
        rows = await self._rows(sql.newest_entries, list(accounts))
        return {row["account"]: (row["entry_id"], row["closed_on"]) for row in rows}

    async def orders_of(self, decided: Collection[tuple[str, UUID]]) -> Sequence[Record]:
        """The orders of each account's cycle, as they stand now."""
        accounts = [account for account, _ in decided]
        return await self._rows(sql.orders_of, accounts, [cycle_id for _, cycle_id in decided])

    async def newest_strategies(self, limit: int) -> Sequence[Record]:
        """Designs with what their steps have made, the newest first."""
        return await self._rows(sql.newest_strategies, limit)

    async def strategies_named(self, names: Sequence[str]) -> Sequence[Record]:
        """The newest run of each."""
        return await self._rows(sql.strategies_named, list(names))

    async def strategy_whole(self, name: str) -> Record | None:
        """The newest run with all that its steps have made."""
        return await self._row(sql.strategy_whole, name)

    async def strategy_names(self) -> Sequence[str]:
        """Names, the newest first."""
        rows = await self._rows(sql.strategy_names, NAMES_SEARCHED_MAX)
        return [row["name"] for row in rows]

    async def jobs(self, names: Sequence[str]) -> Mapping[str, Record]:
        """The record of these jobs: whether they rest, and their newest runs."""
        return {row["job"]: row for row in await self._rows(sql.jobs, list(names))}

    async def newest_slots(
        self, names: Sequence[str], limit: int
    ) -> Mapping[str, Sequence[Record]]:
        """The newest runs of each of these jobs, at most `limit` each, the oldest first."""
        runs: dict[str, list[Record]] = {}
        for row in await self._rows(sql.newest_slots, list(names), limit):
            runs.setdefault(row["job"], []).append(row)
        return runs

    async def day_cycles(self, session: date, account: str, limit: int) -> Sequence[Record]:
        """The session's cycles with a pipeline on the account."""
        return await self._rows(sql.day_cycles, session, account, limit)

    async def day_decisions(self, cycle_ids: Sequence[UUID], account: str) -> Sequence[Record]:
        """The decisions of these cycles for the account."""
        return await self._rows(sql.day_decisions, list(cycle_ids), account)

    async def day_unchecked(self, cycle_ids: Sequence[UUID], account: str) -> Sequence[Record]:
        """Positions that the sell checks among these cycles could not check, and why."""
        return await self._rows(sql.day_unchecked, list(cycle_ids), account)

    async def day_snapshots(self, account: str, session: date) -> Sequence[Record]:
        """The session's close and the one before it, the newest first."""
        return await self._rows(sql.day_snapshots, account, session)

    async def day_fills(self, account: str, session: date, limit: int) -> Sequence[Record]:
        """The fills of the session."""
        return await self._rows(sql.day_fills, account, session, limit)

    async def day_orders(
        self, account: str, cycle_ids: Sequence[UUID], limit: int
    ) -> Sequence[Record]:
        """The orders of these cycles."""
        return await self._rows(sql.day_orders, account, list(cycle_ids), limit)

    async def day_held(self, account: str, session: date, limit: int) -> Sequence[Record]:
        """Shares and their cost as of the session."""
        return await self._rows(sql.day_held, account, session, limit)

    async def day_slots(self, session: date, account: str, limit: int) -> Sequence[Record]:
        """Slots of the session that did not come to a cycle."""
        return await self._rows(sql.day_slots, session, account, limit)

    async def notifications(
        self,
        channel: str | None,
        event_id: UUID | None,
        status: str | None,
        before: int | None,
        limit: int,
    ) -> Sequence[Record]:
        """Messages to people of a number below `before`, newest first."""
        return await self._rows(sql.notifications, channel, event_id, status, before, limit)

    async def notice_channels(self) -> Sequence[Record]:
        """How each channel fares that there ever was."""
        return await self._rows(sql.notice_channels, CHANNELS_SHOWN_MAX)
