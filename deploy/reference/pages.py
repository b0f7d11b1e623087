"""The pages of docs/ that hold what code says: which they are, and how each is written anew.

`python -m deploy.reference` (`make contracts`) writes them, a test compares them with what is
committed, and the site (deploy/site) is built from them as they are that moment.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from deploy.reference import (
    cli_pages,
    errors_page,
    metrics_page,
    plan_sample,
    risk_page,
    settings_table,
    table_in_page,
    views_page,
)

DOCS = Path(__file__).parents[2] / "docs"
TABLES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "configuration.md": {"settings": settings_table.table},
    "errors.md": {"errors": errors_page.table},
    "metrics.md": {"metrics": metrics_page.table},
    "risk.md": risk_page.TABLES,
    "sql.md": {"views": views_page.tables},
}
"""Pages with tables, each between two marks with its name; and who makes it."""
MADE: Sequence[str] = ("commands.md", *TABLES)
SAMPLE = "studies.md"
"""A page with the output of a command, which takes seconds."""


def rewritten(name: str, text: str) -> str:
    """The text of a page with its made parts anew. Raises ValueError where marks are absent."""
    if name == "commands.md":
        return cli_pages.listing()
    if name == SAMPLE:
        return plan_sample.written(text)
    for mark, table in TABLES[name].items():
        begin, end = f"<!-- {mark}: made by `make contracts` -->", f"<!-- end of {mark} -->"
        text = table_in_page.put(text, begin, end, table())
    return text


def main() -> None:
    """Write all of them."""
    for name in (*MADE, SAMPLE):
        path = DOCS / name
        path.write_text(rewritten(name, path.read_text(encoding="utf-8")), encoding="utf-8")
