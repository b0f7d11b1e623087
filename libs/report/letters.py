"""Dead letters as a list. Pure."""

from collections.abc import Sequence

from contracts.upkeep import DeadLetter
from libs.facts import amounts
from libs.report import links, view
from libs.report.view import Column, NoRows, Table

MESSAGE_CHARS = 300


def listed(letters: Sequence[DeadLetter]) -> Table:
    """A row a letter, with why it could not be used."""
    return view.table(
        (
            "Number",
            Column("At", spare=2),
            "Subject",
            Column("Bytes", spare=1),
            Column("Why", wraps=True),
        ),
        (
            (
                view.count(it.sequence).linked(links.letter(it.sequence)),
                f"{it.at.astimezone():%Y-%m-%d %H:%M:%S}",
                it.subject,
                view.count(it.size_bytes),
                f"{it.failure.code}: {amounts.cut(it.failure.message, MESSAGE_CHARS)}",
            )
            for it in letters
        ),
        empty=NoRows("No dead letters."),
    )
