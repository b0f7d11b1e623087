"""What the orchestrator logs of a cycle once it is committed."""

from datetime import timedelta
from typing import Any, cast

from services.orchestrator.group import measured
from services.orchestrator.group.batch import InputBatch
from services.orchestrator.group.changes import new_event
from services.orchestrator.machine import workflows
from services.orchestrator.machine.logic import EventDraft
from tests.fakes.log_lines import log_lines
from tests.unit.services.orchestrator.driven import BROKEN, CYCLE_ID, Run, cycle_row

TOOK = timedelta(seconds=7.25)
"""Between the times that Postgres gives to a cycle's begin and its end."""


class Committed:
    """A group that has committed the events of one cycle."""

    def __init__(self, facts: list[EventDraft]) -> None:
        self._row = cycle_row(cycle_id=CYCLE_ID)
        self.at = self._row.accepted_at + TOOK
        self.starts: tuple[()] = ()
        self.entries: tuple[()] = ()
        self.events = [new_event(self._row, fact) for fact in facts]

    def cycle(self, _cycle_id: object) -> Any:
        return self._row


def logged(facts: list[EventDraft]) -> list[Any]:
    with log_lines() as lines:
        measured.count(cast(InputBatch, Committed(facts)), ())
    return list(lines)


def test_a_cycles_begin_its_transitions_and_its_end_are_lines_with_their_ids() -> None:
    run = Run(workflows.SNAPSHOT, "alpha")
    while run.open:
        run.done(run.waiting()[0], {})
    lines = logged(run.facts)

    assert [line["event"] for line in lines] == [
        "cycle.accepted",
        "cycle.state_entered",
        "cycle.pipeline_ended",
        "cycle.ended",
    ]
    assert all(line["cycle_id"] == str(CYCLE_ID) for line in lines)
    assert (lines[1]["pipeline"], lines[1]["state"]) == ("alpha", "snapshotting")
    assert lines[0]["pipelines"] == ["alpha"]
    assert lines[-1]["status"] == "completed"
    assert lines[-1]["seconds"] == TOOK.total_seconds()
    assert {"tokens", "kind", "as_of"} <= lines[-1].keys()
    assert {line["log_level"] for line in lines} == {"info"}


def test_a_failed_end_is_a_warning_with_its_reason() -> None:
    run = Run(workflows.SNAPSHOT, "alpha")
    run.failed(run.waiting()[0])
    ends = [line for line in logged(run.facts) if line["event"] == "cycle.ended"]

    assert [line["log_level"] for line in ends] == ["warning"]
    assert BROKEN.message in ends[0]["reason"]
