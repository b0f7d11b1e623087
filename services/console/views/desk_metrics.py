"""Figures of the whole desk for whoever scrapes, from the tables: what waits, and the books."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from libs.bus.dead_letters import DeadLetters
from libs.postgres.pool import Pool
from libs.postgres.queries import Queries
from libs.runtime.settings import Settings
from libs.telemetry import metrics, readiness
from libs.telemetry.metric import OTHER
from services.console import logic
from services.console.store import sql as console_sql

sql = Queries(Path(__file__).parent / "desk_metrics.sql")

ACCOUNTS_MAX = 2_000
"""Accounts whose worth is read; younger ones are left out."""


@contextmanager
def watched(
    pool: Pool, letters: DeadLetters, settings: Settings, now: Callable[[], datetime]
) -> Iterator[None]:
    """The desk's figures are read at each scrape, while the block runs."""
    desk = _Gauges(pool, letters, settings, now)
    what_waits = (
        metrics.OPEN_CYCLES,
        metrics.APPROVALS_WAITING,
        metrics.OUTBOX,
        metrics.OUTBOX_SECONDS,
        metrics.UNPUBLISHED_SECONDS,
    )
    books = (metrics.EQUITY, metrics.IMBALANCE, metrics.HALTS)
    budget = (
        metrics.DAY_TOKENS_LIMIT,
        metrics.DAY_COST_LIMIT,
        metrics.DAY_TOKENS_LEFT,
        metrics.DAY_COST_LEFT,
    )
    notices = (metrics.NOTICES_WAITING, metrics.NOTICE_FAILURES, metrics.NOTICES_OVERDUE_SECONDS)
    with ExitStack() as stack:
        stack.enter_context(readiness.sampled("what waits", desk.what_waits, what_waits))
        stack.enter_context(readiness.sampled("books", desk.books, books))
        stack.enter_context(readiness.sampled("budget", desk.budget, budget))
        stack.enter_context(readiness.sampled("dead letters", desk.letters, (metrics.LETTERS,)))
        stack.enter_context(readiness.sampled("notices", desk.notices, notices))
        yield


class _Gauges:
    def __init__(
        self, pool: Pool, letters: DeadLetters, settings: Settings, now: Callable[[], datetime]
    ) -> None:
        self._pool = pool
        self._letters = letters
        self._settings = settings
        self._now = now

    async def what_waits(self) -> None:
        """Cycles, people, operations and events."""
        running = await self._pool.fetch(sql.cycles_running)
        metrics.OPEN_CYCLES.replace({(row["kind"],): row["cycles"] for row in running})
        waiting = await self._pool.fetchrow(sql.waiting)
        metrics.APPROVALS_WAITING.set(waiting["approvals"])
        metrics.OUTBOX.set(waiting["unclaimed"])
        metrics.OUTBOX_SECONDS.set(waiting["unclaimed_s"])
        metrics.UNPUBLISHED_SECONDS.set(await self._pool.fetchval(sql.unpublished))

    async def books(self) -> None:
        """The equity of the accounts, and whether the books add up."""
        equity: dict[tuple[str, ...], float] = defaultdict(float)
        rows = await self._pool.fetch(sql.equity, ACCOUNTS_MAX)
        for place, row in enumerate(rows):
            shown = row["account"] if place < metrics.ACCOUNTS_SHOWN_MAX else OTHER
            equity[shown, row["currency"]] += float(row["equity"])
        metrics.EQUITY.replace(equity)
        metrics.IMBALANCE.set(await self._pool.fetchval(sql.imbalanced))
        metrics.HALTS.set(await self._pool.fetchval(sql.halts))

    async def budget(self) -> None:
        """The remaining model budget of today."""
        at = self._now()
        rows = await self._pool.fetch(console_sql.day_budgets, at.astimezone(UTC).date(), 1)
        view = logic.budget_view(rows, at, self._settings)
        metrics.DAY_TOKENS_LIMIT.set(view.tokens_max)
        metrics.DAY_COST_LIMIT.set(float(view.cost_usd_max))
        metrics.DAY_TOKENS_LEFT.set(view.tokens_left)
        metrics.DAY_COST_LEFT.set(float(view.cost_usd_left))

    async def letters(self) -> None:
        """How many dead letters are kept."""
        metrics.LETTERS.set(await self._letters.count())

    async def notices(self) -> None:
        """The messages that wait for the channels of the settings, also while no notifier runs."""
        names = list(self._settings.notify.channels)
        rows = await self._pool.fetch(sql.notices, names) if names else ()
        shown = {
            metrics.NOTICES_WAITING: "waiting",
            metrics.NOTICE_FAILURES: "failures",
            metrics.NOTICES_OVERDUE_SECONDS: "overdue_s",
        }
        for gauge, column in shown.items():
            gauge.replace({(row["channel"],): float(row[column]) for row in rows})
