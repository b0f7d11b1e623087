"""The planner by rules: look into what is to be looked at again, then into the best ranked
candidates, and ask the usual question of them."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

from contracts.account import Portfolio
from contracts.research import FINDINGS_MAX, PlanDraft
from contracts.sentiment import SignalDigest
from libs.llm.rules.rule_set import (
    EvidenceIndex,
    RuleSet,
    TaskData,
    ToolRequest,
    account_and_prices,
    labelled,
)

EXPECTED_OUTPUTS = ("RSI14", "MACD", "SMA50", "SMA200", "momentum_3m", "volatility_3m")
CASH_PCT_MIN = Decimal(5)
"""Below this share of equity in cash there is little left to buy with: the plan says so."""


def ask(task: TaskData) -> tuple[ToolRequest, ...]:
    """The own account, and the price of every asset the plan will name."""
    return account_and_prices(_assets(task))


def answer(task: TaskData, evidence: EvidenceIndex) -> PlanDraft:
    """The top candidates whose price answered; all of them where no price did."""
    wanted = _assets(task)
    priced = tuple(ticker for ticker in wanted if evidence.result("get_stock_price", ticker))
    assets = priced or wanted
    names = ", ".join(assets)
    return PlanDraft(
        objective=labelled(f"find which of {names} have a trend worth buying at {task['as_of']}"),
        assets=assets,
        quant_question=(
            f"For each of {names}: is the trend up or down, by close against SMA50 and SMA200, "
            f"MACD and 3-month momentum, and is RSI14 extreme?"
        ),
        timeframes=("1d",),
        expected_outputs=EXPECTED_OUTPUTS,
        remarks=tuple(_remarks(task)),
    )


def _assets(task: TaskData) -> tuple[str, ...]:
    report: Any = task["sentiment_report"]
    digest = SignalDigest.model_validate(task["signal_digest"])
    # Then ranked ones; a candidate that the report left out still has its place in the digest.
    names = [
        *_due(task, digest.as_of),
        *(view["ticker"] for view in report["tickers"]),
        *(item.ticker for item in digest.candidates),
    ]
    few = task.get("assets_max")
    return tuple(dict.fromkeys(names))[: few if isinstance(few, int) else FINDINGS_MAX]


def _due(task: TaskData, as_of: date) -> Iterator[str]:
    """The positions due for another look, of those that the request names, if it names any."""
    named = task.get("universe")
    universe = {*named} if isinstance(named, list) else set()
    for held in Portfolio.model_validate(task["portfolio"]).positions:
        is_in_scope = not universe or held.ticker in universe
        if is_in_scope and held.plan is not None and held.plan.is_due(as_of):
            yield held.ticker


def _remarks(task: TaskData) -> Iterator[str]:
    """Notes on the account for the trader and the reviewer."""
    portfolio = Portfolio.model_validate(task["portfolio"])
    held = [position.ticker for position in portfolio.positions]
    if held:
        yield f"held: {', '.join(held)}"
    if portfolio.cash.amount * 100 < portfolio.equity.amount * CASH_PCT_MIN:
        yield labelled("less than 5% of equity is cash")


RULES = RuleSet(answer=answer, ask=ask)
