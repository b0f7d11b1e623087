"""The reporter: asks for a report, writes it whole, says where it is."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from contracts.account import AccountLimits, Portfolio
from contracts.message import Pipeline
from contracts.report import DayReport, ReportQuery, ReportView, WriteReport
from contracts.types import Money
from libs.bus.client import DeskNotReachable
from libs.runtime.journal import Journal
from services.reporter.files import ReportFiles
from services.reporter.handler import NoReport, write_report

DAY = date(2012, 6, 29)
NOW = datetime(2012, 6, 29, 21, tzinfo=UTC)
NO_JOURNAL = cast(Journal, None)


class Told:
    """A console that knows one report."""

    def __init__(self, view: ReportView | None) -> None:
        self.view = view
        self.asked: list[ReportQuery] = []

    async def report(self, query: ReportQuery) -> ReportView:
        self.asked.append(query)
        if self.view is None:
            raise DeskNotReachable("nobody answers")
        return self.view


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def command() -> WriteReport:
    ids: dict[str, Any] = {"cycle_id": UUID(int=1), "op_id": UUID(int=2), "as_of": DAY}
    books = Portfolio(
        **ids,
        account="paper",
        cash=Money(amount=Decimal(1)),
        equity=Money(amount=Decimal(1)),
        limits=AccountLimits(),
    )
    return WriteReport(
        **ids,
        now=NOW,
        pipeline=Pipeline(name="rules", account="paper"),
        state="reporting",
        step="report",
        workflow_version=1,
        seed=1,
        portfolio=books,
    )


REPORT = DayReport(account="paper", session=DAY, currency="USD", made_at=NOW)


async def test_the_report_of_the_command_s_account_and_session_is_written(tmp_path: Path) -> None:
    console = Told(ReportView(report=REPORT, markdown="# paper\n"))
    files = ReportFiles(tmp_path / "reports")

    made = await write_report(command(), NO_JOURNAL, console=console, files=files)

    assert console.asked == [ReportQuery(account="paper", session=DAY)]
    assert Path(made.file_path) == tmp_path / "reports" / "paper-2012-06-29.md"
    assert contents(tmp_path / "reports") == {"paper-2012-06-29.md": "# paper\n"}
    assert made.report == REPORT


async def test_a_later_report_takes_the_earlier_one_s_place_and_leaves_nothing_else(
    tmp_path: Path,
) -> None:
    files = ReportFiles(tmp_path)
    for text in ("first\n", "second\n"):
        console = Told(ReportView(report=REPORT, markdown=text))
        await write_report(command(), NO_JOURNAL, console=console, files=files)

    assert contents(tmp_path) == {"paper-2012-06-29.md": "second\n"}


async def test_a_console_that_does_not_answer_is_asked_again_and_no_failure(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        await write_report(command(), NO_JOURNAL, console=Told(None), files=ReportFiles(tmp_path))


async def test_a_directory_that_cannot_be_written_fails_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file")
    console = Told(ReportView(report=REPORT, markdown="# paper\n"))

    with pytest.raises(NoReport, match="was not written in"):
        await write_report(
            command(), NO_JOURNAL, console=console, files=ReportFiles(tmp_path / "reports")
        )


async def test_an_account_that_is_not_there_has_no_report(tmp_path: Path) -> None:
    console = Told(ReportView(found=False, message="no account is named 'paper'"))
    with pytest.raises(NoReport, match="no account is named"):
        await write_report(command(), NO_JOURNAL, console=console, files=ReportFiles(tmp_path))
    assert contents(tmp_path) == {}
