"""One operation, as it is shown: what went in and came out, within a screen or two."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from contracts.operation import OperationDetail, OperationStatus, OperationView
from services.cli.trading.operations import LINES_MAX, SHORT_LINES, _show

ID = UUID(int=7)


def test_a_command_of_thousands_of_lines_is_shown_by_its_first_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = OperationView(
        op_id=ID,
        cycle_id=ID,
        pipeline="rules",
        state="assessing",
        name="assess",
        type="agent_assessment",
        status=OperationStatus.COMPLETED,
        created_at=datetime(2012, 6, 29, tzinfo=UTC),
    )
    curve = {"equity": [100_000 + day for day in range(7_000)]}
    _show(OperationDetail(found=True, operation=node, command=curve), node, {}, full=True)

    shown = capsys.readouterr().out
    assert len(shown.splitlines()) < LINES_MAX + 10
    assert "… 6,944 more lines: --json has them all" in shown

    _show(OperationDetail(found=True, operation=node, command=curve), node, {}, full=False)
    shown, words = capsys.readouterr()
    assert len(shown.splitlines()) < SHORT_LINES + 10
    assert "more lines: --full" in shown
    assert "deskbus operations show 00000000 --full" in words
