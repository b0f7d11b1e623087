"""Market data of assessment: the prices behind past decisions, each read journalled."""

from collections.abc import Mapping, Sequence
from datetime import date

from pydantic import JsonValue

from contracts.memory import AwaitedDecision, DecisionOutcome, PastPick
from contracts.operation import CallKind
from contracts.types import Failure
from libs.market.errors import LookAhead, MarketError, SourceUnavailable, is_silence
from libs.market.source import MarketData
from libs.runtime.journal import Call, Journal, Reply
from services.assessment import logic
from services.assessment.logic import Closes, Due


async def outcomes_known(
    journal: Journal, market: MarketData, as_of: date, awaited: Sequence[AwaitedDecision]
) -> tuple[DecisionOutcome, ...]:
    """The outcomes that have become known by as_of's close. Reads nothing newer than that.

    Raises SourceUnavailable where nothing is heard of any ticker of a decision.
    """
    if not awaited:
        return ()
    looked_at = logic.due(awaited, as_of, market.calendar)
    replies = await journal.calls([_look(market, group) for group in looked_at])
    return tuple(DecisionOutcome.model_validate(reply) for reply in replies)


def _look(market: MarketData, due: Due) -> Call:
    async def run() -> Reply:
        picks = {pick.ticker: pick for pick in due.decision.picks}
        tickers = dict.fromkeys((*picks, *due.decision.universe))
        prices = {
            ticker: await _prices(market, due, ticker, picks.get(ticker)) for ticker in tickers
        }
        silent = [price for price in prices.values() if is_silence(price)]
        if silent and all(isinstance(price, Failure) for price in prices.values()):
            raise SourceUnavailable(f"{len(prices)} tickers", silent[0].message)
        return Reply(logic.outcome(due, prices).model_dump(mode="json"))

    request: JsonValue = {
        "decision": due.decision.model_dump(mode="json"),
        "sessions": due.sessions,
        "as_of": due.session.isoformat(),
    }
    return Call(CallKind.READ, f"outcome after {due.sessions} sessions", request, run)


async def _prices(
    market: MarketData, due: Due, ticker: str, pick: PastPick | None
) -> Closes | Failure:
    """As they were known at the outcome's session, so that a later split or dividend is no part."""
    try:
        # A ticker that paused has fewer bars since the decision, never more.
        bars = await market.bars(ticker, due.session, due.sessions + 1)
        closes = dict(zip(bars["date"].to_list(), bars["close"].to_list(), strict=True))
        filled = await _filled(market, closes, ticker, pick)
        (listing,) = await market.universe(due.session, (ticker,))
    except LookAhead:
        raise
    except MarketError as error:
        return Failure(code=error.code, message=error.message)
    opens = dict(zip(closes, bars["open"].to_list(), strict=True))
    decided = due.decision.as_of
    return Closes(
        decided=closes.get(decided),
        next_open=opens.get(market.calendar.next_session(decided)),
        measured=closes[due.session],
        currency=listing.currency,
        filled=filled,
    )


async def _filled(
    market: MarketData, closes: Mapping[date, float], ticker: str, pick: PastPick | None
) -> float | None:
    """The fill's price in the terms of `closes`: it was paid in the raw terms of its session."""
    if pick is None or pick.fill_price is None or pick.filled_on is None:
        return None
    if pick.filled_on not in closes:
        return None
    raw = await market.bars(ticker, pick.filled_on, 1)
    return float(pick.fill_price.amount) * closes[pick.filled_on] / float(raw["close"][-1])
