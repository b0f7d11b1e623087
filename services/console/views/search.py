"""The search over everything that has a name or an id."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote, urlencode

from contracts.http import SearchResult, SearchView
from libs.facts import amounts
from libs.report import story
from libs.report.settings import meanings
from libs.runtime import ids
from libs.runtime.settings import PREFIX, Settings
from services.console.store import Store, sql

MEANING_CHARS = 60
"""Of what a setting means."""
OF_A_KIND_MAX = 6
"""Results of one kind: whoever wants more types more."""


async def search(text: str, *, store: Store, settings: Settings) -> SearchView:
    """Accounts, tickers, strategies, jobs and settings by a part of their name; cycles and
    operations by the first digits of their id."""
    sought = text.strip()
    if not sought:
        return SearchView()
    return SearchView(
        results=(
            *await _by_id(sought, store),
            *_accounts(sought, await store.accounts()),
            *_tickers(await store.tickers_like(sought, OF_A_KIND_MAX)),
            *_strategies(sought, await store.strategy_names()),
            *_jobs(sought, settings),
            *_settings(sought),
        )
    )


async def _by_id(digits: str, store: Store) -> Sequence[SearchResult]:
    between = ids.id_range(digits)
    if between is None:
        return ()
    cycles = [
        SearchResult(
            kind="cycle",
            title=f"{amounts.short(row['cycle_id'])} {story.title(row['kind'], row['as_of'])}",
            detail=row["status"],
            page=f"/cycles/{row['cycle_id']}",
        )
        for row in await store.rows(sql.cycles_beginning, *between, OF_A_KIND_MAX)
    ]
    operations = [
        SearchResult(
            kind="operation",
            title=f"{amounts.short(row['op_id'])} {row['state']}/{row['step']}",
            detail=row["status"],
            page=f"/operations/{row['op_id']}",
        )
        for row in await store.rows(sql.operations_beginning, *between, OF_A_KIND_MAX)
    ]
    return (*cycles, *operations)


def _accounts(sought: str, names: Iterable[str]) -> Sequence[SearchResult]:
    return [
        SearchResult(
            kind="account", title=name, detail="portfolio", page=_at("/portfolio", account=name)
        )
        for name in _like(sought, names)
    ]


def _tickers(names: Iterable[str]) -> Sequence[SearchResult]:
    return [
        SearchResult(
            kind="ticker",
            title=name,
            detail="chart and trades",
            page=f"/tickers/{quote(name, safe='')}",
        )
        for name in names
    ]


def _strategies(sought: str, names: Iterable[str]) -> Sequence[SearchResult]:
    return [
        SearchResult(kind="strategy", title=name, page=f"/strategies/{quote(name, safe='')}")
        for name in _like(sought, names)
    ]


def _jobs(sought: str, settings: Settings) -> Sequence[SearchResult]:
    jobs = settings.schedule.jobs
    return [
        SearchResult(
            kind="job", title=name, detail=f"{jobs[name].kind}, schedule", page=f"/schedule#{name}"
        )
        for name in _like(sought, jobs)
    ]


def _settings(sought: str) -> Sequence[SearchResult]:
    """By name, by variable, and with blanks between the words of either."""
    names = {name.replace(".", "_"): name for name in meanings()}
    text = sought.casefold().removeprefix(PREFIX.casefold()).replace(" ", "_").replace(".", "_")
    return [
        SearchResult(
            kind="setting",
            title=name,
            detail=amounts.cut(meanings()[name], MEANING_CHARS),
            page=f"/settings#{name}",
        )
        for name in (names[flat] for flat in _like(text, names))
    ]


def _like(sought: str, names: Iterable[str]) -> Sequence[str]:
    """The names with the text in them, those that begin with it first."""
    text = sought.casefold()
    holding = [name for name in names if text in name.casefold()]
    return sorted(holding, key=lambda name: not name.casefold().startswith(text))[:OF_A_KIND_MAX]


def _at(page: str, **filters: str) -> str:
    return f"{page}?{urlencode(filters)}"
