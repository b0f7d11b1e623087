"""Wiring of the exit signal service. It reads the market and holds no account."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from contracts.exit_signal import Holdings, HoldingsQuery
from contracts.subjects.commands import CHECK_EXITS
from contracts.subjects.exits import EXIT_DISTANCES, EXIT_SIGNALS, HOLDINGS
from libs.bus.client import Client, open_client
from libs.bus.route import Route, Routes, on_command, on_query
from libs.market.exit_terms import DeskExitRules
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from services.exit_signal.files import ResultFiles
from services.exit_signal.handler import Checking, check_exit_signals, check_exits, exit_distances
from services.exit_signal.reads import ExitReads

SERVICE = "exit_signal"


class BusAccounts:
    """Accounts as execution tells them, over the bus."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def holdings(self, query: HoldingsQuery) -> Holdings:
        """The account's holdings. Raises QuestionRefused and DeskNotReachable."""
        return await self._client.ask(HOLDINGS, query)


def routes(checking: Checking, plugins: Sequence[str] = ()) -> Routes:
    """The service's messages with their handlers."""
    return Routes(
        service=SERVICE,
        commands=commands(checking.reads, checking.rules, plugins),
        questions=(
            on_query(EXIT_SIGNALS, check_exit_signals, checking=checking),
            on_query(EXIT_DISTANCES, exit_distances, checking=checking),
        ),
    )


def commands(
    reads: ExitReads, rules: DeskExitRules, plugins: Sequence[str] = ()
) -> tuple[Route, ...]:
    """The part that cycles use."""
    return (on_command(CHECK_EXITS, check_exits, reads=reads, rules=rules, plugins=plugins),)


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with open_client(settings.nats_address, settings.secrets_path, SERVICE) as client:
        yield routes(
            Checking(
                reads=ExitReads(market_of(settings)),
                accounts=BusAccounts(client),
                rules=DeskExitRules(settings.exit_rules_file),
                files=ResultFiles(settings.exit_signals_path, partial(datetime.now, UTC)),
            ),
            settings.exit_plugins,
        )
