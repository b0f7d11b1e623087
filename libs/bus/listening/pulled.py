"""Events of a durable consumer: pulled, acknowledged by hand, given back when the program stops."""

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import nats.errors
import structlog
from faststream.message import StreamMessage
from faststream.middlewares import AckPolicy
from faststream.nats import JStream, NatsBroker, PullSub
from faststream.nats.subscriber.usecases import PullStreamSubscriber
from nats.aio.msg import Msg

from contracts.audit import Event, EventType
from contracts.subjects.subject import PREFIX, Class
from libs.bus.codec import MessageInvalid, decode
from libs.bus.listening.broker import GRACE_S
from libs.bus.listening.heard import CYCLE, TYPE_HEADER, TYPE_PREFIX
from libs.bus.pull import Pull, Streamed
from libs.bus.streams import NOTICE_STREAM
from libs.runtime.errors import DeskError

RETRY_AFTER_S = 1.0
"""After it a message comes again that its handler did not settle."""
KNOWN_TYPES = frozenset(map(str, EventType))
TYPES_TOLD_MAX = 100
"""Unknown types of events of which each is told once."""

log = structlog.get_logger()


class HandlerFailed(Exception):
    """A handler raised its cause; that has been told, and the event comes again."""


@dataclass
class Delivery:
    """One delivery of an event by a durable consumer: it is settled by `ack` or `nack`."""

    _message: Msg
    settled: bool = field(default=False, init=False)

    @property
    def attempt(self) -> int:
        """How often the event has been delivered, this time included."""
        return int(self._message.metadata.num_delivered or 1)

    @property
    def sequence(self) -> int:
        """The event's number in its stream."""
        return int(self._message.metadata.sequence.stream)

    @property
    def pending(self) -> int:
        """Events behind this one that the consumer has not delivered yet."""
        return int(self._message.metadata.num_pending or 0)

    async def ack(self) -> None:
        """Dealt with: it does not come again, unless this word is lost."""
        self.settled = True
        await Streamed(self._message).acknowledge()

    async def nack(self, delay_s: float = 0.0) -> None:
        """Not dealt with: it comes again, to whoever pulls then, after `delay_s` seconds."""
        self.settled = True
        try:
            await self._message.nak(delay=delay_s or None)
        except nats.errors.Error as error:
            # It comes again all the same, after the consumer's own time.
            log.warning("listening.not_given_back", error=type(error).__name__)

    async def in_progress(self) -> None:
        """It takes longer: the consumer's time begins anew."""
        await self._message.in_progress()


@dataclass(frozen=True)
class Delivered:
    """An event with its delivery; None where it cannot be read."""

    event: Event | None
    delivery: Delivery


class Reader:
    """Decodes the messages of one durable; FastStream calls it.

    What this version cannot read it never can, and it is ended. An event of a type that it does not
    know is a newer desk's, while that is being upgraded: acknowledged, and told once a type.
    """

    def __init__(self) -> None:
        self._strangers: set[str] = set()

    async def __call__(self, message: StreamMessage[Any]) -> Delivered:
        """Decode one message."""
        delivery = Delivery(message.raw_message)
        try:
            return Delivered(decode(Event, message.body), delivery)
        except MessageInvalid as error:
            kind = message.headers.get(TYPE_HEADER, "").removeprefix(TYPE_PREFIX)
            if kind and kind not in KNOWN_TYPES:
                self._tell(kind)
                await delivery.ack()
            else:
                subject = message.raw_message.subject
                log.warning("listening.unreadable", subject=subject, why=error.message)
                with contextlib.suppress(nats.errors.Error):  # then it comes again, and is ended
                    await message.raw_message.term()
            return Delivered(None, delivery)

    def _tell(self, kind: str) -> None:
        if kind not in self._strangers and len(self._strangers) < TYPES_TOLD_MAX:
            self._strangers.add(kind)
            log.warning("listening.type_unknown", type=kind, todo="upgrade this program too")


class PulledSubscriber(PullStreamSubscriber):
    """FastStream's pull subscriber, read by libs.bus.pull: it only binds, keeps one request open,
    takes no acknowledgement's address from strangers, and gives back what it no longer handles."""

    __slots__ = ()

    pull: Pull
    pulling: asyncio.Task[None]
    on_ended: Callable[[BaseException], None]

    async def _create_subscription(self) -> None:
        durable = self.extra_options["durable"]
        self.pull = Pull(
            self.connection, self.stream.name, durable, self._process, self.pull_sub.batch_size
        )
        await self.pull.start()
        self.pulling = asyncio.create_task(self.pull.run())
        self.pulling.add_done_callback(self._ended)

    async def _process(self, message: Msg) -> None:
        with contextlib.suppress(HandlerFailed):
            await self.process_message(message)

    def _ended(self, pulling: "asyncio.Task[None]") -> None:
        if not pulling.cancelled() and (error := pulling.exception()) is not None:
            self.on_ended(error)

    async def stop(self) -> None:
        """Take nothing more; what is in hand may end, and is given back where it does not."""
        if self.running:
            self.pulling.cancel()
            await self.pull.drain(GRACE_S)
        await super().stop()


def pulled(
    broker: NatsBroker,
    stream: str,
    durable: str,
    at_once_max: int,
    handle: Callable[[Delivered], Awaitable[None]],
    on_ended: Callable[[BaseException], None],
) -> None:
    """Make `handle` hear a durable consumer."""
    kind = Class.NOTICE if stream == NOTICE_STREAM else Class.EVENT
    subscriber = broker.subscriber(
        f"{PREFIX}.{kind}.*.*.{CYCLE}",
        stream=JStream(stream, declare=False),
        durable=durable,
        pull_sub=PullSub(batch_size=at_once_max),
        ack_policy=AckPolicy.MANUAL,
        no_reply=True,
        decoder=Reader(),
        title=durable,
    )
    # The broker makes its subscribers by itself, and takes no other class of them.
    subscriber.__class__ = PulledSubscriber
    ours = cast("PulledSubscriber", subscriber)
    ours.on_ended = on_ended
    ours(handle)


async def settled(
    delivered: Delivered,
    handle: Callable[[Any, Delivery], Awaitable[None]],
    skipped: Callable[[Delivery], None],
) -> None:
    """Give an event to its handler; what it leaves unsettled, or fails at, comes again. A message
    that holds no event is `skipped`."""
    event, delivery = delivered.event, delivered.delivery
    if event is None:
        skipped(delivery)
        return
    delay_s = RETRY_AFTER_S
    try:
        await handle(event, delivery)
    except asyncio.CancelledError:
        delay_s = 0.0
        raise
    except Exception as error:
        log.error("listening.handler_failed", event_id=str(event.event_id), error=_why(error))  # noqa: TRY400
        raise HandlerFailed from error
    finally:
        if not delivery.settled:
            await delivery.nack(delay_s)


def _why(error: Exception) -> str:
    """The error, without a stranger's words: they may quote an address, and a key in it."""
    if isinstance(error, DeskError):
        return f"{error.code}: {error.message}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}"
