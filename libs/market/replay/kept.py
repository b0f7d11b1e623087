"""The kept versions of a folder of market data: lists of files, and their contents.

All processes of a desk share it, below the data directory. Contents are copies, as a file that is
appended to or cut off in its place is gone for whoever still works with its earlier state. It is
bounded, and may be deleted: work that needs a version that is no longer there fails typed.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TypeVar

import structlog
from pydantic import TypeAdapter, ValidationError

from libs.files.finding import FileFinding
from libs.runtime.own_folder import make_folder
from libs.runtime.whole_file import OWN, write_whole

VERSIONS_KEPT_MIN = 32
"""So many of the newest versions are kept as far as there is room, and all younger than this:"""
YOUNG_VERSION_S = 26 * 3600.0
"""Since a version was the newest; cycles end or wait for an approval so long."""
MANIFESTS_BYTES_MAX = 32_000_000
CONTENTS_BYTES_MAX = 1_000_000_000
"""Of all contents together; where there is less room, ROOM_PART of it. What does not fit is read
where it is."""
ROOM_PART = 0.25
FULL_PART = 0.75
"""Older versions go until their contents are this part of the bound: the next ones need room."""
TIDY_EVERY_S = 60.0
YOUNG_S = 600.0
"""A content may be so much older than the first version that names it."""
ID_CHARS = 16
CORRECTIONS_MAX = 50
NEWEST = "newest.json"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a version: its name, the SHA-256 of its content, and its fault where there is one;
    nothing of such a file is used."""

    name: str
    sha256: str
    fault: FileFinding | None = None


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The settings in source.toml, or the defaults without it."""

    name: str
    description: str
    synthetic: bool
    currency: str
    exchange: str


@dataclass(frozen=True, slots=True)
class VersionManifest:
    """The files of a version, by ticker or kind of records, and the settings of its folder."""

    settings: FolderSettings
    files: Mapping[str, FileEntry]

    @property
    def id(self) -> str:
        """The version: a hash of all that a reader of it sees."""
        return hashlib.sha256(_MANIFEST.dump_json(self)).hexdigest()[:ID_CHARS]


@dataclass(frozen=True, slots=True)
class Correction:
    """Bars of a ticker that were there before and are now others, from `first` to `last`; `was` and
    `now` are the close of the first of them, None where there is no such bar."""

    ticker: str
    file: str
    first: date
    last: date
    bars: int
    was: float | None
    now: float | None
    before: str
    after: str
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest version; the state of each file of the folder that it was made from (by ticker or
    kind of records: the name, and what `stat` says); files whose newest content is not used; and
    the corrections that were seen."""

    directory: str
    version: str
    seen: Mapping[str, tuple[str | int, ...]]
    refused: Mapping[str, FileFinding] = field(default_factory=dict)
    corrections: tuple[Correction, ...] = ()


T = TypeVar("T")
_MANIFEST = TypeAdapter(VersionManifest)
_NEWEST = TypeAdapter(Newest)


class KeptVersions:
    """The versions and contents in a directory, as far as it can be written; of what cannot be kept
    there, this process knows the newest version."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._bytes: int | None = None
        self._newest: Newest | None = None
        self._manifest: VersionManifest | None = None
        self._is_written = True
        self._tidied_at = float("-inf")

    @property
    def exists(self) -> bool:
        """Whether a desk keeps versions here."""
        return (self._directory / NEWEST).is_file()

    def newest(self) -> Newest | None:
        """The newest version, as it was written last, or as it is known here if it could not be."""
        if not self._is_written:
            return self._newest
        return self._read(self._directory / NEWEST, _NEWEST.validate_json) or self._newest

    @property
    def written_at(self) -> float:
        """When the newest version was written, in seconds since 1970; 0 where none was."""
        return _changed_at(self._directory / NEWEST)

    def manifest(self, version: str) -> VersionManifest | None:
        """The files of a version."""
        at_hand = self._read(self._manifest_path(version), _MANIFEST.validate_json)
        if at_hand is None and self._manifest is not None and self._manifest.id == version:
            return self._manifest
        return at_hand

    def content(self, entry: FileEntry) -> Path | None:
        """The copy of an entry's file, under the file's own name."""
        path = self._content_path(entry.sha256, entry.name)
        return path if path.is_file() else None

    def keep(self, name: str, body: bytes) -> str:
        """Keep the content of a file where there is room; returns its SHA-256."""
        sha256 = hashlib.sha256(body).hexdigest()
        path = self._content_path(sha256, name)
        try:
            if path.is_file() and path.stat().st_size == len(body):
                return sha256
            if self._bytes is None:
                kept = self._directory.glob("contents/*/*")
                self._bytes = sum(path.stat().st_size for path in kept)
            if self._bytes + len(body) <= self._bytes_max():
                _write(path, body)
                self._bytes += len(body)
        except OSError as error:
            log.warning("market.content_not_kept", file=name, why=str(error)[:200])
        return sha256

    def _bytes_max(self) -> int:
        """The bound of all contents together, with the room that there is now."""
        make_folder(self._directory)
        room = shutil.disk_usage(self._directory).free + (self._bytes or 0)
        return min(CONTENTS_BYTES_MAX, int(room * ROOM_PART))

    def write(self, manifest: VersionManifest, newest: Newest) -> None:
        """Keep a version, and that it is the newest; the oldest go."""
        path, before = self._manifest_path(manifest.id), self.newest()
        self._manifest, self._newest, self._is_written = manifest, newest, False
        try:
            if before is not None and (older := self._manifest_path(before.version)).is_file():
                older.touch()  # it was the newest until now
            _write(path, _MANIFEST.dump_json(manifest))
            _write(self._directory / NEWEST, _NEWEST.dump_json(newest))
            self._is_written = True
            if time.monotonic() - self._tidied_at >= TIDY_EVERY_S:
                self._tidy()
                self._tidied_at = time.monotonic()
        except OSError as error:
            log.warning("market.version_not_kept", version=manifest.id, why=str(error)[:200])

    def _tidy(self) -> None:
        paths = sorted(self._directory.glob("versions/*.json"), key=_changed_at, reverse=True)
        used: set[str] = set()
        manifest_bytes = content_bytes = 0
        bytes_max = self._bytes_max() * FULL_PART
        is_full = False
        for count, path in enumerate(paths):
            is_young = time.time() - _changed_at(path) <= YOUNG_VERSION_S
            is_wanted = not is_full and (is_young or count < VERSIONS_KEPT_MIN)
            manifest = self.manifest(path.stem) if is_wanted else None
            if manifest is not None:
                new = {entry.sha256: entry for entry in manifest.files.values()}
                manifest_bytes += path.stat().st_size
                content_bytes += sum(self._size(new[sha256]) for sha256 in new.keys() - used)
                fits = manifest_bytes <= MANIFESTS_BYTES_MAX and content_bytes <= bytes_max
                is_full = count > 0 and not fits
            if manifest is None or is_full:
                path.unlink(missing_ok=True)
            else:
                used |= new.keys()
        for folder in self._directory.glob("contents/*"):
            if folder.name not in used and time.time() - _changed_at(folder) > YOUNG_S:
                for file in folder.iterdir():
                    file.unlink(missing_ok=True)
                folder.rmdir()
        self._bytes = None

    def _size(self, entry: FileEntry) -> int:
        path = self.content(entry)
        return path.stat().st_size if path else 0

    def _manifest_path(self, version: str) -> Path:
        return self._directory / "versions" / f"{version}.json"

    def _content_path(self, sha256: str, name: str) -> Path:
        return self._directory / "contents" / sha256 / name

    def _read(self, path: Path, parse: Callable[[bytes], T]) -> T | None:
        try:
            return parse(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            log.warning("market.version_unreadable", file=path.name, why=str(error)[:200])
            return None


def _write(path: Path, body: bytes) -> None:
    """Write a file whole or not at all; its hash is checked whenever it is read."""
    make_folder(path.parent)
    write_whole(path, body, OWN)


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
