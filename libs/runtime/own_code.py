"""A module of the user's, found beside the desk's settings."""

import ast
import hashlib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from libs.runtime.parsing import parsed

FILES_MAX = 500
"""Of one module, with what it imports of its own."""
SOURCE_BYTES_MAX = 10_000_000
"""Of all of them."""
_UNPARSED = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)


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
    found, path = None, _path()
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        found = PathFinder.find_spec(".".join(parts[:depth]), path) if path else None
        if found is None:
            return None
        path = list(found.submodule_search_locations or ())
    origin = found.origin if found is not None else None
    return Path(origin) if origin and Path(origin).is_file() else None


def docstring_of(module: str, function: str) -> str:
    """The docstring of a function that a module's file defines, without loading it; empty where
    there is none."""
    file = source_file(module)
    try:
        tree = parsed(file.read_bytes()) if file is not None else ast.Module([], [])
    except _UNPARSED:
        return ""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return ast.get_docstring(node) or ""
    return ""


def unparsed(module: str) -> str:
    """Why a module's file cannot be parsed, without loading it; empty where it can be, or where
    there is no file."""
    file = source_file(module)
    try:
        if file is not None:
            parsed(file.read_bytes(), file.name)
    except _UNPARSED as error:
        return f"{type(error).__name__}: {error}"
    return ""


def source_sha256(name: str) -> str:
    """The SHA-256 of a module's own code; empty where there is none that can be read, or more than
    FILES_MAX files or SOURCE_BYTES_MAX.

    That is its file or, of a package, each `.py` file of the package. To what lies in the working
    directory belongs the same of all modules there that these import by name. Nothing of it is
    loaded. Of a single file it is the SHA-256 of that file.
    """
    if source_file(name) is None:
        return ""
    try:
        sources = _own_sources(name.partition(".")[0])
    except OSError:
        return ""
    if len(sources) <= 1:
        return "".join(hashlib.sha256(body).hexdigest() for body in sources.values())
    # Where the folder lies is of no matter.
    above = os.path.commonpath([path.parent for path in sources])
    lines = [
        f"{path.relative_to(above).as_posix()} {hashlib.sha256(body).hexdigest()}\n"
        for path, body in sorted(sources.items())
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _own_sources(first: str) -> Mapping[Path, bytes]:
    """The files of a top-level module with those they import; empty where they are too many."""
    sources: dict[Path, bytes] = {}
    left = SOURCE_BYTES_MAX
    names = [first]
    for name in names:  # it grows
        for path in _files_of(name, is_first=name == first):
            left -= path.stat().st_size
            if left < 0 or len(sources) >= FILES_MAX:
                return {}
            sources[path] = path.read_bytes()
            names += [new for new in _imported(sources[path]) if new not in names]
    return sources


def _files_of(name: str, *, is_first: bool) -> Sequence[Path]:
    """The files of a top-level module; none of one that is not asked about first and is not in the
    working directory."""
    spec = PathFinder.find_spec(name, _path())
    if spec is None:
        return ()
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    own = places or ([Path(spec.origin)] if spec.has_location and spec.origin else [])
    if not is_first and any(path.parent.resolve() != Path.cwd().resolve() for path in own):
        return ()
    return [path for place in places for path in sorted(place.rglob("*.py"))] if places else own


def _imported(body: bytes) -> Iterator[str]:
    """The top-level names that a source imports, anywhere in it."""
    try:
        tree = parsed(body)
    except _UNPARSED:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def _path() -> list[str]:
    return [*sys.path, str(Path.cwd())]
