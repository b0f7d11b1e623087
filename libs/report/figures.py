"""How many figures of a decision's texts have a source, and which numbers have none."""

from collections.abc import Sequence
from typing import TypeVar

from contracts.reasons import Figure, Loose
from libs.facts import amounts
from libs.report.reports import Reports
from libs.runtime.errors import few

LOOSE_LISTED_MAX = 5
REVIEW_TEXTS = ("adjustments.", "risk_notes")
"""Fields that the reviewer's own texts stand in."""
Mark = TypeVar("Mark", Figure, Loose)


def in_short(reports: Reports) -> str:
    """`91 sourced, 1 unsourced: 9 (sentiment)`; empty where there are none."""
    sourced = sum(len(_own(s, report.figures)) for s, report in reports.reasoned.items())
    without = loose(reports)
    if not sourced and not without:
        return ""
    line = f"{sourced} sourced, {len(without)} unsourced"
    if not without:
        return line
    return f"{line}: {amounts.plain(few(without, most=LOOSE_LISTED_MAX))}"


def loose(reports: Reports) -> Sequence[str]:
    """The numbers in a model's own words that no fact has, each with the stage that wrote it."""
    return [
        f"{mark.text} ({stage})"
        for stage, report in reports.reasoned.items()
        for mark in _own(stage, report.loose)
    ]


def _own(stage: str, marks: Sequence[Mark]) -> Sequence[Mark]:
    """Those in the stage's own texts: the review has the trader's too, as far as it left them."""
    return [mark for mark in marks if stage != "review" or mark.field.startswith(REVIEW_TEXTS)]
