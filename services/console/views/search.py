"""The search over everything that has a name or an id."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote, urlencode

from contracts.http import SearchResult, SearchView
from libs.facts import amounts
from libs.report import links, story
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
            *(
                SearchResult.model_validate(
                    {"kind": kind, "title": name, "detail": detail, "page": page}
                )
                for kind, name, detail, page in await _by_name(sought, store, settings)
            ),
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
            page=links.cycle(row["cycle_id"]),
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


async def _by_name(
    sought: str, store: Store, settings: Settings
) -> Sequence[tuple[str, str, str, str]]:
    """Kind, name, detail and page of each."""
    jobs = settings.schedule.jobs
    accounts = _like(sought, await store.accounts())
    tickers = await store.column(sql.tickers_like, sought, OF_A_KIND_MAX)
    strategies = _like(sought, await store.strategy_names())
    return (
        *(
            ("account", it, "portfolio", f"/portfolio?{urlencode({'account': it})}")
            for it in accounts
        ),
        *(("ticker", it, "chart and trades", f"/tickers/{quote(it, safe='')}") for it in tickers),
        *(("strategy", it, "", f"/strategies/{quote(it, safe='')}") for it in strategies),
        *(
            ("job", it, f"{jobs[it].kind}, schedule", f"/schedule#{it}")
            for it in _like(sought, jobs)
        ),
    )


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
