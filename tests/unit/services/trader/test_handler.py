"""Trader and reviewer: what may be picked, what is sold, and that a review only reduces."""

from decimal import Decimal

import pytest

from contracts.account import Portfolio, Position, Side
from contracts.cycle import CycleRequest
from contracts.risk import ReviewPicks
from contracts.trader import PickTrades
from contracts.types import Money
from libs.llm.errors import AnswerInvalid
from libs.llm.provider import ModelReply
from libs.llm.scripted import ScriptedProvider, asks, says

DONE = ModelReply()


def pick(ticker="AAPL", **fields):
    return {
        "ticker": ticker,
        "action": "buy",
        "allocation_pct": "20",
        "reasoning": "trend",
        "confidence": 0.5,
        **fields,
    }


def picks(*items, **fields):
    return {"picks": list(items), "confidence": 0.5, "market_summary": "calm", **fields}


@pytest.fixture
def facts(desk, found):
    """What the stages before the trader found, by the rules."""
    return {
        "quant_report": found["quant"],
        "research_report": found["research"],
        "portfolio": desk.empty_account(),
    }, found


def scripted(desk, *replies) -> ScriptedProvider:
    provider = ScriptedProvider(replies)
    desk.providers = {"rules": provider}
    return provider


async def traded(desk, facts, **changes):
    known, found = facts
    request = CycleRequest(idempotency_key="test")
    return await desk.do(PickTrades, request=request, plan=found["plan"], **{**known, **changes})


async def test_the_trader_has_two_tools_and_neither_writes(desk, facts):
    model = scripted(desk, asks(("get_news", {"ticker": "AAPL"})), DONE, says(picks(pick())))
    await traded(desk, facts)
    assert {tool.name for tool in model.requests[0].tools} == {"get_stock_price", "get_portfolio"}
    assert model.requests[1].messages[-1].results[0].is_error


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (picks(pick("TSLA")), "TSLA was not researched"),
        (picks(pick(), pick()), "AAPL comes twice"),
        (picks(pick(action="sell")), "AAPL must have action buy"),
        (picks(pick(allocation_pct="60"), pick("IBM", allocation_pct="41")), "sum to 101%"),
        (
            picks(sell_recommendations=[pick(action="sell")]),
            "sell_recommendations: AAPL is not held",
        ),
    ],
)
async def test_picks_that_cannot_be_meant_are_sent_back(desk, facts, wrong, told):
    model = scripted(desk, DONE, says(wrong), says(picks(pick())))
    daily = await traded(desk, facts)
    assert told in model.requests[-1].messages[-1].text
    assert [item.ticker for item in daily.picks] == ["AAPL"]
    assert (daily.llm, daily.pick_date) == ("rules", desk.as_of)


async def test_by_rules_what_is_held_and_bearish_is_sold(desk, facts):
    money = Money(amount=Decimal(580))
    held = Position(ticker="GOOG", quantity=Decimal(10), average_cost=money, price=money)
    account: Portfolio = desk.empty_account().model_copy(update={"positions": (held,)})
    daily = await traded(desk, facts, portfolio=account)
    [sale] = daily.sell_recommendations
    assert (sale.ticker, sale.action, sale.allocation_pct) == ("GOOG", Side.SELL, 100)
    assert "bearish" in sale.reasoning


async def reviewed(desk, facts, daily, **changes):
    known, _ = facts
    return await desk.do(ReviewPicks, daily_picks=daily, **{**known, **changes})


def review(*items, **fields):
    return {"picks": list(items), "confidence": 0.4, **fields}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (review(pick(allocation_pct="41")), "AAPL may not exceed the 33.59% proposed"),
        (review(pick("TSLA")), "TSLA was not proposed"),
        (review(pick()), "vetoed_tickers: MSFT is gone from picks"),
    ],
)
async def test_a_review_that_adds_raises_or_hides_is_sent_back(desk, facts, wrong, told):
    good = review(pick(), vetoed_tickers=["MSFT"], adjustments=["MSFT: vetoed"])
    model = scripted(desk, says(wrong), says(good))
    answer = await reviewed(desk, facts, facts[1]["picks"])
    assert told in model.requests[-1].messages[-1].text
    assert answer.vetoed_tickers == ("MSFT",)
    assert not model.requests[0].tools


async def test_a_reviewer_that_keeps_raising_is_a_wrong_answer(desk, facts):
    bad = says(review(pick(allocation_pct="99"), vetoed_tickers=["MSFT"]))
    scripted(desk, bad, bad, bad)
    with pytest.raises(AnswerInvalid, match="may not exceed"):
        await reviewed(desk, facts, facts[1]["picks"])


def changed(report, ticker, **fields):
    findings = [
        finding.model_copy(update=fields) if finding.ticker == ticker else finding
        for finding in report.tickers
    ]
    return report.model_copy(update={"tickers": tuple(findings)})


@pytest.mark.parametrize(
    ("fields", "share", "told"),
    [
        ({"risk_score": 7.1, "catalyst": ""}, None, "no catalyst"),
        ({"risk_score": 7.1, "catalyst": "earnings"}, Decimal("33.59"), ""),
        ({"risk_score": 7.0}, Decimal("33.59"), ""),
        ({"evidence": ()}, None, "no research evidence"),
        ({"evidence": ("E1",)}, Decimal("16.79"), "halved"),
        ({"technical_score": 1.8}, Decimal("16.79"), "above what its scores carry"),
    ],
)
async def test_the_rules_reviewer_judges_risk_and_evidence(desk, facts, fields, share, told):
    report = changed(facts[0]["research_report"], "AAPL", **fields)
    answer = await reviewed(desk, facts, facts[1]["picks"], research_report=report)
    shares = {item.ticker: item.allocation_pct for item in answer.picks}
    assert shares.get("AAPL") == share
    assert ("AAPL" in answer.vetoed_tickers) == (share is None)
    assert told in " ".join(answer.adjustments)
    assert shares["MSFT"] == Decimal("40.00")
