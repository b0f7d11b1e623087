"""Records that stay as they are once they are there: each is read once."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar
from uuid import UUID

Kept = TypeVar("Kept")


class ImmutableCache(Generic[Kept]):
    """Records by id, kept; beyond `kept_max` the one that was longest not asked for goes first, and
    of those that were asked for at once the first."""

    def __init__(
        self, read: Callable[[Sequence[UUID]], Awaitable[Mapping[UUID, Kept]]], kept_max: int
    ) -> None:
        self._read = read
        self._kept_max = kept_max
        self._kept: OrderedDict[UUID, Kept] = OrderedDict()

    async def of(self, ids: Sequence[UUID]) -> Sequence[Kept]:
        """All of these that there are, in this order."""
        all_of = await self.by_id(ids)
        return [all_of[key] for key in ids if key in all_of]

    async def by_id(self, ids: Sequence[UUID]) -> Mapping[UUID, Kept]:
        """All of these that there are."""
        all_of = {key: self._kept[key] for key in ids if key in self._kept}
        if new := [key for key in ids if key not in all_of]:
            all_of |= await self._read(new)
        for key in ids:
            if key in all_of:
                self._kept[key] = all_of[key]
                self._kept.move_to_end(key)
        while len(self._kept) > self._kept_max:
            self._kept.popitem(last=False)
        return all_of
