"""The files of a replay directory, each read: what it is, and what is wrong with it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

import polars as pl

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
    no_lot = await _without_lot(store)
    for ticker, path in sorted(store.price_files.items()):
        what = f"prices of {ticker}"
        try:
            days = await store.dates(ticker)
        except MarketError as error:
            yield CheckedFile(path.name, what, refused=error.message)
            continue
        form = store.form(ticker)
        notes = [form.caveat or form.doubt]
        if ticker == next(iter(no_lot), None):
            notes.append(
                f"of {len(no_lot)} {'tickers' if len(no_lot) > 1 else 'ticker'} of XHKG sectors.csv"
                " has no lot: their shares count as lots of 1"
            )
        note = "; ".join(filter(None, notes))
        yield CheckedFile(path.name, what, len(days), days[0], days[-1], note=note)
    for kind, path in sorted(store.record_files.items()):
        try:
            rows = await store.records(kind, kind)
        except MarketError as error:
            yield CheckedFile(path.name, kind, refused=error.message)
        else:
            dropped = store.dropped.get(kind, 0)
            note = f"{dropped} rows without known_at are left out" if dropped else ""
            refused = "; ".join(str(row.finding) for row in store.bad_rows(kind))
            yield CheckedFile(path.name, kind, rows.height, refused=refused, note=note)
    for stray in store.strays:
        yield CheckedFile(
            stray.file, "ignored", note=f"{stray.what}; {stray.remedy}", is_ignored=True
        )


async def _without_lot(store: ReplayStore) -> Sequence[str]:
    """The tickers of Hong Kong, where each security has a lot of its own, that have none here."""
    known: set[str] = set()
    if store.has("sectors"):
        with suppress(MarketError):
            rows = (await store.records("sectors", "sectors")).filter(pl.col("lot").is_not_null())
            known = set(rows["ticker"])
    names = await store.readable(sorted(store.price_files))
    return [name for name in names if store.exchange_of(name) == "XHKG" and name not in known]
