"""The files of a replay directory, each read: what it is, and what is wrong with it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date

from libs.market.errors import MarketError
from libs.market.replay.store import ReplayStore


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file: what it is, its rows, its first and last session, why it is not used, and what
    whoever uses it must know. `first` and `last` are None for records."""

    name: str
    what: str
    rows: int | None = None
    first: date | None = None
    last: date | None = None
    refused: str = ""
    note: str = ""
    is_ignored: bool = False


async def checked_files(store: ReplayStore) -> AsyncIterator[CheckedFile]:
    """Every file that the desk would read, prices first; then those that it ignores."""
    for ticker, path in sorted(store.price_files.items()):
        what = f"prices of {ticker}"
        try:
            days = await store.dates(ticker)
        except MarketError as error:
            yield CheckedFile(path.name, what, refused=error.message)
            continue
        form = store.form(ticker)
        yield CheckedFile(
            path.name, what, len(days), days[0], days[-1], note=form.caveat or form.doubt
        )
    for kind, path in sorted(store.record_files.items()):
        try:
            rows = await store.records(kind, kind)
        except MarketError as error:
            yield CheckedFile(path.name, kind, refused=error.message)
        else:
            dropped = store.dropped.get(kind, 0)
            note = f"{dropped} rows without known_at are left out" if dropped else ""
            yield CheckedFile(path.name, kind, rows.height, note=note)
    for stray in store.strays:
        yield CheckedFile(
            stray.file, "ignored", note=f"{stray.what}; {stray.remedy}", is_ignored=True
        )
