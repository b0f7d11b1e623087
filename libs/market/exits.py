"""An account's exit rules, and the closes that they look at."""

from dataclasses import dataclass
from datetime import date

from contracts.exit_signal import ExitSignal
from libs.market.exit_terms import BadExitTerms, DeskExitRules
from libs.market.source import MarketData
from libs.quant.exits.entry import signals_at_entry, wanted_at_entry
from libs.quant.exits.history import HistoryRequest, PriceHistory, history_of, last_complete
from libs.quant.exits.terms import ExitTerms


@dataclass(frozen=True)
class AccountExits:
    """The exit rules of one account, as they are when asked for."""

    rules: DeskExitRules | None
    account: str

    async def of(self, ticker: str) -> ExitTerms | None:
        """The terms of a position of the ticker; the defaults without rules, and None where the
        file could not be used since the start: then it is unknown what they would sell."""
        if self.rules is None:
            return ExitTerms()
        try:
            file = await self.rules.read()
        except BadExitTerms:
            return None
        return file.of(self.account, ticker)

    @property
    def note(self) -> str:
        """That the rules read before stand, and why; empty where the file can be used."""
        return self.rules.note if self.rules else ""


async def history(market: MarketData, wanted: HistoryRequest, as_of: date) -> PriceHistory:
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
