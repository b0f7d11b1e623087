"""Ask for the report, write it, say where it is."""

import asyncio
from typing import Protocol

from contracts.report import DailyReport, ReportQuery, ReportView, WriteReport
from libs.bus.client import DeskNotReachable
from libs.runtime.errors import DeskError
from libs.runtime.journal import Journal
from services.reporter.files import ReportFiles


class Console(Protocol):
    """Who knows what a session brought."""

    async def report(self, query: ReportQuery) -> ReportView:
        """The report of one session."""
        ...


class NoReport(DeskError):
    """There is nothing to report, or the report cannot be written."""

    code = "no_report"


async def write_report(
    command: WriteReport, _journal: Journal, *, console: Console, files: ReportFiles
) -> DailyReport:
    """The written report. Written again it is the same file, with what is known then."""
    query = ReportQuery(account=command.pipeline.account, session=command.as_of)
    try:
        view = await console.report(query)
    except DeskNotReachable as error:
        # Not a no: the command comes again.
        raise ConnectionError(error.message) from error
    if view.report is None:
        raise NoReport(view.message or f"the console knows no account {query.account!r}")
    try:
        account, session = view.report.account, view.report.session
        path = await asyncio.to_thread(files.save, account, session, view.markdown)
    except OSError as error:
        why = error.strerror or str(error)
        raise NoReport(f"the report was not written in {files.directory}: {why}") from error
    return DailyReport.of(command, report=view.report, file_path=str(path))
