"""Operations of all cycles as a list: filtered and searched, a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from uuid import UUID

import orjson

from contracts.operation import OperationsQuery, OperationView
from libs.postgres.pool import Record
from libs.runtime import ids
from services.console.listings.cycles import BadFilter
from services.console.store import FRONT_OPERATION, PlaceOfOperation, Store, sql
from services.console.views import strategy, tree

SEARCHED_MAX = 600
"""Operations among which a text is looked for, of those that fit the other filters."""


@dataclass(frozen=True)
class OperationsFit:
    """A page; `before` asks for those behind it, None where there are none. `cut` says that a text
    was looked for in `SEARCHED_MAX` operations, and that there are more."""

    rows: Sequence[Record]
    before: UUID | None = None
    cut: bool = False

    @property
    def nodes(self) -> Sequence[OperationView]:
        """The operations as they are shown."""
        return list(map(tree.operation_node, self.rows))


@dataclass(frozen=True)
class OperationList:
    """The list, over these tables."""

    store: Store

    async def page(self, like: OperationsQuery) -> OperationsFit:
        """The operations that are so, those of the newest cycles first.

        Raises UnknownAccount for an account that there is not, and BadFilter for what cannot be.
        """
        if like.since and like.until and like.until < like.since:
            raise BadFilter(f"{like.since} is after until, {like.until}", "since")
        page = await self._fit(like)
        if not page.rows:
            await self.store.require_account(like.account)
        return page

    async def _fit(self, like: OperationsQuery) -> OperationsFit:
        if like.before is not None or not like.text:
            return await self._read(like)
        if len(like.text) >= ids.ID_CHARS_SHOWN and (rows := await self._by_id(like)):
            return OperationsFit(rows)
        # So few digits may be a word: ADBE is a ticker, 2012 a year.
        fit = await self._read(like)
        return fit if fit.rows else replace(fit, rows=await self._by_id(like))

    async def _read(self, like: OperationsQuery) -> OperationsFit:
        behind = FRONT_OPERATION if like.before is None else await self._place(like.before)
        among = SEARCHED_MAX if like.text else like.limit + 1
        rows = await self.store.newest_operations(
            like.status,
            _step(like),
            among,
            account=like.account,
            since=like.since or date.min,
            until=like.until or date.max,
            behind=behind,
        )
        fit = [row for row in rows if _says(row, like.text)]
        if len(fit) > like.limit:
            return OperationsFit(fit[: like.limit], fit[like.limit - 1]["op_id"])
        is_cut = bool(like.text) and len(rows) == among
        return OperationsFit(fit, rows[-1]["op_id"] if is_cut else None, is_cut)

    async def _by_id(self, like: OperationsQuery) -> Sequence[Record]:
        """Those whose id or whose cycle's id begins with the text, of all there are."""
        between = ids.id_range(like.text or "")
        if between is None:
            return ()
        own = await self.store.rows(sql.operations_beginning, *between, like.limit)
        cycles = await self.store.rows(sql.cycles_beginning, *between, like.limit)
        rows = [
            *await self.store.rows(sql.operations_listed, [row["op_id"] for row in own]),
            *await self.store.rows(
                sql.operations_of_cycles, [row["cycle_id"] for row in cycles], like.limit
            ),
        ]
        return [row for row in rows if _fits(row, like)][: like.limit]

    async def _place(self, digits: str) -> PlaceOfOperation:
        between = ids.id_range(digits)
        rows = await self.store.rows(sql.operations_beginning, *between, 2) if between else ()
        place = await self.store.place_of_operation(rows[0]["op_id"]) if len(rows) == 1 else None
        if place is None:
            raise BadFilter(f"no single operation has the id {digits}: start again", "before")
        return place


def _step(like: OperationsQuery) -> str | None:
    """The step that the type of an operation stands for."""
    return None if like.type in {None, "operation"} else strategy.STEPS.get(like.type, like.type)


def _fits(row: Record, like: OperationsQuery) -> bool:
    return (
        like.status in {None, row["status"]}
        and _step(like) in {None, row["step"]}
        and like.account in {None, row["account"]}
        and (like.since or date.min) <= row["as_of"] <= (like.until or date.max)
    )


def _says(row: Record, text: str | None) -> bool:
    """Whether each word of the text is in what is shown of the operation, or begins an id."""
    if not text:
        return True
    node = tree.operation_node(row)
    result = orjson.dumps(node.result_summary).decode()
    about = f"{node.state}/{node.name} {node.service} {node.pipeline} {node.error_message} {result}"
    own, text_of = (str(row["op_id"]), str(row["cycle_id"])), about.casefold()
    return all(
        word in text_of or any(one.startswith(word) for one in own)
        for word in text.casefold().split()
    )
