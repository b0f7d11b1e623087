"""The exit rules as `exit_signals.toml` states them, and the closes that they look at."""

import asyncio
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import structlog
from pydantic import ValidationError

from contracts.exit_signal import ExitSignal
from libs.market.source import MarketData
from libs.quant.exits.entry import signals_at_entry, wanted_at_entry
from libs.quant.exits.history import History, Wanted, history_of, last_complete
from libs.quant.exits.terms import ExitTerms, TermsFile
from libs.runtime.errors import DeskError
from libs.runtime.own_text import Unreadable, text_in, toml_in
from libs.runtime.wording import place_of, worded

log = structlog.get_logger()


class BadExitTerms(DeskError):
    """The file with the positions' exit rules cannot be used."""

    code = "bad_exit_terms"

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path.name} cannot be used: {why}; see docs/exit-signals.md")


def terms_in(path: Path) -> TermsFile:
    """The terms in the file; the defaults where there is none. Raises BadExitTerms."""
    try:
        return TermsFile.model_validate(toml_in(text_in(path), parse_float=Decimal))
    except FileNotFoundError:
        return TermsFile()
    except OSError as error:
        raise BadExitTerms(path, error.strerror or str(error)) from error
    except Unreadable as error:
        raise BadExitTerms(path, error.message) from error
    except ValidationError as error:
        raise BadExitTerms(path, _first(error)) from error


@dataclass(frozen=True)
class AccountExits:
    """The exit rules of one account, as the file has them when it is asked."""

    path: Path | None
    account: str

    async def of(self, ticker: str) -> ExitTerms | None:
        """The terms of a position of the ticker; the defaults without a path, and None where the
        file cannot be used: then nobody can say what they would sell."""
        if self.path is None:
            return ExitTerms()
        try:
            file = await asyncio.to_thread(terms_in, self.path)
        except BadExitTerms as error:
            log.warning("market.exit_rules_unread", reason=error.message)
            return None
        return file.of(self.account, ticker)


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, with its place. A mistyped name comes before the name that is
    missing by it."""
    wrong = error.errors(include_url=False)
    first, *rest = sorted(wrong, key=lambda one: one["type"] != "extra_forbidden")
    more = f" (and {len(rest)} more)" if rest else ""
    return f"{place_of(first['loc'], 'the file')}: {worded(first, TermsFile)}{more}"


async def history(market: MarketData, wanted: Wanted, as_of: date) -> History:
    """One ticker's closes up to as_of, as the exit rules take them. Raises MarketError."""
    bars = await market.bars(wanted.ticker, as_of, wanted.sessions)
    last = last_complete(as_of, market.calendar.next_session(as_of))
    days, closes = bars["date"].to_list(), bars["close"].to_list()
    return history_of(days, closes, last, wanted.peak_since, wanted.closes_since)


async def exits_at_entry(
    market: MarketData, ticker: str, as_of: date, terms: ExitTerms
) -> tuple[ExitSignal, ...]:
    """How these terms judge a position of the ticker that is bought at as_of's close. Raises
    MarketError."""
    opens, sessions = market.calendar.next_session(as_of), market.calendar.sessions
    wanted = wanted_at_entry(ticker, as_of, opens, terms, sessions)
    read = await history(market, wanted, as_of)
    return signals_at_entry(ticker, as_of, opens, terms, read, sessions)
