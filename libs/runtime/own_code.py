"""A module of the user's, found beside the desk's settings."""

import hashlib
import importlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

SOURCE_BYTES_MAX = 1_000_000
"""Of one module's file."""


def own_module(name: str) -> ModuleType:
    """Import it from the packages that are installed, else from the working directory.

    The directory comes last on the path: no file in it stands in for a module of Python's or of the
    desk's. Raises ImportError.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)


def source_file(name: str) -> Path | None:
    """The file that `own_module` would load, without loading it or its packages; None where there
    is none."""
    path: list[str] | None = [*sys.path, str(Path.cwd())]
    origin = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), path) if path else None
        if spec is None:
            return None
        origin, places = spec.origin, spec.submodule_search_locations
        path = list(places) if places is not None else None
    return Path(origin) if origin and Path(origin).is_file() else None


def source_sha256(name: str) -> str:
    """The SHA-256 of that file; empty where there is none that can be read."""
    file = source_file(name)
    if file is None:
        return ""
    try:
        with file.open("rb") as source:
            body = source.read(SOURCE_BYTES_MAX + 1)
    except OSError:
        return ""
    return "" if len(body) > SOURCE_BYTES_MAX else hashlib.sha256(body).hexdigest()
