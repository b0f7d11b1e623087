"""The sweep: finds what was lost and what is late. Every orchestrator runs it; locks are skipped.

Lost work: commands without an answer, claims without a sign of life. They are sent again, with
doubled waiting. Late work: operations and cycles past their deadline.
"""

import asyncio
import contextlib
from datetime import UTC, date, datetime

import structlog

from contracts.message import MESSAGE_BYTES_MAX
from contracts.operation import WAITS
from contracts.subjects.subject import PREFIX
from contracts.types import Failure
from libs.bus.publisher import Publisher
from libs.postgres.pool import Pool, PostgresError, Record, is_not_storable
from libs.runtime.errors import Unavailable
from libs.runtime.settings import Settings
from libs.telemetry import metrics
from services.orchestrator.commit import Committer, InputRefused, NotCommitted
from services.orchestrator.group.batch import WorkflowUnknown
from services.orchestrator.group.inputs import CycleOverdue, OperationOverdue
from services.orchestrator.store import sql

SWEEP_MAX = 500
"""Rows one pass handles at most; the rest waits for the next."""
ALARM_SENDS = 5
"""Sendings of an effect's command after which every further one is an error in the log."""
PARTITIONS_EVERY_S, PARTITIONS_AGAIN_S = 3600.0, 5.0

log = structlog.get_logger()


def _too_late(step: str | None) -> Failure:
    """`step` may say what the operation waited for last."""
    waited = f"; it waited: {step.removeprefix(WAITS)}" if step and step.startswith(WAITS) else ""
    return Failure(code="timed_out", message=f"the operation's time limit has passed{waited}")


def _too_large(row: Record) -> Failure:
    return Failure(
        code="too_large",
        message=(
            f"the command of {row['step']} has {len(row['command']):,} bytes and the limit is "
            f"{MESSAGE_BYTES_MAX:,}: the contracts it takes are too large together"
        ),
    )


class Sweep:
    """Looks every `sweep_s` seconds, until cancelled."""

    def __init__(
        self, pool: Pool, committer: Committer, publisher: Publisher, settings: Settings
    ) -> None:
        self._pool = pool
        self._committer = committer
        self._publisher = publisher
        self._settings = settings

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(self._settings.orchestrator.sweep_s)
            try:
                await self._resend()
                await self._end_late()
            except Unavailable as error:
                log.warning("sweep.interrupted", error=type(error).__name__)

    async def run_partitions(self) -> None:
        """Make the partitions of this month and the next, ahead of time, until cancelled."""
        while True:
            try:
                await self.make_partitions(datetime.now(UTC).date())
                wait_s = PARTITIONS_EVERY_S
            except Unavailable as error:
                # Rows then go to the default partition: nothing is lost.
                log.warning("sweep.no_partitions", error=type(error).__name__)
                wait_s = PARTITIONS_AGAIN_S
            await asyncio.sleep(wait_s)

    async def make_partitions(self, today: date) -> None:
        """Make those of today's month and the next. A month that the default partition has rows of
        stays there."""
        for ahead in (0, 1):
            try:
                await self._pool.execute(
                    "select ensure_partitions(($1::date + $2 * interval '1 month')::date)",
                    today,
                    ahead,
                )
            except PostgresError as error:
                if not is_not_storable(error):
                    raise
                log.warning("sweep.rows_before_partition", error=str(error)[:400])

    async def _resend(self) -> None:
        settings = self._settings
        lost = await self._pool.fetch(
            sql.due_operations,
            SWEEP_MAX,
            settings.orchestrator.resend_after_s,
            settings.orchestrator.resend_after_s_max,
            max(settings.orchestrator.epochs_max - 1, 1),
        )
        for row in lost:
            if len(row["command"]) > MESSAGE_BYTES_MAX:
                await self._end(OperationOverdue(row["op_id"], _too_large(row)))
                continue
            if row["must_answer"] and row["sends"] > ALARM_SENDS:
                metrics.UNANSWERED_EFFECTS.add()
                log.error("sweep.effect_unanswered", op_id=str(row["op_id"]), sends=row["sends"])
            await self._publisher.command(
                row["service"],
                row["step"],
                row["cycle_id"],
                row["op_id"],
                row["command"],
                row["sends"],
            )
            metrics.RESENT.add(f"{PREFIX}.cmd.{row['service']}.{row['step']}")
        if lost:
            log.info("sweep.sent_again", operations=len(lost))

    async def _end_late(self) -> None:
        for row in await self._pool.fetch(sql.overdue_operations, SWEEP_MAX):
            await self._end(OperationOverdue(row["op_id"], _too_late(row["last_step"])))
            metrics.SWEPT_LATE.add("operation")
        for row in await self._pool.fetch(sql.overdue_cycles, SWEEP_MAX):
            await self._end(CycleOverdue(row["cycle_id"]))
            metrics.SWEPT_LATE.add("cycle")

    async def _end(self, overdue: OperationOverdue | CycleOverdue) -> None:
        """End it; what follows another version's workflow is left to orchestrators that know it.
        One that cannot be ended keeps none behind it from its end."""
        try:
            with contextlib.suppress(WorkflowUnknown):
                await self._committer.ask(overdue)
        except (InputRefused, NotCommitted) as error:
            log.error("sweep.refused", what=str(overdue)[:200], error=str(error)[:400])  # noqa: TRY400
