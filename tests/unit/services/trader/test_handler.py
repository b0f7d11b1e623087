"""Trader and reviewer: what may be picked, what is sold, and that a review only reduces."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from contracts.account import Portfolio, Position, Side
from contracts.cycle import CycleRequest
from contracts.facts import DatedEvent, EventKind
from contracts.risk import ReviewPicks
from contracts.trader import PickTrades, StockPick
from contracts.types import Money
from libs.llm.provider import ModelReply
from libs.llm.scripted import ScriptedProvider, asks, says

DONE = ModelReply()
EARNINGS = DatedEvent(
    id="announced-abc",
    ticker="AAPL",
    kind=EventKind.ANNOUNCED,
    on=date(2012, 7, 10),
    known_at=datetime(2012, 6, 1, tzinfo=UTC),
)


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
    seen = {"signal_digest": found["digest"], "sentiment_report": found["sentiment"]}
    parts = {"plan": found["plan"], **seen, **known, **changes}
    return await desk.do(PickTrades, request=request, **parts)


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
        (
            review(pick(allocation_pct="41"), pick("MSFT", allocation_pct="40")),
            "AAPL: the reviewer raised it to 41%, which a review may not; it stays at",
        ),
        (
            review(pick(), pick("MSFT", allocation_pct="5"), pick("TSLA")),
            "TSLA: the reviewer added it",
        ),
        (review(pick()), "MSFT: the reviewer left it out without a word, which counts as a veto"),
    ],
)
async def test_a_review_that_adds_raises_or_hides_is_cut_back_in_one_call_and_told(
    desk, facts, wrong, told
):
    model = scripted(desk, says(wrong))
    answer = await reviewed(desk, facts, facts[1]["picks"])
    before = {each.ticker: each for each in facts[1]["picks"].picks}
    assert model.calls == 1
    assert told in answer.adjustments[0]
    assert told in answer.corrected[0]
    assert answer.picks, "the sound picks survive"
    for each in answer.picks:
        assert each.allocation_pct <= before[each.ticker].allocation_pct
        assert each.confidence <= before[each.ticker].confidence
        assert each.reasoning == before[each.ticker].reasoning
    assert set(before) == {p.ticker for p in answer.picks} | set(answer.vetoed_tickers)
    assert answer.market_summary == facts[1]["picks"].market_summary


async def test_a_review_leaves_sales_that_it_does_not_name_and_cuts_those_that_it_trims(
    desk, facts
):
    daily = facts[1]["picks"]
    sales = tuple(
        StockPick(ticker=name, action=Side.SELL, allocation_pct=100, reasoning="x", confidence=0.5)
        for name in ("GOOG", "IBM", "FB")
    )
    daily = daily.model_copy(update={"sell_recommendations": sales})
    scripted(
        desk,
        says(
            review(
                sell_recommendations=[pick("IBM", allocation_pct="30")],
                vetoed_tickers=["FB", "AAPL", "MSFT"],
            )
        ),
    )
    answer = await reviewed(desk, facts, daily)
    left = {each.ticker: (each.action, each.allocation_pct) for each in answer.sell_recommendations}
    assert left == {"GOOG": (Side.SELL, 100), "IBM": (Side.SELL, 30)}


async def test_the_trader_is_given_the_market_data_and_the_sentiment(desk, facts):
    model = scripted(desk, DONE, says(picks(pick())))
    await traded(desk, facts)
    task = model.requests[0].task
    assert task["signal_digest"] == facts[1]["digest"].model_dump(mode="json")
    assert task["sentiment_report"] == facts[1]["sentiment"].model_dump(mode="json")


def changed(report, ticker, **fields):
    findings = [
        finding.model_copy(update=fields) if finding.ticker == ticker else finding
        for finding in report.tickers
    ]
    return report.model_copy(update={"tickers": tuple(findings)})


@pytest.mark.parametrize(
    ("fields", "share", "told"),
    [
        ({"risk_score": 7.1, "catalyst": "takeover"}, None, "no dated event"),
        ({"measured_risk": 8.0}, None, "no dated event"),
        ({"risk_score": 7.1, "catalyst_event": EARNINGS}, Decimal("33.59"), ""),
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
