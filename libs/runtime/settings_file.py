"""One value of the settings file is changed in place: comments, order and the rest stay."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from libs.runtime.errors import DeskError
from libs.runtime.own_text import UnreadableFile, text_in, toml_in
from libs.runtime.whole_file import READABLE, beside

_CHANGED = "{} was changed meanwhile; nothing was written"


class ChangedMeanwhile(DeskError):
    """A file says something else than what was read of it."""

    code = "changed_meanwhile"


def text_of(file: Path) -> str:
    """What the file says; nothing where there is none. Raises UnreadableFile and OSError."""
    try:
        return text_in(file)
    except FileNotFoundError:
        return ""


@contextmanager
def replacing(file: Path, text: str, body: str) -> Iterator[None]:
    """Have a file that says `text` say `body` once the block has ended well. Of a link it is the
    file behind it; its mode stays, and one that is read-only is left alone. Of two at once the
    second waits, and finds what the first has written. Raises ChangedMeanwhile and OSError.
    """
    file = file.resolve()
    with _held(file) as mode, beside(file, body.encode(), mode or READABLE) as whole:
        if text_of(file) != text:
            raise ChangedMeanwhile(_CHANGED.format(file))
        yield
        if mode is not None:
            whole.replace(file)
            return
        try:
            file.hardlink_to(whole)
        except FileExistsError:
            raise ChangedMeanwhile(_CHANGED.format(file)) from None


@contextmanager
def _held(file: Path) -> Iterator[int | None]:
    """The mode of a file that nobody else replaces during the block; None where there is none."""
    try:
        held = file.open("r+b")
    except FileNotFoundError:
        yield None
        return
    with held:
        fcntl.flock(held, fcntl.LOCK_EX)
        mode = stat.S_IMODE(os.fstat(held.fileno()).st_mode)
        # Root has the right to write into each.
        if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        yield mode


def with_value(text: str, path: Sequence[str], value: bool | Decimal) -> str:
    """The file's text with a value at the path, as `("limits", "position_pct_max")`; tables that
    are missing are added at the end. Raises UnreadableFile where nothing but that would not hold.
    """
    *tables, name = path
    plain = _plain(value)
    wanted: Any = toml_in(text)
    expected = wanted
    try:
        for table in tables:
            wanted = wanted.setdefault(table, {})
        wanted[name] = plain
        changed = _set(text, tables, name, plain)
        if toml_in(changed) == expected:
            return changed
    except (AttributeError, TypeError, TOMLKitError):
        pass  # what should be a table is none, or is written in a way that cannot be changed
    raise UnreadableFile(f"{'.'.join(path)} cannot be set in a file written like this one")


def _set(text: str, tables: Sequence[str], name: str, value: bool | int | float) -> str:
    document = tomlkit.parse(text)
    inner: Any = document
    for number, table in enumerate(tables, start=1):
        if not isinstance(inner.get(table), Mapping):
            inner[table] = tomlkit.table(is_super_table=number < len(tables))
        inner = inner[table]
    inner[name] = value
    return tomlkit.dumps(document)


def _plain(value: bool | Decimal) -> bool | int | float:
    if isinstance(value, bool):
        return value
    return int(value) if value == value.to_integral_value() else float(value)
