"""The service runtime: hears a service's commands and answers each one.

Plain commands: run, tell the result, acknowledge. Claimed commands: claim, acknowledge, run with a
journal, tell the result. The one broad `except` of the product stands here, and sorts what a
handler raises: an outage is waited for, in place, and uses up nothing; a `DeskError` is the answer;
anything else is a defect, and a failure after some tries.
"""

import asyncio
import contextlib
import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import UUID

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError
from structlog.contextvars import bound_contextvars

from contracts.message import Command
from contracts.operation import CancelOperation, Claim, Result
from contracts.subjects.subject import PREFIX
from contracts.types import Failure, shortened
from libs.bus.codec import MessageInvalid, decode
from libs.bus.connection import CONNECT_TIMEOUT_S, BusNotReachable, connect, watched, within
from libs.bus.dead_letters import written
from libs.bus.discovery import BusEndpoint, discoverable
from libs.bus.local import LocalLine
from libs.bus.operation import (
    FAILURE_CHARS_MAX,
    Lease,
    Orchestrator,
    failure_of,
    is_unreachable,
    tell_wait,
    unexplained,
)
from libs.bus.pull import BATCH_MAX, Delivery, Pull, Streamed
from libs.bus.route import Route, Routes
from libs.bus.server import Server
from libs.bus.streams import COMMAND_STREAM
from libs.bus.traced_command import traced_command, traced_handler
from libs.runtime.data_version import reading
from libs.runtime.errors import DeskError, NoAnswer, NotOnRecord, Unavailable
from libs.runtime.journal import Journal, OperationStopped
from libs.runtime.settings import Settings
from libs.telemetry import metrics, readiness

WORKERS_MAX = 64
"""Commands of one kind that are worked on at once in one process."""
BATCH_MAX_BESIDE_LOCAL = 8
"""Workers that wait for commands from NATS where most are handed over in this process."""
PROVISIONED_POLL_S = 0.1
RETRY_DELAY_S = 0.5
RETRY_DELAY_S_MAX = 4.0
"""The wait between two tries doubles up to here."""
DEFECTS_MAX = 3
"""Tries of a plain command that end in a fault which nobody foresaw; then that is its result."""
DELIVERIES_BEFORE_FORGED = 5
"""A command is sent after its commit, so its operation is there; right after a failover the server
that is asked may not be the one that has it. Until this many deliveries it is looked for again."""
GRACE_S = 5.0
"""How long running operations may take to end when the service stops."""

log = structlog.get_logger()


class ServiceRunner:
    """Runs one service's routes. `start`, then `stop`; `lost` is set when NATS is gone for good.

    `line` joins it to an orchestrator of the same process; its identity is the service's.
    """

    def __init__(
        self, routes: Routes, url: str, settings: Settings, line: LocalLine | None = None
    ) -> None:
        self._routes = routes
        self._line = line
        self._settings = settings
        self._instance = f"{socket.gethostname()}/{os.getpid()}/{routes.service}"
        self._url = url
        self._pulls: list[Pull] = []
        self._pulling: list[asyncio.Task[None]] = []
        self._running: dict[UUID, asyncio.Task[Any]] = {}
        self._watched = contextlib.ExitStack()
        self.lost = asyncio.Event()

    async def start(self) -> None:
        """Connect and begin to take commands. Raises `BusNotReachable`."""
        service = self._routes.service
        self._client = await connect(
            self._url, service, self._settings.secrets_path, on_closed=self._on_closed
        )
        self._orchestrator = Orchestrator(
            self._client, service, self._settings.orchestrator.reply_timeout_s, self._line
        )
        self._server = Server(self._client, service)
        try:
            await self._listen()
            await within(CONNECT_TIMEOUT_S, self._provisioned())
            await self._pull()
        except (OSError, TimeoutError, nats.errors.Error) as error:
            # Or it would go on to hear questions that nobody answers.
            await self._client.close()
            raise BusNotReachable(
                f"{service}: NATS at {self._url} does not answer ({type(error).__name__}: {error})"
            ) from error
        for counted in (metrics.NOT_ON_RECORD, metrics.LEASES_LOST, metrics.UNREADABLE):
            counted.begin(service)
        await self._watch()
        log.info("service.started", service=service, commands=len(self._routes.commands))

    async def stop(self) -> None:
        """Take nothing more, let running work end for GRACE_S, then leave it to others."""
        self._watched.close()
        for pulling in self._pulling:
            pulling.cancel()
        await self._server.stop()
        await asyncio.gather(*(pull.drain(GRACE_S) for pull in self._pulls))
        await self._client.close()
        log.info("service.stopped", service=self._routes.service)

    async def _on_closed(self) -> None:
        self.lost.set()

    async def _watch(self) -> None:
        service, enter = self._routes.service, self._watched.enter_context
        commands = [BusEndpoint.of_command(route.hears) for route in self._routes.commands]
        await discoverable(self._client, service, (*commands, *self._server.endpoints))
        enter(watched(self._client, service))
        enter(readiness.sampled(f"consumers {service}", self._lag, (metrics.PENDING,)))

    async def _lag(self) -> None:
        """Report the backlog of this service to the metrics."""
        manager, service = self._client.jsm(), self._routes.service
        for route in self._routes.commands:
            info = await manager.consumer_info(COMMAND_STREAM, route.hears.durable)
            metrics.PENDING.set(info.num_pending or 0, service, route.hears.address)

    async def _pull(self) -> None:
        for route in self._routes.commands:
            pull = self._pull_of(route)
            await pull.start()
            self._pulls.append(pull)
            if self._line is not None:
                self._line.hear(route.hears, partial(self._take, route, pull), partial(_free, pull))
            pulling = asyncio.create_task(pull.run())
            pulling.add_done_callback(self._pull_ended)
            self._pulling.append(pulling)

    def _pull_of(self, route: Route) -> Pull:
        async def on_message(message: Msg) -> None:
            await self._on_command(route, Streamed(message))

        batch_max = BATCH_MAX if self._line is None else BATCH_MAX_BESIDE_LOCAL
        durable = route.hears.durable
        return Pull(self._client, COMMAND_STREAM, durable, on_message, WORKERS_MAX, batch_max)

    def _take(self, route: Route, pull: Pull, delivery: Delivery) -> bool:
        """Do a command that is handed over in this process, where a worker is free."""
        work = partial(self._on_command, route, delivery)
        return pull.take(work, promised=delivery.granted is not None)

    def _pull_ended(self, pulling: asyncio.Task[None]) -> None:
        """A service that hears no commands must not look alive."""
        if not pulling.cancelled():
            log.error("service.deaf", error=repr(pulling.exception())[:400])
            self.lost.set()

    async def _provisioned(self) -> None:
        """Wait for the consumers: to bind to one that is not there yet, nats-py would create it,
        which no service may, and a refused request shows only as a long time-out."""
        manager = self._client.jsm()
        for route in self._routes.commands:
            while True:
                try:
                    await manager.consumer_info(COMMAND_STREAM, route.hears.durable)
                    break
                except NotFoundError:
                    await asyncio.sleep(PROVISIONED_POLL_S)

    async def _listen(self) -> None:
        if self._routes.commands:
            cancels = f"{PREFIX}.ctl.{self._routes.service}.cancel"
            await self._client.subscribe(cancels, cb=self._on_cancel)
        for question in self._routes.questions:
            await self._server.serve(question.hears, question.handle)

    # --- commands -----------------------------------------------------------------------------

    async def _on_command(self, route: Route, delivery: Delivery) -> None:
        where = (self._routes.service, route.hears.address)
        if delivery.number > 1:
            metrics.REDELIVERIES.add(*where)
        outcome = "stopped"
        try:
            outcome = await self._deal_with(route, delivery)
        finally:
            metrics.COMMANDS.add(*where, outcome)

    async def _deal_with(self, route: Route, delivery: Delivery) -> str:
        """Do what the command asks; returns how that ended, as it is counted."""
        try:
            command: Command = decode(route.hears.message, delivery.body)
        except MessageInvalid as error:
            log.error("service.command_unreadable", step=route.hears.what, why=error.message)  # noqa: TRY400
            metrics.UNREADABLE.add(self._routes.service)
            await self._bury(route, delivery, error)
            return "unreadable"
        deal = self._claim if route.hears.claimed else self._answer
        with (
            reading(command.data_version),
            bound_contextvars(
                service=self._routes.service,
                cycle_id=str(command.cycle_id),
                pipeline=command.pipeline.name,
                state=command.state,
                step=command.step,
                op_id=str(command.op_id),
            ),
        ):
            work = deal(route, command, delivery)
            return await traced_command(route.hears, command, delivery, work)

    async def _answer(self, route: Route, command: Command, delivery: Delivery) -> str:
        """A plain command: run, tell, acknowledge."""
        if command.op_id in self._running:
            # The sweep has sent it again meanwhile. Should this process die, it does so once more.
            await delivery.acknowledge()
            return "repeated"
        tries_max = None if route.hears.must_answer else DEFECTS_MAX
        sent = hashlib.sha256(delivery.body).hexdigest()
        journal = Journal((), _no_journal, command_sha256=sent)
        try:
            async with delivery.in_progress():
                with self._cancellable(command.op_id):
                    result = await self._outcome(route, command, journal, None, tries_max)
                    result = await self._orchestrator.end(result)
                await delivery.acknowledge()
                return _how(result)
        except NoAnswer as error:
            return await self._unanswered(route, delivery, error)

    async def _unanswered(self, route: Route, delivery: Delivery, error: NoAnswer) -> str:
        """A command that is not to be done: forged, perhaps too early, or done before."""
        if not isinstance(error, NotOnRecord):
            log.info("service.command_again", step=route.hears.what, why=error.message)
            await delivery.acknowledge()
            return "ended"
        deliveries = delivery.number
        if error.may_come and deliveries < DELIVERIES_BEFORE_FORGED:
            log.warning("service.not_yet_on_record", step=route.hears.what, why=error.message)
            # Given back, and not waited for here: whoever forges many must not take all workers.
            await delivery.give_back(RETRY_DELAY_S * 2 ** (deliveries - 1))
            return "not_yet_on_record"
        log.error("service.command_forged", step=route.hears.what, why=error.message)
        metrics.NOT_ON_RECORD.add(self._routes.service)
        await self._bury(route, delivery, error)
        return "not_on_record"

    async def _claim(self, route: Route, command: Command, delivery: Delivery) -> str:
        """A claimed command: it is ours alone once the claim is granted."""
        async with delivery.in_progress():
            claim = Claim(op_id=command.op_id, instance=self._instance)
            answer = delivery.granted or await self._orchestrator.claim(claim)
            await delivery.acknowledge()
        if answer.outcome != "granted":
            return "not_granted"
        lease = Lease(self._orchestrator, command.op_id, answer)
        journal = Journal(answer.journal, lease.record, lease.check)
        return await self._work(route, command, lease, journal)

    async def _work(self, route: Route, command: Command, lease: Lease, journal: Journal) -> str:
        with self._cancellable(command.op_id) as stop:

            def lost() -> None:
                metrics.LEASES_LOST.add(self._routes.service)
                stop()

            async with lease.renewing(on_lost=lost):
                # What may be paid for is not made again because of a defect.
                result = await self._outcome(route, command, journal, lease.epoch, 1)
                try:
                    result = await lease.end(result, journal)
                except OperationStopped:
                    raise asyncio.CancelledError from None
                return _how(result)

    @contextlib.contextmanager
    def _cancellable(self, op_id: UUID) -> Iterator[Callable[[], object]]:
        """While the block runs, its task can be stopped by the operation's id, or by what this
        gives."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an operation runs in a task")
        self._running[op_id] = task
        try:
            yield task.cancel
        finally:
            if self._running.get(op_id) is task:
                del self._running[op_id]

    async def _outcome(
        self,
        route: Route,
        command: Command,
        journal: Journal,
        epoch: int | None,
        tries_max: int | None,
    ) -> Result:
        """The handler's answer as a result, once what it needs can be reached.

        `tries_max` are the tries that may end in a defect; None: for ever.
        """
        began = time.perf_counter()
        defects, wait_s = 0, RETRY_DELAY_S
        try:
            while True:
                try:
                    return await self._try(route, command, journal, epoch)
                except NoAnswer:
                    raise
                except Exception as error:
                    if is_unreachable(error):
                        what = shortened(f"{type(error).__name__}: {error}", FAILURE_CHARS_MAX)
                        log.warning("operation.waits", why=what, again_in_s=wait_s)
                        await tell_wait(journal, str(error))
                    else:
                        log.exception("operation.unanswered")
                        defects += 1
                    if defects == tries_max:
                        failure = unexplained(route.hears, defects)
                        return Result(op_id=command.op_id, epoch=epoch, failure=failure)
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, RETRY_DELAY_S_MAX)
                journal.again()
        finally:
            where = (self._routes.service, route.hears.address)
            metrics.COMMAND_SECONDS.observe(time.perf_counter() - began, *where)

    async def _try(
        self, route: Route, command: Command, journal: Journal, epoch: int | None
    ) -> Result:
        """One run of the handler. Raises what was not an answer."""
        try:
            with traced_handler(route.hears):
                contract = await route.handle(command, journal)
            body = contract.model_dump(mode="json")
            return Result(op_id=command.op_id, epoch=epoch, contract=body)
        except (Unavailable, NoAnswer):
            raise
        except DeskError as error:
            log.warning("operation.failed", code=error.code, reason=error.message[:400])
            return Result(
                op_id=command.op_id,
                epoch=epoch,
                failure=failure_of(error),
                corrections=tuple(getattr(error, "corrections", ())),
            )
        except OperationStopped:
            raise asyncio.CancelledError from None

    async def _on_cancel(self, message: Msg) -> None:
        try:
            cancel = decode(CancelOperation, message.data)
        except MessageInvalid as error:
            log.warning("service.cancel_unreadable", why=str(error))
            return
        task = self._running.get(cancel.op_id)
        if task is not None:
            log.info(
                "operation.cancelled",
                cycle_id=str(cancel.cycle_id),
                op_id=str(cancel.op_id),
                reason=cancel.reason,
            )
            task.cancel()

    async def _bury(self, route: Route, delivery: Delivery, error: DeskError) -> None:
        """A command that nobody may act on is kept as a dead letter and never comes again."""
        subject = f"{PREFIX}.dlq.{route.hears.owner}.{route.hears.what}"
        stored, why = written(delivery.body, Failure(code=error.code, message=error.message))
        await self._client.publish(subject, stored, headers=why)
        await delivery.end()


def _free(pull: Pull) -> int:
    return pull.free


def _how(result: Result) -> str:
    return "answered" if result.failure is None else "failed"


async def _no_journal(*_: object) -> None:
    """Plain commands keep no journal: they are safe to run again."""
