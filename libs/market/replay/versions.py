"""The versions of a folder of market data, while its files change.

A version is the state of all files at one time, under a hash of their contents. A change counts
once a file has rested for SETTLED_S and is wholly valid; until then the content before stands. Work
that began with a version reads that one to its end (`libs.runtime.data_version`); everything else
reads the newest.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

import polars as pl
import structlog

from libs.files.bounds import FILE_BYTES_MAX
from libs.files.finding import FileFinding
from libs.market.errors import BadReplayData, ContentGone, MarketError
from libs.market.replay.kept import (
    CORRECTIONS_MAX,
    Correction,
    FileEntry,
    FolderSettings,
    KeptVersions,
    Newest,
    VersionManifest,
)
from libs.market.replay.layout import LABEL_FILE, RECORDS, Layout, layout_of
from libs.market.replay.parsed import ParsedFiles
from libs.market.replay.store import Contents, ReplayStore
from libs.runtime.data_version import version_read

SETTLED_S = 2.0
CHECK_EVERY_S = 1.0
VERSION_EVERY_S = 5.0
"""A version is made so long after the last, or when a cycle is accepted: not with every file that a
script writes."""
LOADED_MAX = 4
"""Versions that are kept in memory; others are opened again."""
WAIT_S = 6.0
"""How long a version that nobody has seen here is waited for: this process may see a change later
than the one that accepted the cycle."""
POLL_S = 0.5
_NOT_CHANGED = ("open", "high", "low", "close", "volume", "dividend", "split_factor")

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
State = tuple[str | int, ...]
"""Of a file: its name, and what tells a change of its content."""
Make = Callable[[ReplayStore], T]

log = structlog.get_logger(__name__)


class Version:
    """One version that is open, and what was made of its store. `id` is None where its files are
    read as they are."""

    def __init__(self, id: str | None, store: ReplayStore) -> None:  # noqa: A002
        self.id = id
        self.store = store
        self._made: dict[Make[Any], Any] = {}

    def of(self, make: Make[T]) -> T:
        """The result of a function of the store, which is called once."""
        if make not in self._made:
            self._made[make] = make(self.store)
        return cast("T", self._made[make])


class Versioned(Generic[T]):
    """A reader of a store, made once for each of a folder's versions."""

    def __init__(self, versions: "Versions", make: Make[T]) -> None:
        self._versions = versions
        self._make = make

    @property
    def known(self) -> T:
        """The reader of the version that is known without looking for changes."""
        return self._versions.known.of(self._make)

    async def read(self) -> T:
        """The reader of the version to read. Raises ContentGone, MarketError."""
        return (await self._versions.read()).of(self._make)


def at_version(
    method: Callable[Concatenate[T, P], Awaitable[R]],
) -> Callable[Concatenate[Versioned[T], P], Coroutine[Any, Any, R]]:
    """The same method, of the reader of the version to read."""

    async def answered(self: Versioned[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await method(await self.read(), *args, **kwargs)

    return answered


class Versions:
    """The versions of one directory. Raises BadReplayData for a directory that is none or holds no
    prices. `kept` is where all processes of a desk keep them."""

    def __init__(self, directory: Path, kept: KeptVersions) -> None:
        self._directory = directory
        self._name = str(directory.absolute())
        self._kept = kept
        self._parsed = ParsedFiles()
        self._open: dict[str, Version] = {}
        self._newest: Newest | None = None
        self._checked_at = float("-inf")
        self._waiting: dict[str, tuple[State | None, float]] = {}
        self._begins = self._is_postponed = False
        self._lock = threading.Lock()
        self._as_is = None if kept.exists else Version(None, ReplayStore(directory))

    @property
    def known(self) -> Version:
        """The version to read, as far as it is known without looking for changes."""
        wanted = version_read() or (self._newest.version if self._newest else None)
        at_hand = self._opened(wanted) if wanted else None
        try:
            return at_hand or self._plain
        except BadReplayData:
            kept = self._of_folder()
            at_hand = self._opened(kept.version) if kept else None
            if at_hand is None:
                raise
            return at_hand

    @property
    def _plain(self) -> Version:
        """The files as they are. Raises BadReplayData."""
        if self._as_is is None:
            self._as_is = Version(None, ReplayStore(self._directory))
        return self._as_is

    def _of_folder(self) -> Newest | None:
        """The newest version that is kept, where it is of this folder."""
        kept = self._kept.newest()
        if kept is None or kept.directory == self._name:
            return kept
        return kept if Path(kept.directory).resolve() == self._directory.resolve() else None

    @property
    def refused(self) -> Mapping[str, FileFinding]:
        """Changes that do not count as they stand, by ticker, kind of records or file of settings:
        what was there before is used."""
        return self._newest.refused if self._newest else {}

    @property
    def corrections(self) -> Sequence[Correction]:
        """Bars that were changed after the desk had read them, the newest last."""
        return self._newest.corrections if self._newest else ()

    async def read(self) -> Version:
        """The version to read. Raises ContentGone, MarketError."""
        wanted = version_read()
        if wanted is not None:
            return await self._wanted(wanted)
        if self._newest is None and not self._kept.exists:
            return self._plain
        return await self._looked(accepts=False)

    async def begin(self) -> Version:
        """The newest version as a desk starts: the files as they are now, whatever they were when
        the desk ran last."""
        self._begins, self._checked_at = True, float("-inf")
        return await self.newest()

    async def newest(self) -> Version:
        """The newest version, for a cycle that is accepted: after a look at the files where the
        last one is a second ago."""
        return await self._looked(accepts=True)

    async def _looked(self, *, accepts: bool) -> Version:
        if self._is_due(accepts=accepts):
            await asyncio.to_thread(self._refresh, accepts=accepts)
        newest = self._newest
        at_hand = self._opened(newest.version) if newest else None
        return at_hand or self._plain

    async def _wanted(self, wanted: str) -> Version:
        give_up_at = time.monotonic() + WAIT_S
        while (at_hand := self._opened(wanted)) is None:
            newest = await self.newest()
            if newest.id == wanted:
                return newest
            if time.monotonic() > give_up_at:
                what = f"accepted on version {wanted}, now {newest.id or 'unread'}"
                raise ContentGone(what)
            await asyncio.sleep(POLL_S)
        return at_hand

    def _opened(self, version: str) -> Version | None:
        at_hand = self._open.get(version)
        if at_hand is None and (manifest := self._kept.manifest(version)) is not None:
            at_hand = self._opened_as(manifest)
        return at_hand

    def _opened_as(self, manifest: VersionManifest) -> Version:
        while len(self._open) >= LOADED_MAX:
            self._open.pop(next(iter(self._open)), None)
        return self._open.setdefault(manifest.id, Version(manifest.id, self._store(manifest)))

    def _store(self, manifest: VersionManifest) -> ReplayStore:
        files = manifest.files
        paths = {
            key: self._kept.content(entry) or self._directory / entry.name
            for key, entry in files.items()
        }
        layout = Layout(
            **asdict(manifest.settings),
            prices={key: path for key, path in paths.items() if key not in RECORDS},
            records={key: path for key, path in paths.items() if key in RECORDS},
            doubled={key: entry.fault for key, entry in files.items() if entry.fault},
        )
        hashes = {key: entry.sha256 for key, entry in files.items()}
        return ReplayStore(self._directory, Contents(layout, hashes, self._parsed))

    # --- changes ------------------------------------------------------------------------------

    def _is_due(self, *, accepts: bool) -> bool:
        """Whether to look for changes: a look that made no version of them does not count for a
        cycle that is accepted."""
        is_old = time.monotonic() - self._checked_at >= CHECK_EVERY_S
        return self._newest is None or is_old or (accepts and self._is_postponed)

    def _refresh(self, *, accepts: bool) -> None:
        """Look for changes, and make a version of those that count. In a thread."""
        with self._lock:
            if not self._is_due(accepts=accepts):
                return
            try:
                self._look(accepts=accepts)
            finally:
                self._checked_at = time.monotonic()

    def _look(self, *, accepts: bool) -> None:
        before = self._of_folder()
        manifest = self._kept.manifest(before.version) if before else None
        if before is None or manifest is None:
            before = manifest = None
        try:
            layout = layout_of(self._directory)
        except BadReplayData as error:
            if before is None or self._begins:
                raise
            refused = {**before.refused, LABEL_FILE: error.finding}
            self._take(manifest, replace(before, refused=refused), before)
            return
        states = _states(layout)
        changed = {
            key
            for key in states.keys() | (before.seen.keys() if before else set())
            if before is None
            or (states.get(key) != before.seen.get(key) and self._is_settled(key, states.get(key)))
        }
        has_others = manifest is not None and _settings(layout) != manifest.settings
        if self._begins and before is not None:
            # Other settings apply to the whole folder.
            changed |= states.keys() if has_others else before.refused.keys() & states.keys()
        is_same = before is not None and has_others == (LABEL_FILE in before.refused)
        is_changed = bool(changed) or not is_same
        is_soon = not accepts and 0 <= time.time() - self._kept.written_at < VERSION_EVERY_S
        self._is_postponed = before is not None and is_changed and is_soon
        if before is not None and (self._is_postponed or not is_changed):
            self._begins = False
            self._take(manifest, before, before)
            return
        self._next(layout, states, changed, before, manifest)

    def _is_settled(self, key: str, state: State | None) -> bool:
        """Whether a file has been as it is for SETTLED_S: by its own times, or as seen here."""
        now = time.monotonic()
        if self._begins:
            return True
        if state is not None and time.time() - max(map(int, state[2:4])) / 1e9 >= SETTLED_S:
            self._waiting.pop(key, None)
            return True
        since = self._waiting.get(key)
        if since is None or since[0] != state:
            self._waiting[key] = (state, now)
            return False
        return now - since[1] >= SETTLED_S

    def _take(
        self, manifest: VersionManifest | None, newest: Newest, before: Newest | None
    ) -> None:
        if manifest is None:
            return
        if newest != before:
            self._kept.write(manifest, newest)
        if self._newest is None or self._newest.version != newest.version:
            self._open.pop(newest.version, None)  # its contents may be kept now
        self._newest = newest
        self._opened_as(manifest)

    def _next(
        self,
        layout: Layout,
        states: Mapping[str, State],
        changed: set[str],
        before: Newest | None,
        old: VersionManifest | None,
    ) -> None:
        """Take the changed files into a new version, as far as they are valid."""
        files = dict(old.files) if old is not None else {}
        seen = dict(before.seen) if before is not None else {}
        refused = {
            key: finding
            for key, finding in (before.refused.items() if before else ())
            if key not in changed and key != LABEL_FILE
        }
        paths = {**layout.prices, **layout.records}
        for key in changed:
            if key not in states:
                files.pop(key, None)
                seen.pop(key, None)
                continue
            entry = self._entry(paths[key], layout.doubled.get(key))
            if _state(paths[key], key in layout.doubled) == states[key]:  # else it changes now
                files[key], seen[key] = entry, states[key]
        settings = _settings(layout)
        if old is not None and not self._begins and old.settings != settings:
            what = "its settings changed while the desk runs"
            refused[LABEL_FILE] = FileFinding(LABEL_FILE, what, "restart the desk to use them")
            settings = old.settings
        manifest = VersionManifest(settings, files)
        for key in _due(changed, files) - changed:
            files[key] = replace(files[key], fault=layout.doubled.get(key))
        for is_record in (True, False):  # records say by which calendar prices are read
            keys = sorted(key for key in _due(changed, files) if (key in RECORDS) is is_record)
            refused |= self._validated(manifest, files, keys, None if self._begins else old)
        self._begins = False
        manifest = replace(manifest, files=dict(sorted(files.items())))
        corrections = before.corrections if before else ()
        if old is not None and before is not None:
            corrections += tuple(self._corrections(old, manifest, changed))
        newest = Newest(self._name, manifest.id, seen, refused, corrections[-CORRECTIONS_MAX:])
        for key, finding in refused.items():
            if before is None or before.refused.get(key) != finding:
                log.warning("market.change_refused", name=key, why=str(finding))
        if before is None or before.version != newest.version:
            log.info("market.new_version", version=newest.version, files=len(files))
        self._take(manifest, newest, before)

    def _validated(
        self,
        manifest: VersionManifest,
        files: dict[str, FileEntry],
        keys: Sequence[str],
        old: VersionManifest | None,
    ) -> Mapping[str, FileFinding]:
        """Take what is valid of `files`, those of the manifest: of one that is not, the content
        before, and its fault is returned; where there is none, nothing of it is used. A bad row of
        records is no fault of their file, unless the file ends within it."""
        store, refused = self._store(manifest), {}
        for key, fault in asyncio.run(_faults(store, keys)).items():
            cut = [row.finding for row in store.bad_rows(key) if row.is_cut]
            if store.bad_rows(key) and key not in store.unused and not cut:
                continue  # bad rows cost themselves
            if key not in RECORDS and fault.file != files[key].name:
                continue  # a row of `sectors` costs the ticker, and its prices stand
            earlier = old.files.get(key) if old is not None else None
            is_good = earlier is not None and earlier.fault is None and earlier != files[key]
            if earlier is not None and is_good and self._kept.content(earlier) is not None:
                files[key], refused[key] = earlier, (cut or [fault])[0]
            elif key in store.unused and fault.file == files[key].name:
                files[key] = replace(files[key], fault=fault)
        return refused

    def _entry(self, path: Path, fault: FileFinding | None) -> FileEntry:
        """A file as it is now, its content kept."""
        try:
            if path.stat().st_size > FILE_BYTES_MAX:
                what = f"more than {FILE_BYTES_MAX:,} bytes, the limit"
                return FileEntry(path.name, "", FileFinding(path.name, what, "split it"))
            return FileEntry(path.name, self._kept.keep(path.name, path.read_bytes()), fault)
        except OSError as error:
            what = f"cannot be read ({error.strerror})"
            return FileEntry(path.name, "", FileFinding(path.name, what, "make it readable"))

    def _corrections(
        self, old: VersionManifest, new: VersionManifest, changed: Iterable[str]
    ) -> Sequence[Correction]:
        """The bars of changed files that were known before, and are others now."""
        at_hand = []
        for key in sorted(changed):
            was, now = old.files.get(key), new.files.get(key)
            if key in RECORDS or was is None or was == now or was.fault or (now and now.fault):
                continue
            try:
                pair = asyncio.run(_bars(key, self._store(old), self._store(new)))
            except (MarketError, ContentGone) as error:
                log.warning("market.not_compared", name=key, why=error.message)
                continue
            rows = changed_bars(*pair)
            if not rows.is_empty():
                first, last = rows.row(0, named=True), rows.row(-1, named=True)
                at_hand.append(
                    Correction(
                        ticker=key,
                        file=was.name,
                        first=first["date"],
                        last=last["date"],
                        bars=rows.height,
                        was=first["close"],
                        now=first["close_now"],
                        before=old.id,
                        after=new.id,
                        seen_at=datetime.now(UTC),
                    )
                )
                log.warning(
                    "market.bars_corrected",
                    name=key,
                    first=str(first["date"]),
                    bars=rows.height,
                    was=first["close"],
                    now=first["close_now"],
                )
        return at_hand


def changed_bars(was: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    """The bars of the first frame that the second one has not, or has with other values: `date`,
    `close` and `close_now`, ascending."""
    both = was.join(now, on="date", how="left", suffix="_now", coalesce=True)
    same = pl.all_horizontal(pl.col(name) == pl.col(f"{name}_now") for name in _NOT_CHANGED)
    differs = ~same.fill_null(value=False)
    return both.filter(differs).select("date", "close", "close_now").sort("date")


async def _bars(key: str, *stores: ReplayStore) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The bars of a ticker in two stores; empty where it is not there."""
    was = await stores[0].bars(key)
    now = await stores[1].bars(key) if key in stores[1].price_files else was.clear()
    return was, now


def _due(changed: Iterable[str], files: Mapping[str, FileEntry]) -> set[str]:
    """The changed files, and those that are read by what they say."""
    keys = {key for key in changed if key in files}
    if "sectors" in changed:
        keys |= files.keys() - RECORDS
    if "filings" in changed and "reported" in files:
        keys.add("reported")
    return keys


async def _faults(store: ReplayStore, keys: Sequence[str]) -> Mapping[str, FileFinding]:
    """Why files are not wholly valid."""
    faults = {}
    for key in keys:
        try:
            if key in RECORDS:
                await store.records(key, key)
                if key in store.faults:
                    faults[key] = store.faults[key]
            else:
                await store.dates(key)
        except BadReplayData as error:
            faults[key] = error.finding
        except MarketError as error:
            name = store.price_files[key].name if key in store.price_files else key
            faults[key] = FileFinding(name, error.message, "correct the file")
    return faults


def _settings(layout: Layout) -> FolderSettings:
    of = layout
    return FolderSettings(of.name, of.description, of.synthetic, of.currency, of.exchange)


def _states(layout: Layout) -> dict[str, State]:
    paths = {**layout.prices, **layout.records}
    at_hand = {key: _state(path, key in layout.doubled) for key, path in paths.items()}
    return {key: state for key, state in at_hand.items() if state is not None}


def _state(path: Path, is_doubled: bool) -> State | None:
    try:
        of = path.stat()
    except OSError:
        return None
    return (path.name, of.st_size, of.st_mtime_ns, of.st_ctime_ns, of.st_ino, int(is_doubled))
