"""Studies as a list. Pure."""

from collections.abc import Sequence

from contracts.study import StudyStatus, StudyView
from libs.facts import amounts
from libs.report import view
from libs.report.tones import Tone
from libs.report.view import Column, NoRows, Table

TONES = {
    StudyStatus.RUNNING: Tone.BUSY,
    StudyStatus.STOPPED: Tone.WARN,
    StudyStatus.COMPLETED: Tone.GOOD,
}
RESTING = "resting: the live desk is at work"


def studies(of: Sequence[StudyView]) -> Table:
    """A row a study: how far it is, and what it has cost."""
    return view.table(
        (
            "Study",
            Column("Kind", spare=1),
            Column("Arms", wraps=True),
            Column("Done", right=True),
            Column("Failed", spare=2),
            Column("USD", right=True),
            "Status",
            Column("Why", wraps=True),
        ),
        (
            (
                view.say(it.study.name, link=f"/studies/{it.study.name}"),
                it.study.kind,
                ", ".join(arm.name for arm in it.study.arms),
                f"{it.completed + it.failed:,}/{it.cells:,}",
                view.count(it.failed + it.refused),
                amounts.paid(it.cost_usd, 2),
                view.say(it.status, TONES[it.status]),
                it.reason or (RESTING if it.resting else ""),
            )
            for it in of
        ),
        empty=NoRows(
            "No study yet; write a study.yaml, then run it:",
            todo="deskbus init; deskbus study run study.yaml",
        ),
    )
