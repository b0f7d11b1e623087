"""The tables of views and columns in docs/sql.md, made from the comments in the migrations.

That each view and each column has a comment, and none a stale one, is tested against a real
Postgres.
"""

import re
from collections.abc import Mapping

from libs.postgres.migrate import migrations

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
