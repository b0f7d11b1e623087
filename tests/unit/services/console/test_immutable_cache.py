"""What is read once, and what goes where too much is kept."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from services.console.immutable_cache import ImmutableCache

A, B, C = (UUID(int=number) for number in range(1, 4))


class Source:
    def __init__(self) -> None:
        self.asked: list[Sequence[UUID]] = []

    async def read(self, new: Sequence[UUID]) -> Mapping[UUID, str]:
        """All but C, in an order that is the database's own."""
        self.asked.append(tuple(new))
        return {key: f"{key.int}" for key in reversed(new) if key != C}


async def test_each_is_read_once_and_comes_in_the_order_asked_for() -> None:
    source = Source()
    kept = ImmutableCache(source.read, 10)

    assert await kept.of([A, B, C]) == ["1", "2"]
    assert await kept.of([B, A, C]) == ["2", "1"]
    assert source.asked == [(A, B, C), (C,)]


async def test_of_those_asked_for_at_once_the_last_one_stays_whatever_order_they_were_read_in() -> (
    None
):
    source = Source()
    kept = ImmutableCache(source.read, 1)

    await kept.of([A, B])
    assert await kept.of([A, B]) == ["1", "2"]
    assert source.asked == [(A, B), (A,)]
