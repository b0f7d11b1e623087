"""What is wrong with a trader's picks beyond their schema, and the picks as they go on. Pure."""

from collections.abc import Sequence
from decimal import Decimal

from contracts.account import Portfolio, Side
from contracts.research import ResearchReport
from contracts.trader import PickDraft, PicksDraft, StockPick
from libs.quant.risk_rules import ALLOCATION_PCT_MAX


def pick_problems(
    draft: PicksDraft, report: ResearchReport, portfolio: Portfolio
) -> tuple[str, ...]:
    """Buys must have been researched, sales must be held, and shares sum to at most 100%."""
    researched = {finding.ticker for finding in report.tickers}
    held = {position.ticker for position in portfolio.positions}
    total = sum((pick.allocation_pct for pick in draft.picks), start=Decimal(0))
    too_much = (f"picks: allocations sum to {total}%, at most {ALLOCATION_PCT_MAX}%",)
    return (
        *(
            f"picks: {pick.ticker} was not researched"
            for pick in draft.picks
            if pick.ticker not in researched
        ),
        *(
            f"sell_recommendations: {pick.ticker} is not held"
            for pick in draft.sell_recommendations
            if pick.ticker not in held
        ),
        *_twice((*draft.picks, *draft.sell_recommendations)),
        *(too_much if total > ALLOCATION_PCT_MAX else ()),
    )


def picked(picks: Sequence[PickDraft], side: Side, report: ResearchReport) -> tuple[StockPick, ...]:
    """The picks of one side, each with the exchange that research has of it."""
    exchanges = {finding.ticker: finding.exchange for finding in report.tickers}
    return tuple(
        StockPick(**dict(pick), action=side, exchange=exchanges.get(pick.ticker, ""))
        for pick in picks
    )


def _twice(picks: Sequence[PickDraft]) -> tuple[str, ...]:
    names = [pick.ticker for pick in picks]
    return tuple(
        f"picks: {name} comes twice" for name in dict.fromkeys(names) if names.count(name) > 1
    )
