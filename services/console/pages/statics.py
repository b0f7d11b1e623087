"""The files that pages load, under a URL that changes with what they hold."""

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fastapi import APIRouter, Request, Response

from services.console.http.problems import not_found

FOLDER = Path(__file__).parent / "static"
PREFIX = "/static"
VERSION_CHARS = 12
FOREVER = "public, max-age=31536000, immutable"
"""What is at a URL with this version never changes."""
SMALL_BYTES = 600
"""Files up to this size are sent as they are."""


@dataclass(frozen=True)
class _File:
    body: bytes
    media_type: str

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.body, mtime=0)


class Statics:
    """All files of a folder, held in memory. `version` is made from their names and bytes."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = _read(folder)
        digest = hashlib.sha256()
        for name, file in sorted(self._files.items()):
            digest.update(f"{name}\0{len(file.body)}\0".encode() + file.body)
        self.version = digest.hexdigest()[:VERSION_CHARS]

    def url(self, name: str) -> str:
        """Where a page finds the file. Raises `LookupError` where there is none of that name.

        All files stand below one version, so that a script's relative imports stay within it.
        """
        if name not in self._files:
            raise LookupError(f"no file {name!r} in {FOLDER}")
        return f"{PREFIX}/{self.version}/{name}"

    def router(self) -> APIRouter:
        """The path that answers with them."""
        router = APIRouter()

        @router.get(PREFIX + "/{version}/{name:path}")
        async def static(version: str, name: str, request: Request) -> Response:
            file = self._files.get(name)
            if file is None:
                raise not_found(f"file {name} does not exist")
            # A page of the release before this one still asks for its own: it gets today's.
            headers = {"Cache-Control": FOREVER if version == self.version else "no-store"}
            headers["X-Content-Type-Options"] = "nosniff"
            packs = "gzip" in request.headers.get("accept-encoding", "")
            if not packs or len(file.body) <= SMALL_BYTES:
                return Response(file.body, 200, headers, file.media_type)
            headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
            return Response(file.packed, 200, headers, file.media_type)

        return router


def _read(folder: Path) -> Mapping[str, _File]:
    return {
        path.relative_to(folder).as_posix(): _File(path.read_bytes(), _media_type(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _media_type(path: Path) -> str:
    known = {".js": "text/javascript", ".mjs": "text/javascript", ".svg": "image/svg+xml"}
    guessed = known.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    return guessed or "text/plain; charset=utf-8"
