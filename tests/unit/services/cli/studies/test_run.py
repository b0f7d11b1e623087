"""The end of a study at the command line: one that says nothing is no success."""

from datetime import UTC, datetime

import pytest

from contracts.study import Study, StudyAnswer, StudyStatus, StudyView
from services.cli.shell.problem import CliProblem
from services.cli.studies.run import PLANNED, accepted, is_bad_end, screen
from tests.unit.services.cli.screens import printed


def view(status: StudyStatus, completed: int = 0, failed: int = 0) -> StudyView:
    study = Study.model_validate(
        {
            "name": "it",
            "dates": {"sessions": ["2012-03-01", "2012-04-02"]},
            "universe": ["AAPL", "IBM"],
            "arms": [{"name": "rules"}],
        }
    )
    return StudyView(
        study=study,
        sha256=study.sha256,
        status=status,
        cells=2,
        completed=completed,
        failed=failed,
        started_at=datetime(2012, 6, 29, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("status", "completed", "is_bad"),
    [
        (StudyStatus.COMPLETED, 2, False),
        (StudyStatus.COMPLETED, 1, False),
        (StudyStatus.COMPLETED, 0, True),
        (StudyStatus.STOPPED, 1, True),
        (StudyStatus.RUNNING, 0, False),
    ],
)
def test_a_study_without_a_cell_to_score_or_that_was_stopped_ends_badly(
    status: StudyStatus, completed: int, is_bad: bool
) -> None:
    assert is_bad_end(view(status, completed)) is is_bad


def test_where_cells_failed_the_way_to_the_reason_is_told() -> None:
    shown = printed(screen(view(StudyStatus.COMPLETED, completed=1, failed=1)))

    assert "deskbus study cells it" in shown


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("arms", "deskbus doctor"),
        ("name", "deskbus study list"),
        ("universe", PLANNED),
        (None, PLANNED),
    ],
)
def test_a_refusal_names_a_command_that_helps(field: str, hint: str) -> None:
    answer = StudyAnswer(outcome="rejected", code="no_key", field=field, message="it has no key")

    with pytest.raises(CliProblem, match="it has no key") as refused:
        accepted(answer)

    assert refused.value.hint == hint
