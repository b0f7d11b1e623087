"""What the exit signal service answers: the check of one position."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog

from contracts.exit_signal import (
    CheckExitSignals,
    ExitOutput,
    ExitSignals,
    Holdings,
    HoldingsQuery,
)
from libs.runtime.errors import DeskError
from services.exit_signal import report
from services.exit_signal.files import ResultFiles
from services.exit_signal.logic import assess, held_in
from services.exit_signal.reads import Reads
from services.exit_signal.terms import terms_in

log = structlog.get_logger()


class NotHeld(DeskError):
    """There is nothing to sell."""

    code = "not_held"


class AsksHoldings(Protocol):
    """Who knows what an account holds."""

    async def holdings(self, query: HoldingsQuery) -> Holdings:
        """What the account holds. Raises DeskError where it cannot say."""
        ...


@dataclass(frozen=True)
class Checking:
    """What a check works with."""

    reads: Reads
    accounts: AsksHoldings
    terms_path: Path
    files: ResultFiles


async def check_exit_signals(query: CheckExitSignals, *, checking: Checking) -> ExitSignals:
    """The check in the format asked for. What keeps it from being made is told in the answer, with
    a stable `error_code`; so is a file that could not be written."""
    result = await _result(query, checking)
    saved = None
    if query.output is ExitOutput.FILE:
        saved = await asyncio.to_thread(checking.files.save, result)
    log.info(
        "exit_signal.checked",
        account=query.account,
        ticker=query.ticker,
        found=result.get("overall_assessment", result.get("error_code")),
    )
    return ExitSignals(answer=report.shaped(result, query.format, saved))


async def _result(query: CheckExitSignals, checking: Checking) -> dict[str, Any]:
    named = {"ticker": query.ticker, "account": query.account}
    if query.as_of is not None:
        named["as_of"] = query.as_of.isoformat()
    try:
        asked = HoldingsQuery(account=query.account, as_of=query.as_of)
        holdings = await checking.accounts.holdings(asked)
        named["as_of"] = holdings.as_of.isoformat()
        held = held_in(holdings, query.ticker)
        if held is None:
            raise NotHeld(
                f"account {query.account} holds no share of {query.ticker} at {holdings.as_of}"
            )
        terms = (await asyncio.to_thread(terms_in, checking.terms_path)).of(
            query.account, query.ticker
        )
        facts = await checking.reads.facts(held.position, holdings, terms)
    except DeskError as error:
        return report.error_of(named, error.code, error.message)
    orders = [each for each in holdings.open_orders if each.asset == query.ticker]
    return report.result_of(named, held, orders, assess(facts, terms, held))
