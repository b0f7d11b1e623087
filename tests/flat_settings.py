"""Settings by flat names, spelt as their variables: `http_port=0` is `http.port`."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from libs.runtime.settings import SECTIONS, Settings


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Flat names as the tables of `Settings`."""
    tables: dict[str, Any] = defaultdict(dict)
    for name, value in flat.items():
        table, _, field = name.partition("_")
        if table in SECTIONS and field:
            tables[table][field] = value
        else:
            tables[name] = value
    return dict(tables)


def settings_with(**flat: Any) -> Settings:
    """Settings with these."""
    return Settings(**nested(flat))


def changed(settings: Settings, **flat: Any) -> Settings:
    """The same settings with these in their place."""
    return settings.changed(**nested(flat))
