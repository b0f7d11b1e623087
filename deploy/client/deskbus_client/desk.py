"""The desk for a program on asyncio."""

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import TypeVar
from uuid import UUID, uuid4

from contracts.account_query import AccountQuery, AccountView
from contracts.audit import Event, EventAt, EventsSince, EventType
from contracts.cycle import CycleRequest, CycleStatus
from contracts.cycle_query import CycleQuery, CycleView
from contracts.event_data import EventOf
from contracts.execution import DecisionsPage, DecisionsQuery
from contracts.message import MAIN_ACCOUNT, Pipeline
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.risk import DecisionValidation
from contracts.subjects.accounts import ACCOUNT, PERFORMANCE
from contracts.subjects.approvals import DECISIONS
from contracts.subjects.cycles import CYCLE, REQUEST_CYCLE
from contracts.subjects.events import EVENTS_SINCE
from contracts.subjects.subject import Answered, Asked, Subject
from deskbus_client.block import AsyncBlock
from libs.bus.client import ALL_EVENTS, Client, DeskNotReachable, QuestionRefused, open_client
from libs.runtime.errors import DeskError, Unavailable

POLL_S = 5.0
"""How late an event comes at most whose live message was lost."""
RETRY_AFTER_S, RETRY_AFTER_S_MAX = 0.2, 5.0
"""The wait between two tries during an outage doubles up to the second."""
DATA_DIR = "DESKBUS_DATA_DIR"
RUNTIME_FILE = "runtime.json"
RUNTIME_BYTES_MAX = 65_536
SEED_SUFFIX = ".nk"
USER = "user"

T = TypeVar("T")


class NoDesk(DeskError):
    """No desk was found where it was looked for, or its key is not readable."""

    code = "no_desk"


class CycleRefused(DeskError):
    """The desk does not take the request; `code`, `field` and `suggestion` are its own."""

    def __init__(self, code: str, message: str, field: str | None, suggestion: str | None) -> None:
        super().__init__(message)
        self.code = code
        self.field = field
        self.suggestion = suggestion


class StillRunning(DeskError):
    """The cycle has not ended within the time that it was waited for; it goes on."""

    code = "still_running"


class EventsLost(DeskError):
    """Events behind the position cannot be had any more: go on without one, `back` as you like."""

    code = "events_lost"

    def __init__(self, position: str, reason: str) -> None:
        super().__init__(
            f"the events behind {position} cannot be had ({reason}); go on without a position"
        )


class DecisionAt(EventAt):
    """A decision, and the position right behind it."""

    event: EventOf[DecisionValidation]


class AsyncDesk:
    """One connection to a desk, under the name of its key. Made by `open`."""

    def __init__(self, client: Client, patience_s: float) -> None:
        self._client = client
        self._patience_s = patience_s

    @classmethod
    def open(
        cls,
        data_dir: Path | str | None = None,
        *,
        url: str | None = None,
        key: Path | str | None = None,
        patience_s: float = 60.0,
    ) -> AsyncBlock["AsyncDesk"]:
        """Connect while the block runs: `async with AsyncDesk.open() as desk:`.

        The desk is the one of `data_dir`, by default that of `DESKBUS_DATA_DIR`, else `.deskbus`.
        Of a desk elsewhere give the `url` of its NATS and the file with your `key`, whose name is
        that of the identity (`user.nk`); a `ca.pem` beside it is believed for `tls://`. An outage
        is waited for, up to `patience_s` seconds a call. Raises `NoDesk` and `DeskNotReachable`.
        """
        return AsyncBlock(cls._connected(data_dir, url, key, patience_s))

    @classmethod
    @asynccontextmanager
    async def _connected(
        cls,
        data_dir: Path | str | None,
        url: str | None,
        key: Path | str | None,
        patience_s: float,
    ) -> AsyncIterator["AsyncDesk"]:
        found_url, seed = _found(data_dir) if url is None else (url, None)
        path = Path(key) if key is not None else seed
        if path is None:
            raise NoDesk("a url needs a key: the file with your seed, such as user.nk")
        if path.suffix != SEED_SUFFIX or not path.is_file():
            raise NoDesk(f"{path} is no key: it is a file with the name of its identity, {USER}.nk")
        async with open_client(found_url, path.parent, path.stem) as client:
            yield cls(client, patience_s)

    async def request(
        self,
        provider: str = "rules",
        *,
        account: str | None = None,
        as_of: date | None = None,
        universe: Sequence[str] | None = None,
        approval: bool = False,
        key: str | None = None,
    ) -> UUID:
        """Request a decision cycle; its id.

        `as_of` None is the newest session. With the same `key` and body it is the same cycle,
        however often it is sent; None makes one, which is kept over an outage. What else a request
        can say goes with `ask(REQUEST_CYCLE, CycleRequest(...))`. Raises `CycleRefused`.
        """
        trades = {} if account is None else {"account": account}
        wanted = CycleRequest(
            idempotency_key=key or str(uuid4()),
            as_of=as_of,
            universe=None if universe is None else tuple(universe),
            pipelines=(Pipeline(name=provider, provider=provider, **trades),),
            approval_required=approval,
        )
        answer = await self.ask(REQUEST_CYCLE, wanted)
        if answer.outcome == "rejected" or answer.cycle_id is None:
            raise CycleRefused(
                answer.code or "invalid", answer.message, answer.field, answer.suggestion
            )
        return answer.cycle_id

    async def wait(self, cycle_id: UUID, timeout_s: float = 600.0) -> CycleView:
        """The cycle once it has ended. Raises `StillRunning` after `timeout_s` seconds.

        A proposal that waits for a person keeps its cycle running.
        """
        until = time.monotonic() + timeout_s
        async with self._client.events(cycle_id) as live:
            news = _News(live)
            try:
                while True:
                    view = await self.cycle(cycle_id)
                    if view.status is not CycleStatus.RUNNING:
                        return view
                    left = until - time.monotonic()
                    if left <= 0:
                        raise StillRunning(f"{cycle_id} runs after {timeout_s:g} s; it goes on")
                    await news.wait(min(left, POLL_S))
            finally:
                await news.close()

    async def cycle(self, cycle_id: UUID) -> CycleView:
        """A cycle and all that was decided. Raises `QuestionRefused` where there is none."""
        view = await self.ask(CYCLE, CycleQuery(cycle_id=str(cycle_id)))
        if not view.found:
            raise QuestionRefused("not_found", view.message)
        return view

    async def events(
        self, *types: EventType | str, after: str | None = None, back: int = 0
    ) -> AsyncGenerator[EventAt, None]:
        """Every event of these types (`decision`, `order_*`, none for all), in the desk's order,
        each once, for as long as it is read.

        It begins behind the position `after`, else `back` events of any type before now. Keep the
        position of the last event that you have dealt with: with it you miss none. Raises
        `EventsLost`, and `DeskNotReachable` after an outage longer than `patience_s`.
        """
        query = EventsSince(after=after, back=0 if after else back, types=tuple(map(str, types)))
        async with self._client.events(pattern=ALL_EVENTS) as live:
            news = _News(live)
            try:
                while True:
                    page = await self.ask(EVENTS_SINCE, query)
                    if page.gap is not None and query.after is not None:
                        raise EventsLost(query.after, page.gap)
                    for placed in page.events:
                        yield placed
                    query = query.model_copy(update={"after": page.position, "back": 0})
                    if not page.more:
                        await news.wait(POLL_S)
            finally:
                await news.close()

    async def decisions(
        self, *, after: str | None = None, back: int = 0
    ) -> AsyncGenerator[DecisionAt, None]:
        """Every decision, as `events` gives them."""
        reading = self.events(EventType.DECISION, after=after, back=back)
        async with contextlib.aclosing(reading):
            async for placed in reading:
                yield DecisionAt.model_validate(placed.model_dump())

    async def past_decisions(self, limit: int = 20) -> DecisionsPage:
        """The newest decisions, with what was ordered."""
        return await self.ask(DECISIONS, DecisionsQuery(limit=limit))

    async def account(self, name: str = MAIN_ACCOUNT) -> AccountView:
        """An account's books and value. Raises `QuestionRefused` where there is none."""
        view = await self.ask(ACCOUNT, AccountQuery(account=name))
        if not view.found:
            raise QuestionRefused("not_found", f"no account {name}: {', '.join(view.accounts)}")
        return view

    async def performance(self, name: str = MAIN_ACCOUNT) -> PerformanceView:
        """An account's return beside its benchmark, its curve and its round trips."""
        return await self.ask(PERFORMANCE, PerformanceQuery(account=name))

    async def accounts(self) -> tuple[str, ...]:
        """The names of all accounts that have traded."""
        return (await self.ask(ACCOUNT, AccountQuery(account=MAIN_ACCOUNT, fills=0))).accounts

    async def ask(self, subject: Subject[Asked, Answered], message: Asked) -> Answered:
        """The answer to any question or request of `contracts.subjects` that your key may send.

        Raises `QuestionRefused` with the desk's reason, and `DeskNotReachable` after an outage
        longer than `patience_s`.
        """
        return await self._over_outages(lambda: self._client.ask(subject, message))

    async def _over_outages(self, work: Callable[[], Awaitable[T]]) -> T:
        until = time.monotonic() + self._patience_s
        wait_s = RETRY_AFTER_S
        while True:
            try:
                return await work()
            except Unavailable:
                if time.monotonic() + wait_s > until:
                    raise
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_AFTER_S_MAX)


class _News:
    """Whether there is something new. A live event says no more: it may be lost, or repeated."""

    def __init__(self, live: AsyncIterator[Event]) -> None:
        self._live = live
        self._coming: asyncio.Task[Event | None] | None = None

    async def wait(self, within_s: float) -> None:
        """Wait for a live event, at most so long. Raises `DeskNotReachable` where none can come."""
        if self._coming is None:
            self._coming = asyncio.create_task(self._next())
        done, _ = await asyncio.wait({self._coming}, timeout=within_s)
        if done:
            ended = self._coming.result() is None
            self._coming = None
            if ended:
                raise DeskNotReachable("the connection was closed")

    async def close(self) -> None:
        """Wait no more."""
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.wait({self._coming})

    async def _next(self) -> Event | None:
        return await anext(self._live, None)


def _found(data_dir: Path | str | None) -> tuple[str, Path]:
    """The address of the desk that runs in a data directory, and the key for programs."""
    path = Path(data_dir or os.environ.get(DATA_DIR) or ".deskbus") / RUNTIME_FILE
    try:
        with path.open("rb") as file:
            desk = json.loads(file.read(RUNTIME_BYTES_MAX))
        return str(desk["nats_url"]), Path(desk["secrets_dir"]) / f"{USER}{SEED_SUFFIX}"
    except FileNotFoundError:
        raise NoDesk(
            f"no desk runs here ({path} is not there): start one with `deskbus up`, or give "
            "data_dir, or url and key"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoDesk(f"{path} cannot be read: {error}") from None
