"""The price above which the rules would buy is one at which their votes do turn; and their page."""

from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st

from contracts.research import AssetView, ResearchFinding
from libs.llm.rules import analyst, quant, rule_set, technical, trader
from libs.llm.rules.rule_set import EvidenceIndex
from libs.llm.rules.technical import VOTED_BY, vote

PAGE = Path(__file__).parents[4] / "docs/why-nothing-was-bought.md"
prices = st.floats(min_value=10, max_value=500)


def judged(values: dict[str, float]) -> tuple[dict[str, Any], EvidenceIndex]:
    """The task and the facts of one ticker with these indicators, as the rules judge them."""
    votes = vote(values)
    view = AssetView(ticker="AAA", signal=quant.signal_of(votes), confidence=0.3, reasoning="")
    finding = ResearchFinding(
        ticker="AAA",
        fundamental_score=None,
        technical_score=round(5.0 + votes.net, 2),
        risk_score=3.0,
    )
    own = {"cycle_id": str(UUID(int=1)), "op_id": str(UUID(int=2)), "as_of": "2012-06-29"}
    money = {"amount": "1000"}
    task = {
        "portfolio": {**own, "account": "main", "cash": money, "equity": money},
        "quant_report": {
            **own,
            "signal": "neutral",
            "confidence": 0.0,
            "reasoning": "",
            "assets": [view.model_dump(mode="json")],
        },
        "research_report": {
            **own,
            "analysis_date": "2012-06-29",
            "tickers": [finding.model_dump(mode="json")],
        },
    }
    facts: dict[str, float | str] = {
        f"AAA.{fact}": values[name] for name, fact in VOTED_BY.items() if name in values
    }
    return task, EvidenceIndex((), {**facts, "AAA.volume": 1.0, "AAA.room_pct": 20.0})


@given(prices, prices, prices, prices, st.floats(min_value=-5, max_value=5))
def test_at_a_price_above_the_told_one_it_would_be_bought_and_at_the_close_it_is_not(
    close: float, fast: float, slow: float, before: float, macd: float
) -> None:
    values = {"close": close, "sma_50": fast, "sma_200": slow, "macd_histogram": macd}
    values["momentum_3m_pct"] = (close / before - 1) * 100
    task, evidence = judged(values)
    assume(not trader.answer(task, evidence).picks)
    (told,) = trader.passed(task, evidence)
    assert told.ticker == "AAA"
    assert told.value
    assert told.limit
    if told.buys_above is None:
        return
    price = float(told.buys_above.amount) * 1.0001
    assert price >= close
    moved = {**values, "close": price, "macd_histogram": macd * price / close}
    moved["momentum_3m_pct"] = (price / before - 1) * 100
    assert trader.answer(*judged(moved)).picks


def test_the_page_has_every_threshold() -> None:
    """Each row of the page's table with the numbers of the code."""
    page = PAGE.read_text().split("## The thresholds of `rules`")[1].split("\n## ")[0]
    pe, profit = analyst.SCALES["pe_ratio"], analyst.SCALES["profit_growth_pct"]
    margin, debt = analyst.SCALES["profit_margin_pct"], analyst.SCALES["debt_to_equity"]
    for words in (
        f"MACD histogram of at least {technical.MACD_NOISE_PCT} % of the price",
        f"3 months of at least {technical.MOMENTUM_3M_PCT_MIN:g} %",
        (
            f"at least {quant.VOTES_CAST_MIN} votes cast, and net votes of at least "
            f"{quant.NET_VOTES_MIN} either way"
        ),
        f"or at least {quant.SPLIT_VOTES_MIN} on either side",
        f"{analyst.FUNDAMENTALS_NEUTRAL:g}, and {analyst.FUNDAMENTALS_STEP} up or down",
        f"P/E below {pe[0]:g} or above {pe[1]:g}",
        f"profit growth above {profit[0]:g} % or below {profit[1]:g} %",
        f"profit margin above {margin[0]:g} % or below {margin[1]:g} %",
        f"debt to equity below {debt[0]:g} or above {debt[1]:g}",
        f"{technical.RISK_PER_VOLATILITY_PCT} for each percent of volatility",
        (
            f"{technical.RISK_PER_DRAWDOWN_PCT} for each percent below the high of "
            f"{analyst.HISTORY_DAYS} sessions"
        ),
        (
            f"{technical.RISK_RSI_EXTREME} for an RSI below {technical.RSI_OVERSOLD:g} or above "
            f"{technical.RSI_OVERBOUGHT:g}"
        ),
        f"{analyst.EARNINGS_RISK:g} for a report within {analyst.EARNINGS_DAYS} days",
        f"{analyst.GRAVE_RISK:g} for a grave filing of the last {analyst.FILED_DAYS} days",
        f"{technical.RISK_UNKNOWN:g} where volatility is unknown",
        (
            f"technical score of at least {trader.NEUTRAL:g}, conviction of at least "
            f"{trader.CONVICTION_MIN:g}"
        ),
        (
            f"+ {trader.FUNDAMENTAL_WEIGHT} times what the fundamental score is above "
            f"{trader.NEUTRAL:g}, + {trader.SENTIMENT_WEIGHT:g} times sentiment, + "
            f"{trader.EVENT_WEIGHT:g} times reports and filings"
        ),
        f"at most {trader.INVESTED_PCT} % of the budget, at most {trader.PICKS_MAX} buys",
        f"at most {rule_set.CONFIDENCE_MAX} |",
    ):
        assert words in page, words
