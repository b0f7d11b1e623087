"""The tables of views and columns in docs/sql.md, made from the comments in the migrations.

`python -m deploy.reference.views_page docs/sql.md` rewrites them between their two marks. That each
view and each column has a comment, and none a stale one, is tested against a real Postgres.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from deploy.reference import table_in_page
from libs.postgres.migrate import migrations

BEGIN = "<!-- views: made by `python -m deploy.reference.views_page docs/sql.md` -->"
END = "<!-- end of views -->"
SCHEMA = "desk"
_COMMENT = re.compile(
    rf"^comment on (view|column) {SCHEMA}\.(\w+)(?:\.(\w+))? is\s+'((?:[^']|'')*)';", re.MULTILINE
)

View = tuple[str, Mapping[str, str]]
"""A view's description, and that of each column in order."""


def views() -> Mapping[str, View]:
    """Each view by name, in the order of the migrations."""
    about: dict[str, str] = {}
    columns: dict[str, dict[str, str]] = {}
    for migration in migrations():
        for kind, view, column, text in _COMMENT.findall(migration.sql):
            words = text.replace("''", "'")
            if kind == "view":
                about[view] = words
            else:
                columns.setdefault(view, {})[column] = words
    return {view: (words, columns.get(view, {})) for view, words in about.items()}


def tables() -> str:
    """A heading, a sentence and a table of columns for each view."""
    parts = []
    for view, (about, columns) in views().items():
        rows = [f"| `{column}` | {words} |" for column, words in columns.items()]
        parts += [
            f"### {SCHEMA}.{view}",
            about,
            "\n".join(["| column | |", "| --- | --- |", *rows]),
        ]
    return "\n\n".join(parts)


def rewritten(text: str) -> str:
    """`text` with the tables between its marks replaced. Raises ValueError without marks."""
    return table_in_page.put(text, BEGIN, END, tables())


def main(path: Path) -> None:
    """Rewrite the page."""
    path.write_text(rewritten(path.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
