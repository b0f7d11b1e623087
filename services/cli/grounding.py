"""What the check of grounding found in a pipeline's reports, in one line."""

from collections.abc import Sequence

from rich.text import Text

from libs.facts import amounts
from libs.report.made import Made

MARKS_LISTED_MAX = 5


def told(made: Made) -> Sequence[tuple[str, Text]]:
    """How many figures were checked, and which could not be traced in which report."""
    reports = {
        "sentiment": made.sentiment,
        "plan": made.plan,
        "quant": made.quant,
        "research": made.research,
        "picks": made.picks,
    }
    cited = sum(len(report.figures) for report in reports.values() if report is not None)
    loose = sum(len(report.loose) for report in reports.values() if report is not None)
    found = {
        name: report.grounding
        for name, report in reports.items()
        if report is not None and report.grounding is not None
    }
    if not found:
        return []
    checked = sum(each.checked for each in found.values())
    marks = [
        f"{mark.figure} ({name}{f' on {mark.about}' if mark.about else ''})"
        for name, each in found.items()
        for mark in each.ungrounded
    ]
    missing = len(marks) + sum(each.marks_omitted for each in found.values())
    line = f"{amounts.count(checked, 'figure')} checked, {missing} not traced"
    if cited or loose:
        line = f"{amounts.count(cited, 'figure')} by reference, {loose} loose; {line}"
    if not marks:
        return [("Grounding", Text(line))]
    more = missing - MARKS_LISTED_MAX
    listed = amounts.plain(", ".join(marks[:MARKS_LISTED_MAX]))
    line += f": {listed}" + (f" and {more} more" if more > 0 else "")
    return [("Grounding", Text(line, style="yellow"))]
