"""The table of settings in docs/configuration.md, made from `Settings` itself.

`python -m deploy.reference.settings_table docs/configuration.md` rewrites it between its two marks.
"""

import sys
from pathlib import Path

from pydantic.fields import FieldInfo

from deploy.reference import table_in_page
from libs.report.settings import meanings
from libs.runtime.settings import all_settings, variable

BEGIN = (
    "<!-- settings: made by `python -m deploy.reference.settings_table docs/configuration.md` -->"
)
END = "<!-- end of settings -->"


def table() -> str:
    """One row a setting, in the order of their declaration."""
    meaning_of = meanings()
    rows = [
        f"| `{name}` | `{variable(name)}` | {_default(field)} | {_words(meaning_of[name], field)} |"
        for name, field in all_settings()
    ]
    head = ["| setting | variable | default | what it is |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


def rewritten(text: str) -> str:
    """`text` with the table between its marks made anew. Raises ValueError without marks."""
    return table_in_page.put(text, BEGIN, END, table())


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    return "not set" if default is None or default == {} else f"`{default}`"


def _words(told: str, field: FieldInfo) -> str:
    signs = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    bounds = [
        f"{words} {getattr(each, sign)}"
        for each in field.metadata
        for sign, words in signs.items()
        if getattr(each, sign, None) is not None
    ]
    patterns = [each.pattern for each in field.metadata if getattr(each, "pattern", None)]
    choices = [f"one of {p.strip('^$()').replace('|', ', ')}" for p in patterns]
    said = ", ".join([*bounds, *choices])
    return " ".join(filter(None, [told.replace("\n", " "), f"({said})" if said else ""]))


def main(path: Path) -> None:
    """Rewrite the page."""
    path.write_text(rewritten(path.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
