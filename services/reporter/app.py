"""Wiring of the reporter. It has no database: the console tells it what to write."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contracts.report import ReportQuery, ReportView
from contracts.subjects.commands import WRITE_REPORT
from contracts.subjects.reports import REPORT
from libs.bus.client import Client, open_client
from libs.bus.route import Routes, on_command
from libs.runtime.settings import Settings
from services.reporter.files import ReportFiles
from services.reporter.handler import Console, write_report

SERVICE = "reporter"


class BusConsole:
    """The console, over the bus."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def report(self, query: ReportQuery) -> ReportView:
        """The session's report. Raises DeskNotReachable and QuestionRefused."""
        return await self._client.ask(REPORT, query)


def routes(console: Console, files: ReportFiles) -> Routes:
    """The service's messages with their handlers."""
    write = on_command(WRITE_REPORT, write_report, console=console, files=files)
    return Routes(service=SERVICE, commands=(write,))


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with open_client(settings.nats_address, settings.secrets_path, SERVICE) as client:
        yield routes(BusConsole(client), ReportFiles(settings.reports_path))
