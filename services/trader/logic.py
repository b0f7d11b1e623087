"""What is wrong with a trader's picks beyond their schema. Pure."""

from collections.abc import Sequence
from decimal import Decimal

from contracts.account import Portfolio, Side
from contracts.research import ResearchReport
from contracts.trader import PicksDraft, StockPick
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
        *_wrong_side("picks", draft.picks, Side.BUY),
        *_wrong_side("sell_recommendations", draft.sell_recommendations, Side.SELL),
        *_twice((*draft.picks, *draft.sell_recommendations)),
        *(too_much if total > ALLOCATION_PCT_MAX else ()),
    )


def _wrong_side(field: str, picks: Sequence[StockPick], side: Side) -> tuple[str, ...]:
    return tuple(
        f"{field}: {pick.ticker} must have action {side.value}"
        for pick in picks
        if pick.action is not side
    )


def _twice(picks: Sequence[StockPick]) -> tuple[str, ...]:
    names = [pick.ticker for pick in picks]
    return tuple(
        f"picks: {name} comes twice" for name in dict.fromkeys(names) if names.count(name) > 1
    )
