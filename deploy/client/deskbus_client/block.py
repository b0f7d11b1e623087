"""A connection that is opened for a block."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

T = TypeVar("T")


class _Unopened:
    """Nothing is connected yet: whatever is asked of it, it says how to."""

    _how = ""

    if not TYPE_CHECKING:  # a type checker finds the mistake itself

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"open() connects for a block, and .{name} is the connection's: "
                f"write `{self._how}`, then desk.{name} in that block",
                name=name,
                obj=self,
            )


class Block(_Unopened, AbstractContextManager[T], Generic[T]):
    """What `Desk.open` gives: the desk is connected in its `with` block."""

    _how = "with Desk.open(...) as desk:"

    def __init__(self, connecting: AbstractContextManager[T]) -> None:
        self._connecting = connecting

    def __enter__(self) -> T:
        return self._connecting.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._connecting.__exit__(kind, error, trace)


class AsyncBlock(_Unopened, AbstractAsyncContextManager[T], Generic[T]):
    """What `AsyncDesk.open` gives: the desk is connected in its `async with` block."""

    _how = "async with AsyncDesk.open(...) as desk:"

    def __init__(self, connecting: AbstractAsyncContextManager[T]) -> None:
        self._connecting = connecting

    async def __aenter__(self) -> T:
        return await self._connecting.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._connecting.__aexit__(kind, error, trace)
