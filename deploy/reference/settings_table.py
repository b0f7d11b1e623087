"""The table of settings in docs/configuration.md, made from `Settings` itself."""

import re

from pydantic.fields import FieldInfo

from libs.report.settings import meanings
from libs.runtime.settings import all_settings, variable

CHOICE = re.compile(r"\^\(([\w|-]+)\)\$")
"""A pattern that lists words. Another one says less to a reader than the error that it gives."""


def table() -> str:
    """One row a setting, in the order of their declaration."""
    meaning_of = meanings()
    rows = [
        f"| `{name}` | `{variable(name)}` | {_default(field)} | {_words(meaning_of[name], field)} |"
        for name, field in all_settings()
    ]
    head = ["| setting | variable | default | what it is |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    return "not set" if default in (None, "", {}) else f"`{default}`"


def _words(told: str, field: FieldInfo) -> str:
    signs = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    bounds = [
        f"{words} {getattr(each, sign)}"
        for each in field.metadata
        for sign, words in signs.items()
        if getattr(each, sign, None) is not None
    ]
    patterns = (getattr(each, "pattern", None) or "" for each in field.metadata)
    words = (CHOICE.fullmatch(pattern) for pattern in patterns)
    choices = [f"one of {found[1].replace('|', ', ')}" for found in words if found]
    said = ", ".join([*bounds, *choices])
    return " ".join(filter(None, [told.replace("\n", " "), f"({said})" if said else ""]))
