"""Settings as people read them: value, where that is from, and meaning of each; no secret."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel, SecretStr

from libs.runtime.settings import (
    SECTIONS,
    Settings,
    all_settings,
    is_in,
    is_setting,
    settings_in_file,
    variable,
)

MASK = "********"
_NEXT_URL = re.compile(r",(?=(?:nats|tls)://)")
_IN_QUERY = re.compile(r"(?i)([?&](?:user|password|passfile|sslpassword)=)[^&]*")
"""Where libpq and asyncpg take a login too."""


class Setting(BaseModel):
    """One setting as it is in force; `source` is `environment`, `file`, `default`, or `set` where
    nobody knows which of the first two it is."""

    name: str
    variable: str
    value: str
    source: str
    default: str
    meaning: str


def in_force(settings: Settings, environment: Mapping[str, str], file: Path) -> tuple[Setting, ...]:
    """All settings, in the order of their definition."""
    from_environment = {name.upper() for name in environment if is_setting(name.lower())}
    from_file = settings_in_file(file)

    def source(name: str) -> str:
        if any(
            it == variable(name) or it.startswith(f"{variable(name)}_") for it in from_environment
        ):
            return "environment"
        return "file" if is_in(from_file, name) else "default"

    return _listed(settings, source)


def of_desk(settings: Settings) -> tuple[Setting, ...]:
    """The same of a desk that runs, whose file and environment may be others by now."""
    defaults = {
        name: field.get_default(call_default_factory=True) for name, field in all_settings()
    }
    return _listed(
        settings, lambda name: "default" if settings.value_of(name) == defaults[name] else "set"
    )


def _listed(settings: Settings, source_of: Callable[[str], str]) -> tuple[Setting, ...]:
    meaning_of = meanings()
    return tuple(
        Setting(
            name=name,
            variable=variable(name),
            value=shown(settings.value_of(name)),
            source=source_of(name),
            default=shown(field.get_default(call_default_factory=True)),
            meaning=meaning_of.get(name, ""),
        )
        for name, field in all_settings()
    )


@cache
def meanings() -> Mapping[str, str]:
    """The text below each setting where it is defined, by its name."""
    own = _texts(Settings)
    inner = {
        f"{table}.{field}": text
        for table, kind in SECTIONS.items()
        for field, text in _texts(kind).items()
    }
    return {name: {**own, **inner}[name] for name, _ in all_settings()}


def _texts(kind: type[BaseModel]) -> Mapping[str, str]:
    """The text below each field of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    if not isinstance(body, ast.ClassDef):
        raise TypeError(f"the source of {kind} is no class")
    return {
        field.target.id: " ".join(after.value.value.split())
        for field, after in pairwise(body.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }


def shown(value: object) -> str:
    """A value that may be seen, as the settings file has it: without passwords, a dash for none."""
    if value is None:
        return "-"
    if isinstance(value, bool | float | tuple):
        return _plain(value)
    if isinstance(value, SecretStr):
        url = without_login(value.get_secret_value())
        return url if "://" in url else MASK
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({_brief(inner)})" for name, inner in value.items()) or "-"
    return without_login(str(value))


def _plain(value: bool | float | tuple[object, ...]) -> str:
    """A value as the settings file would have it."""
    if isinstance(value, tuple):
        return ", ".join(map(shown, value)) or "-"
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if value.is_integer() else str(value)


def _brief(value: object) -> str:
    """A table of settings in a few words: what is set in it."""
    if not isinstance(value, BaseModel):
        return str(value)
    fields = value.model_dump(mode="json", exclude_unset=True)
    return ", ".join(f"{name} {field}" for name, field in fields.items())


def without_login(text: str) -> str:
    """A URL, or several separated by commas, with user and password masked; other text as it is."""
    return ",".join(_without_login(url) for url in _NEXT_URL.split(text))


def _without_login(text: str) -> str:
    scheme, is_url, rest = text.partition("://")
    if not is_url:
        return text
    # Passwords may hold any character: up to the last "@" nothing is shown.
    _, login, address = rest.rpartition("@")
    address = _IN_QUERY.sub(rf"\1{MASK}", address)
    return f"{scheme}://{MASK}@{address}" if login else f"{scheme}://{address}"
