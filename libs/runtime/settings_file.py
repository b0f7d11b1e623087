"""One value of the settings file is changed in place: comments, order and the rest stay."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from libs.runtime.own_text import UnreadableFile, toml_in


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
