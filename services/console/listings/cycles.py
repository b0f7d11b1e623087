"""Cycles as a list: filtered, searched and sorted, a page at a time.

What an index finds, a status, a kind or sessions, is found in all there are. For the rest cycles
are walked along that index, `WALKED_MAX` of them at most; whoever wants more asks behind the last.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from contracts.cycle import KINDS
from contracts.cycle_query import CycleSort, CyclesPage, CyclesQuery
from libs.postgres.pool import Record
from libs.runtime import ids
from libs.runtime.errors import DeskError
from libs.runtime.model_settings import provider_names
from libs.runtime.nearest import UnknownName
from libs.runtime.settings import Settings
from services.console import logic
from services.console.listings.outcomes import CycleOutcomes
from services.console.sizes import fitting
from services.console.store import CYCLES_SEARCHED, FRONT, CyclePlace, Store, sql
from services.console.views.results import of_cycles

WALKED_MAX = CYCLES_SEARCHED
BATCH = 250
"""Cycles that are read at a time: a page is mostly full before all are."""
KEYS: Mapping[CycleSort, Callable[[Record], Any]] = {
    CycleSort.STARTED: lambda row: row["accepted_at"],
    CycleSort.TOOK: lambda row: (
        row["ended_at"] - row["accepted_at"] if row["ended_at"] else timedelta.max
    ),
    CycleSort.AS_OF: lambda row: row["as_of"],
    CycleSort.KIND: lambda row: row["kind"],
    CycleSort.STATUS: lambda row: row["status"],
    CycleSort.TOKENS: lambda row: row["tokens"],
    CycleSort.COST: lambda row: row["cost_usd"] or Decimal(0),
}
"""What a list is sorted by. What still runs has taken longest."""


class BadFilter(DeskError):
    """A filter that nothing can match, or a position in a list that does not exist."""

    code = "invalid"

    def __init__(self, text: str, field: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field


@dataclass(frozen=True)
class CyclesFit:
    """The rows of a page, in its order. `before` asks for those behind them, None where there are
    none; `searched` were looked through, and `cut` says that there are more."""

    rows: Sequence[Record]
    before: UUID | None = None
    searched: int = 0
    cut: bool = False


@dataclass(frozen=True)
class CycleList:
    """The list, over these tables."""

    store: Store
    outcomes: CycleOutcomes
    settings: Settings

    async def page(self, query: CyclesQuery) -> CyclesPage:
        """The cycles that the query asks for, each with its outcome.

        Raises UnknownAccount and UnknownName where a filter names what there is none of, and
        BadFilter where it cannot be.
        """
        if query.since and query.until and query.until < query.since:
            raise BadFilter(f"{query.since} is after until, {query.until}", "since")
        fit = await self._fit(query)
        if not fit.rows:
            await self._refuse_unknown(query)
        wanted = [row["cycle_id"] for row in fit.rows]
        by_id = {
            row["cycle_id"]: row for row in await self.store.rows(sql.cycles_listed, list(wanted))
        }
        views = [logic.cycle_view(by_id[cycle_id]) for cycle_id in wanted if cycle_id in by_id]
        views = [*await of_cycles(views, store=self.store)]
        outcomes = await self.outcomes.of(views)
        kept = fitting(
            view.model_copy(update={"outcome": outcomes.get(view.cycle_id, "")})
            for view in views
            if view.cycle_id is not None
        )
        before = fit.before
        if kept and len(kept) < len(views):
            before = kept[-1].cycle_id
        return CyclesPage(cycles=tuple(kept), before=before, searched=fit.searched, cut=fit.cut)

    async def _fit(self, query: CyclesQuery) -> CyclesFit:
        if query.before is not None or not query.text:
            return await self._walked(query)
        if len(query.text) >= ids.ID_CHARS_SHOWN and (rows := await self._by_id(query)):
            return CyclesFit(rows)
        # So few digits may be a word: ADBE is a ticker, 2012 a year.
        fit = await self._walked(query)
        return fit if fit.rows else replace(fit, rows=await self._by_id(query))

    async def _walked(self, query: CyclesQuery) -> CyclesFit:
        if query.sort is not CycleSort.STARTED or query.ascending:
            return await self._sorted(query)
        return await self._in_order(query)

    async def _by_id(self, query: CyclesQuery) -> Sequence[Record]:
        """Those whose id begins with the text, of all there are."""
        between = ids.id_range(query.text or "")
        if between is None:
            return ()
        rows = await self.store.rows(sql.cycles_beginning, *between, query.limit)
        return [row for row in rows if _fits(row, query)]

    async def _in_order(self, query: CyclesQuery) -> CyclesFit:
        """The newest first: the walk ends where the page is full."""
        matches: list[Record] = []
        searched, last = 0, None
        async for batch in self._walk(query, await self._behind(query)):
            for row in await self._matching(batch, query):
                if len(matches) == query.limit:
                    return CyclesFit(matches, matches[-1]["cycle_id"], searched)
                matches.append(row)
            searched, last = searched + len(batch), batch[-1]["cycle_id"]
        is_cut = searched >= WALKED_MAX
        return CyclesFit(matches, last if is_cut else None, searched, is_cut)

    async def _sorted(self, query: CyclesQuery) -> CyclesFit:
        """Of the newest ones: a sort needs all of what it sorts."""
        rows: list[Record] = []
        searched = 0
        async for batch in self._walk(query, FRONT):
            rows += await self._matching(batch, query)
            searched += len(batch)
        rows.sort(key=KEYS[query.sort], reverse=not query.ascending)
        first = 0
        if query.before is not None:
            behind = (await self._place(query.before)).cycle_id
            places = {row["cycle_id"]: number for number, row in enumerate(rows, 1)}
            if behind not in places:
                raise BadFilter(f"{query.before} is not in this list: start again", "before")
            first = places[behind]
        page = rows[first : first + query.limit]
        more = first + len(page) < len(rows)
        is_cut = searched >= WALKED_MAX
        return CyclesFit(page, page[-1]["cycle_id"] if more else None, searched, is_cut)

    async def _walk(
        self, query: CyclesQuery, behind: CyclePlace
    ) -> AsyncIterator[Sequence[Record]]:
        """Batches of the newest cycles behind the place, `WALKED_MAX` in all."""
        left = WALKED_MAX
        is_narrow = any((query.text, query.account, query.provider, _is_mixed(query)))
        by_time = query.sort is CycleSort.STARTED and not query.ascending
        size = BATCH if is_narrow and by_time else query.limit + 1 if by_time else WALKED_MAX
        while left > 0:
            batch = await self._batch(query, behind, min(size, left))
            if batch:
                yield batch
                row = batch[-1]
                behind = CyclePlace(row["as_of"], row["accepted_at"], row["cycle_id"])
            if len(batch) < min(size, left):
                return
            left -= len(batch)

    async def _batch(self, query: CyclesQuery, behind: CyclePlace, limit: int) -> Sequence[Record]:
        if query.since or query.until:
            first, last = query.since or date.min, query.until or date.max
            return await self.store.walked_by_session(behind, limit, first, last)
        status = query.status.value if query.status else None
        return await self.store.walked(behind, limit, status=status, kind=query.kind)

    async def _matching(self, rows: Sequence[Record], query: CyclesQuery) -> Sequence[Record]:
        fit = [row for row in rows if _fits(row, query)]
        if not query.text:
            return fit
        outcomes = await self.outcomes.of_rows(fit)
        return [row for row in fit if _says(row, outcomes.get(row["cycle_id"], ""), query.text)]

    async def _behind(self, query: CyclesQuery) -> CyclePlace:
        return FRONT if query.before is None else await self._place(query.before)

    async def _place(self, digits: str) -> CyclePlace:
        between = ids.id_range(digits)
        rows = await self.store.rows(sql.cycles_beginning, *between, 2) if between else ()
        if len(rows) != 1:
            raise BadFilter(f"no single cycle has the id {digits}: start again", "before")
        return CyclePlace(rows[0]["as_of"], rows[0]["accepted_at"], rows[0]["cycle_id"])

    async def _refuse_unknown(self, query: CyclesQuery) -> None:
        """Raise where nothing was found because of a name that there is not: a typo would look like
        an answer."""
        kind = query.kind
        # A workflow of somebody's own has another kind: then there is a cycle of it.
        if kind not in {None, *KINDS} and not await self.store.walked(FRONT, 1, kind=kind):
            raise UnknownName("kind of cycle", str(kind), KINDS, field="kind")
        await self.store.require_account(query.account)
        providers = providers_of(self.settings)
        if query.provider is not None and query.provider not in providers:
            raise UnknownName("provider", query.provider, providers, field="provider")


def providers_of(settings: Settings) -> Sequence[str]:
    """The providers that cycles may name here."""
    return provider_names(settings.providers, demo=settings.demo)


def _is_mixed(query: CyclesQuery) -> bool:
    """Whether there is a filter beside the one whose index is walked."""
    return sum((bool(query.since or query.until), query.status is not None, bool(query.kind))) > 1


def _fits(row: Record, query: CyclesQuery) -> bool:
    if query.status not in {None, row["status"]} or query.kind not in {None, row["kind"]}:
        return False
    if not (query.since or date.min) <= row["as_of"] <= (query.until or date.max):
        return False
    if query.account is None and query.provider is None:
        return True
    return any(
        query.account in {None, lane["account"]} and query.provider in {None, lane["provider"]}
        for lane in orjson.loads(row["request"])["pipelines"]
    )


def _says(row: Record, outcome: str, text: str) -> bool:
    """Whether each word of the text is in what is shown of the cycle, or begins its id."""
    cycle_id, about = str(row["cycle_id"]), f"{row['kind']} {row['requester']} {outcome}".casefold()
    return all(word in about or cycle_id.startswith(word) for word in text.casefold().split())
