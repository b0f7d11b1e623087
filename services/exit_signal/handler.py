"""Handlers of the exit signal service: the check of one position, and of all of an account's."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
from pydantic import JsonValue

from contracts.account import Side
from contracts.cycle import SellNow
from contracts.exit_signal import (
    DISTANCES_MAX,
    CheckExits,
    CheckExitSignals,
    ExitCheck,
    ExitDistances,
    ExitDistancesQuery,
    ExitOutput,
    ExitReport,
    ExitSignals,
    Holdings,
    HoldingsQuery,
    PositionExits,
)
from contracts.operation import CallKind
from contracts.types import Failure
from libs.market.exit_terms import DeskExitRules
from libs.market.source import said_of
from libs.quant.exits.history import (
    ExitContext,
    facts_of,
    wanted_for,
)
from libs.quant.exits.rules import ExitFacts
from libs.quant.exits.terms import TermsFile
from libs.runtime.errors import DeskError
from libs.runtime.journal import Call, Journal, Reply
from services.exit_signal import report
from services.exit_signal.by_hand import sold_by_hand
from services.exit_signal.distance import by_distance, exits_of
from services.exit_signal.files import ResultFiles
from services.exit_signal.logic import SellablePart, assess, check_of, held_in
from services.exit_signal.plugins import own_rules, question_of
from services.exit_signal.reads import ExitReads
from services.exit_signal.warnings import accounts_unknown, of_the_desk, warnings_of

log = structlog.get_logger()


class NotHeld(DeskError):
    """There is nothing to sell."""

    code = "not_held"

    def __init__(self, holdings: Holdings, ticker: str) -> None:
        message = (
            f"account {holdings.account} holds no share of {ticker} at the close of "
            f"{holdings.as_of}"
        )
        bought = (
            open_order
            for open_order in holdings.open_orders
            if (open_order.asset, open_order.side) == (ticker, Side.BUY)
        )
        order = next(bought, None)
        if order is not None:
            message += (
                f": {order.quantity.normalize():f} are bought at the open after it, and can be "
                "sold once that session is over"
            )
        super().__init__(message)


class ExitsUnchecked(DeskError):
    """None of the positions could be checked."""

    code = "exits_unchecked"


class AsksHoldings(Protocol):
    """Who knows what an account holds."""

    async def holdings(self, query: HoldingsQuery) -> Holdings:
        """The account's holdings. Raises DeskError where it cannot say."""
        ...


@dataclass(frozen=True)
class Checking:
    """The parts that a check works with."""

    reads: ExitReads
    accounts: AsksHoldings
    rules: DeskExitRules
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
        holdings_query = HoldingsQuery(account=query.account, as_of=query.as_of)
        holdings = await checking.accounts.holdings(holdings_query)
        named["as_of"] = holdings.as_of.isoformat()
        held = held_in(holdings, query.ticker)
        if held is None:
            raise NotHeld(holdings, query.ticker)
        file = await checking.rules.read()
        terms = {query.ticker: file.of(query.account, query.ticker)}
        calendar = checking.reads.market.calendar
        sessions = calendar.sessions
        account = ExitContext.of(holdings, calendar.next_session(holdings.as_of))
        named_in_file = file.named(query.account)
        requests = wanted_for([held.position], account, terms, sessions, named_in_file)
        histories = await checking.reads.histories(requests, holdings.as_of)
    except DeskError as error:
        return report.error_of(named, error.code, error.message)
    facts = facts_of(held.position, account, terms[query.ticker], histories, sessions)
    if isinstance(facts, Failure):
        return report.error_of(named, facts.code, facts.message)
    orders = [open_order for open_order in holdings.open_orders if open_order.asset == query.ticker]
    assessment = assess(facts, terms[query.ticker], held)
    warnings = [
        *filter(None, [checking.rules.note]),
        *warnings_of(named_in_file, histories, account.largest),
        *accounts_unknown(file.owners(), holdings.accounts),
        *of_the_desk(holdings),
    ]
    return report.result_of(named, held, orders, assessment, warnings)


async def exit_distances(query: ExitDistancesQuery, *, checking: Checking) -> ExitDistances:
    """Every open position with the way that is left to each of its triggers.

    Raises what keeps all of them from being checked; one that cannot be checked says why.
    """
    holdings = await checking.accounts.holdings(HoldingsQuery(account=query.account))
    every = sorted(holdings.positions, key=lambda position: (-position.value, position.ticker))
    held = [own for position in every if (own := held_in(holdings, position.ticker)) is not None]
    nearest = held[:DISTANCES_MAX]
    file = await checking.rules.read()
    terms = {item.position.ticker: file.of(query.account, item.position.ticker) for item in nearest}
    calendar = checking.reads.market.calendar
    sessions = calendar.sessions
    account = ExitContext.of(holdings, calendar.next_session(holdings.as_of))
    named = file.named(query.account)
    requests = wanted_for((item.position for item in nearest), account, terms, sessions, named)
    histories = await checking.reads.histories(requests, holdings.as_of)

    def distances(item: SellablePart) -> PositionExits:
        ticker = item.position.ticker
        facts = facts_of(item.position, account, terms[ticker], histories, sessions)
        orders = [order for order in holdings.open_orders if order.asset == ticker]
        assessment = facts if isinstance(facts, Failure) else assess(facts, terms[ticker], item)
        return exits_of(item, orders, assessment)

    return ExitDistances(
        account=query.account,
        as_of=holdings.as_of,
        positions=tuple(by_distance([*map(distances, nearest)])),
        more=len(nearest) < len(held),
        market_source=said_of(checking.reads.market, holdings.as_of),
        warnings=(
            *filter(None, [checking.rules.note]),
            *warnings_of(named, histories, account.largest),
            *accounts_unknown(file.owners(), holdings.accounts),
            *of_the_desk(holdings),
        ),
    )


async def check_exits(
    command: CheckExits,
    journal: Journal,
    *,
    reads: ExitReads,
    rules: DeskExitRules,
    plugins: Sequence[str] = (),
) -> ExitReport:
    """Check the account's open positions: all, or those that the request's universe names.

    Of the user's own exit rules those run that this service's settings name (`plugins`).
    Where a person sells by hand, only those sales are proposed, and no rule is asked. A position
    that cannot be checked says why; where that is so of all of them, nothing was found out and
    ExitsUnchecked is raised, unless they are all known to have no price any more. Raises
    BadExitTerms.
    """
    books = command.portfolio
    holdings = Holdings(
        account=books.account,
        as_of=command.as_of,
        positions=books.positions,
        open_orders=books.open_orders,
        exits=books.exits,
        venue=books.venue,
    )
    if command.request.by_hand:
        return _by_hand(command, command.request.by_hand, holdings, reads)
    requested = {*(command.request.universe or (position.ticker for position in books.positions))}
    held = [
        own
        for position in books.positions
        if position.ticker in requested and (own := held_in(holdings, position.ticker)) is not None
    ]
    tickers = [item.position.ticker for item in held]
    file, note = await _journalled_terms(journal, rules, books.account, tickers)
    terms = {ticker: file.of(books.account, ticker) for ticker in tickers}
    calendar = reads.market.calendar
    sessions = calendar.sessions
    account = ExitContext.of(holdings, calendar.next_session(holdings.as_of))
    requests = wanted_for((item.position for item in held), account, terms, sessions)
    histories, notes = await reads.journalled(journal, requests, command.as_of)

    known = {
        item.position.ticker: facts_of(
            item.position, account, terms[item.position.ticker], histories, sessions
        )
        for item in held
    }
    questions = [
        question_of(item.position, facts, books)
        for item in held
        if isinstance(facts := known[item.position.ticker], ExitFacts)
    ]
    asked = await own_rules(journal, command.exit_plugins, questions, plugins)

    def check(item: SellablePart) -> ExitCheck:
        ticker = item.position.ticker
        facts = known[ticker]
        if isinstance(facts, Failure):
            return ExitCheck(ticker=ticker, failure=facts)
        return check_of(item, assess(facts, terms[ticker], item, asked.rules.get(ticker, ())))

    checks = tuple(map(check, held))
    failures = [check.failure for check in checks if check.failure is not None]
    priced = any(item.position.priced_on is None for item in held)
    if priced and len(failures) == len(checks):
        raise ExitsUnchecked(
            f"none of {len(checks)} positions could be checked; {tickers[0]}: {failures[0].message}"
        )
    log.info(
        "exit_signal.positions_checked",
        account=books.account,
        checked=len(checks),
        sales=sum(check.quantity is not None for check in checks),
        failed=len(failures),
    )
    return ExitReport.of(
        command,
        account=books.account,
        checks=checks,
        market_source=", ".join((reads.market.label.in_words, *notes)),
        warnings=(*filter(None, [note]), *asked.warnings, *of_the_desk(holdings)),
        plugins=asked.sources,
    )


def _by_hand(
    command: CheckExits, sales: Sequence[SellNow], holdings: Holdings, reads: ExitReads
) -> ExitReport:
    """Sales that a person wants, without any rule, of what is held by now; each has a check that
    says what becomes of it. Raises NotHeld where nothing of all is held."""
    parts = [held_in(holdings, sale.ticker) for sale in sales]
    if not any(parts):
        raise NotHeld(holdings, sales[0].ticker)
    checks = [sold_by_hand(held, sale) for held, sale in zip(parts, sales, strict=True)]
    log.info("exit_signal.by_hand", account=holdings.account, sales=len(checks))
    return ExitReport.of(
        command,
        account=holdings.account,
        checks=tuple(checks),
        market_source=reads.market.label.in_words,
    )


async def _journalled_terms(
    journal: Journal, rules: DeskExitRules, account: str, tickers: Sequence[str]
) -> tuple[TermsFile, str]:
    """The terms of these positions in the file, read once, as it may change before a replay; and
    the note where they are those of before, as it cannot be used now."""

    async def run() -> Reply:
        file = (await rules.read()).only(account, tickers)
        terms = file.model_dump(mode="json", exclude_unset=True)
        return Reply({**terms, "note": rules.note})

    request: JsonValue = {"account": account, "tickers": list(tickers)}
    read: Any = await journal.call(Call(CallKind.READ, "exit rules", request, run))
    terms = {key: value for key, value in read.items() if key != "note"}
    return TermsFile.model_validate(terms), read.get("note", "")
