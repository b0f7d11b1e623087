"""The desk for a program without asyncio: the same calls, each waited for."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from contracts.account_query import AccountView
from contracts.audit import EventAt, EventType
from contracts.cycle_query import CycleView
from contracts.execution import DecisionsPage
from contracts.message import MAIN_ACCOUNT
from contracts.performance import PerformanceView
from contracts.subjects.subject import Answered, Asked, Subject
from deskbus_client.block import AsyncBlock, Block
from deskbus_client.desk import AsyncDesk, DecisionAt

T = TypeVar("T")


class Desk:
    """`AsyncDesk` from any thread; each method is documented there. Made by `open`."""

    def __init__(self, desk: AsyncDesk, loop: asyncio.AbstractEventLoop) -> None:
        self._desk = desk
        self._loop = loop

    @classmethod
    def open(
        cls,
        data_dir: Path | str | None = None,
        *,
        url: str | None = None,
        key: Path | str | None = None,
        patience_s: float = 60.0,
    ) -> Block["Desk"]:
        """Connect while the block runs, in a thread of its own: `with Desk.open() as desk:`. See
        `AsyncDesk.open`."""
        opening = AsyncDesk.open(data_dir, url=url, key=key, patience_s=patience_s)
        return Block(cls._connected(opening))

    @classmethod
    @contextmanager
    def _connected(cls, opening: AsyncBlock[AsyncDesk]) -> Iterator["Desk"]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="deskbus-client", daemon=True)
        thread.start()
        try:
            desk = _wait(loop, opening.__aenter__())
            try:
                yield cls(desk, loop)
            finally:
                _wait(loop, opening.__aexit__(None, None, None))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def request(
        self,
        provider: str = "rules",
        *,
        account: str | None = None,
        as_of: date | None = None,
        universe: Sequence[str] | None = None,
        approval: bool = False,
        key: str | None = None,
    ) -> UUID:
        """Request a decision cycle; its id."""
        return self._result(
            self._desk.request(
                provider,
                account=account,
                as_of=as_of,
                universe=universe,
                approval=approval,
                key=key,
            )
        )

    def wait(self, cycle_id: UUID, timeout_s: float = 600.0) -> CycleView:
        """The cycle once it has ended."""
        return self._result(self._desk.wait(cycle_id, timeout_s))

    def cycle(self, cycle_id: UUID) -> CycleView:
        """A cycle and all that was decided."""
        return self._result(self._desk.cycle(cycle_id))

    def events(
        self, *types: EventType | str, after: str | None = None, back: int = 0
    ) -> Iterator[EventAt]:
        """Every event of these types, for as long as it is read."""
        return self._each(self._desk.events(*types, after=after, back=back))

    def decisions(self, *, after: str | None = None, back: int = 0) -> Iterator[DecisionAt]:
        """Every decision, for as long as it is read."""
        return self._each(self._desk.decisions(after=after, back=back))

    def past_decisions(self, limit: int = 20) -> DecisionsPage:
        """The newest decisions."""
        return self._result(self._desk.past_decisions(limit))

    def account(self, name: str = MAIN_ACCOUNT) -> AccountView:
        """An account's books and value."""
        return self._result(self._desk.account(name))

    def performance(self, name: str = MAIN_ACCOUNT) -> PerformanceView:
        """An account's return beside its benchmark."""
        return self._result(self._desk.performance(name))

    def accounts(self) -> tuple[str, ...]:
        """The names of all accounts that have traded."""
        return self._result(self._desk.accounts())

    def ask(self, subject: Subject[Asked, Answered], message: Asked) -> Answered:
        """The answer to any question or request that your key may send."""
        return self._result(self._desk.ask(subject, message))

    def _result(self, work: Coroutine[Any, Any, T]) -> T:
        return _wait(self._loop, work)

    def _each(self, reading: AsyncGenerator[T, None]) -> Iterator[T]:
        async def further() -> T:
            return await anext(reading)

        try:
            while True:
                yield self._result(further())
        finally:
            self._result(reading.aclose())


def _wait(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """The result of work in the loop's thread. Whoever is interrupted ends the work too."""
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
