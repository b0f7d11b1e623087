"""Trader and reviewer: what may be picked, what is sold, and that a review only reduces."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.account import HeldPlan, Portfolio, Position, Side
from contracts.cycle import CycleRequest
from contracts.facts import DatedEvent, EventKind, ReportAhead
from contracts.reasons import REASONS_MAX, Reason, Speaks
from contracts.research import QuantSignal
from contracts.risk import ReviewPicks, ValidateDecision
from contracts.sentiment import TickerSentiment
from contracts.trader import PickTrades, StockPick
from contracts.types import Money
from libs.llm.prompt import digest_for_prompt, sentiment_for_prompt
from libs.llm.provider import ModelReply
from libs.llm.rules.provider import RulesProvider
from services.risk.logic import validate
from tests.fakes.moves import calm
from tests.fakes.reasons import drafted
from tests.fakes.scripted_model import ScriptedProvider, asks, says

READ, DONE = asks(("get_portfolio", {})), ModelReply()
"""A tool call and the end of the tool round: a trader that calls none is told so."""
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
        "confidence": 0.5,
        "reasons": [drafted(ticker)],
        **fields,
    }


def picks(*items, **fields):
    return {"picks": list(items), "confidence": 0.5, "answer": "calm", **fields}


@pytest.fixture
def facts(desk, found):
    """What the stages before the trader found, by the rules."""
    return {
        "quant_report": found["quant"],
        "research_report": found["research"],
        "portfolio": desk.empty_account(),
        "request": CycleRequest(idempotency_key="test"),
        "plan": found["plan"],
    }, found


def scripted(desk, *replies) -> ScriptedProvider:
    provider = ScriptedProvider(replies)
    desk.providers = {"rules": provider}
    return provider


async def traded(desk, facts, **changes):
    known, found = facts
    seen = {"signal_digest": found["digest"], "sentiment_report": found["sentiment"]}
    return await desk.do(PickTrades, **{**seen, **known, **changes})


async def test_the_trader_has_two_tools_and_neither_writes(desk, facts):
    model = scripted(desk, asks(("get_news", {"ticker": "AAPL"})), DONE, says(picks(pick())))
    await traded(desk, facts)
    assert {tool.name for tool in model.requests[0].tools} == {"get_stock_price", "get_portfolio"}
    assert model.requests[1].messages[-1].results[0].is_error


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (picks(pick("TSLA")), "picks.0: not researched; choose from "),
        (picks(pick(), pick(allocation_pct="30")), "picks.1: the same ticker as picks.0"),
        (
            picks(pick(allocation_pct="60"), pick("IBM", allocation_pct="41")),
            "may sum to 100% at most",
        ),
        (
            picks(sell_recommendations=[pick(action="sell")]),
            "sell_recommendations.0: not held",
        ),
    ],
)
async def test_picks_that_cannot_be_meant_are_sent_back(desk, facts, wrong, told):
    model = scripted(desk, READ, DONE, says(wrong), says(picks(pick())))
    daily = await traded(desk, facts)
    assert told in model.requests[-1].messages[-1].text
    assert [item.ticker for item in daily.picks] == ["AAPL"]
    assert (daily.llm, daily.pick_date) == ("rules", desk.as_of)


async def test_code_writes_the_figures_of_the_reasons_and_counts_the_picks(desk, facts):
    trend = {"fact": "AAPL.close", "beside": "AAPL.sma_200", "speaks": "for", "why": "up 20%"}
    odds = {"fact": "AAPL.measured_risk", "speaks": "against", "why": "target 700, RSI 30"}
    bought = pick(allocation_pct="33.5", reasons=[trend, odds])
    model = scripted(
        desk,
        asks(("get_stock_price", {"ticker": "AAPL"})),
        DONE,
        says(picks(bought, answer="of 5")),
    )
    daily = await traded(desk, facts)
    shown = model.requests[-1].messages[0].text
    assert "AAPL.close = 584 USD\n" in shown
    assert "account.cash = 100000 USD\n" in shown
    (apple,) = daily.picks
    assert apple.reasoning == (
        "For: close 584.00 USD, 20% above 200-day average 486.60 USD (up 20%). "
        "Against: risk as measured 4 of 10 (target 700, RSI 30)."
    )
    assert daily.market_summary == "1 to buy for 33.5% of the budget: of 5"
    assert [(each.text, each.call) for each in daily.figures][:2] == [
        ("584.00 USD", "E0"),
        ("20%", "E0"),
    ]
    assert all(
        apple.reasoning[each.start :].startswith(each.text)
        for each in daily.figures
        if each.field == "picks.0.reasoning"
    )
    assert [(each.field, each.text) for each in daily.loose] == [
        ("market_summary", "5"),
        ("picks.0.reasoning", "700"),
        ("picks.0.reasoning", "30"),
    ]


async def test_a_name_that_there_is_not_is_asked_about_once_and_then_falls_away(desk, facts):
    odd = picks(pick(reasons=[drafted("AAPL", "price_target"), drafted("AAPL")]))
    model = scripted(desk, READ, DONE, says(odd), says(odd))
    daily = await traded(desk, facts)
    told = model.requests[-1].messages[-1].text
    assert "picks.0.reasons.0.fact: " in told
    assert [each.fact for each in daily.picks[0].reasons] == ["AAPL.technical_score"]
    (corrected,) = daily.corrected
    assert corrected.endswith(" AAPL.price_target")


async def judged(desk, facts, daily):
    known, _ = facts
    review = await desk.do(ReviewPicks, daily_picks=daily, **known)
    command = desk.command(
        ValidateDecision,
        daily_picks=daily,
        pick_review=review,
        **known,
    )
    return validate(command, calm(("AAPL", "MSFT")))


async def test_review_and_validation_have_the_traders_reasoning_with_its_sources(desk, facts):
    why = {"fact": "AAPL.close", "beside": "AAPL.sma_200", "speaks": "for", "why": "to 700"}
    bought = [pick("MSFT", allocation_pct="5"), pick(reasons=[why])]
    scripted(desk, asks(("get_stock_price", {"ticker": "AAPL"})), DONE, says(picks(*bought)))
    daily = await traded(desk, facts)
    desk.providers = {"rules": RulesProvider()}
    review = await reviewed(desk, facts, daily)
    validation = await judged(desk, facts, daily)
    taken = (
        (review, "picks.1.reasoning", review.picks[1].reasoning),
        (
            validation,
            f"decisions.{[each.asset for each in validation.decisions].index('AAPL')}.reasoning",
            next(each.reasoning for each in validation.decisions if each.asset == "AAPL"),
        ),
    )
    for contract, field, text in taken:
        own = [each for each in contract.figures if each.field == field]
        assert [(each.text, each.call, each.op_id) for each in own] == [
            ("584.00 USD", "E0", daily.op_id),
            ("20%", "E0", daily.op_id),
            ("486.60 USD", "", facts[0]["quant_report"].op_id),
        ]
        assert all(text[each.start :].startswith(each.text) for each in own)
        assert [each.text for each in contract.loose if each.field == field] == ["700"]


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        ([], "no reason is given for it that could be looked up"),
        ([drafted("AAPL", "price_target")], "no reason is given for it that could be looked up"),
        ([drafted("MSFT")], "none of its reasons is a fact of AAPL that speaks for it"),
        ([drafted("account", "cash")], "none of its reasons is a fact of AAPL that speaks for it"),
        ([drafted("AAPL", speaks="against")], "none of its reasons is a fact of AAPL"),
    ],
    ids=["none", "unknown", "another ticker's", "the account's", "only against"],
)
async def test_a_buy_without_a_reason_of_its_own_is_vetoed_and_told(desk, facts, reasons, told):
    answer = says(picks(pick(reasons=reasons), pick("MSFT")))
    scripted(desk, READ, DONE, answer, answer)
    daily = await traded(desk, facts)
    desk.providers = {"rules": RulesProvider()}
    validation = await judged(desk, facts, daily)
    assert [each.asset for each in validation.decisions] == ["MSFT"]
    (veto,) = [each for each in validation.checks if not each.passed and each.ticker == "AAPL"]
    assert veto.rule == "own_reason"
    assert told in veto.reason
    if not reasons:
        assert daily.picks[0].reasoning == "no reason was given"


async def test_a_buy_has_a_plan_whether_the_answer_says_anything_of_it_or_not(desk, facts):
    own = pick("MSFT", stop_atr=2, horizon_sessions=5, review_event="AAPL.close")
    scripted(desk, READ, DONE, says(picks(pick(), own)))
    apple, microsoft = (await traded(desk, facts)).picks
    assert (apple.plan.stop_atr, apple.plan.horizon_sessions) == (3.0, 60)
    assert apple.plan.review_by == date(2012, 9, 25)
    assert (microsoft.plan.stop_atr, microsoft.plan.review_by) == (2.0, date(2012, 7, 9))
    assert microsoft.plan.review_event == ""


async def test_it_is_looked_at_again_by_a_report_that_comes_before_the_horizon(desk, facts):
    report = ReportAhead(on=date(2012, 7, 24), sessions=17)
    known = changed(facts[0]["research_report"], "AAPL", report=report, has_reports=True)
    scripted(desk, READ, DONE, says(picks(pick(review_event="AAPL.next_report"))))
    (apple,) = (await traded(desk, facts, research_report=known)).picks
    assert apple.plan.review_by == date(2012, 7, 24)
    assert apple.plan.review_event == "next report of 2012-07-24"


async def test_what_no_rule_lets_pass_is_asked_about_once_and_then_left_to_the_rules(desk, facts):
    money = Money(amount=Decimal(580))
    held = Position(ticker="AAPL", quantity=Decimal(10), average_cost=money, price=money)
    account: Portfolio = desk.empty_account().model_copy(update={"positions": (held,)})
    again = says(picks(pick()))
    model = scripted(desk, READ, DONE, again, again)
    daily = await traded(desk, facts, portfolio=account)
    shown = model.requests[-2].messages[0].text
    assert "AAPL.not_to_buy = " in shown
    assert "MSFT.room_pct = " in shown
    told = model.requests[-1].messages[-1].text
    assert "picks.0: it cannot be bought: the account has it already" in told
    assert [each.ticker for each in daily.picks] == ["AAPL"]


async def test_by_rules_nothing_is_asked_for_that_no_rule_lets_pass(desk, facts):
    money = Money(amount=Decimal(580))
    held = Position(ticker="AAPL", quantity=Decimal(1), average_cost=money, price=money)
    account: Portfolio = desk.empty_account().model_copy(update={"positions": (held,)})
    daily = await traded(desk, facts, portfolio=account)
    assert [each.ticker for each in daily.picks] == ["MSFT"]


async def test_by_rules_nothing_is_asked_for_that_reports_soon(desk, facts):
    near = ReportAhead(on=date(2012, 7, 5), sessions=3)
    known = changed(facts[0]["research_report"], "MSFT", report=near, has_reports=True)
    daily = await traded(desk, facts, research_report=known)
    assert [each.ticker for each in daily.picks] == ["AAPL"]


async def test_ten_thousand_reasons_are_heard_on_the_first(desk, facts):
    many = [{**drafted("AAPL"), "why": f"number {place}"} for place in range(10_000)]
    scripted(desk, READ, DONE, says(picks(pick(reasons=many))))
    daily = await traded(desk, facts)
    assert len(daily.picks[0].reasons) == REASONS_MAX


async def test_by_rules_what_is_held_and_bearish_is_sold(desk, facts):
    money = Money(amount=Decimal(580))
    held = Position(ticker="GOOG", quantity=Decimal(10), average_cost=money, price=money)
    account: Portfolio = desk.empty_account().model_copy(update={"positions": (held,)})
    daily = await traded(desk, facts, portfolio=account)
    [sale] = daily.sell_recommendations
    assert (sale.ticker, sale.action, sale.allocation_pct) == ("GOOG", Side.SELL, 100)
    assert "bearish" in sale.reasoning


async def sure_of_apple(desk, facts, *, mood=None, events=(), figures=None):
    """The confidence in AAPL of the trader by rules; None where it does not buy it."""
    known, found = facts
    report = known["research_report"]
    finding = next(each for each in report.tickers if each.ticker == "AAPL")
    own = tuple(each for each in finding.reasons if "@" not in each.fact)
    report = changed(report, "AAPL", fundamental_score=figures, reasons=(*own, *events))
    told = found["sentiment"].model_copy(
        update={"tickers": () if mood is None else (mood,), "unscored": ()}
    )
    daily = await traded(desk, facts, research_report=report, sentiment_report=told)
    return next((each.confidence for each in daily.picks if each.ticker == "AAPL"), None)


def spoken_of(score):
    return TickerSentiment(ticker="AAPL", score=score, confidence=0.6)


def reported(quantity, speaks):
    return Reason(fact=f"AAPL.{quantity}@2012-06-20", speaks=speaks, about="AAPL")


@pytest.mark.parametrize(
    ("known", "sure"),
    [
        ({}, 0.36),  # a trend of 8 of 10: three fifths of what rules may claim
        ({"mood": spoken_of(1.0)}, 0.48),
        ({"mood": spoken_of(-1.0)}, 0.24),
        ({"figures": 7.0}, 0.48),
        ({"figures": 3.0}, 0.24),
        ({"events": (reported("filing", Speaks.FOR),)}, 0.48),
        ({"events": (reported("filing", Speaks.AGAINST),)}, 0.24),
        ({"events": (reported("eps_actual", Speaks.FOR),)}, 0.48),
        ({"events": (reported("report", Speaks.AGAINST),)}, 0.24),
        ({"mood": spoken_of(-1.0), "figures": 3.0}, 0.12),
        ({"mood": spoken_of(-1.0), "figures": 0.0}, None),
    ],
)
async def test_by_rules_mood_figures_filings_and_reports_speak_for_and_against_a_buy(
    desk, facts, known, sure
):
    assert await sure_of_apple(desk, facts, **known) == sure


def held_with_a_plan(ticker: str, review_by: date) -> Position:
    money = Money(amount=Decimal(580))
    plan = HeldPlan(
        horizon_sessions=60,
        risk=Money(amount=Decimal(500)),
        risk_pct=Decimal("0.5"),
        review_by=review_by,
        thesis="For: the long trend.",
        since=date(2012, 4, 2),
        cycle_id=UUID(int=1),
    )
    return Position(
        ticker=ticker,
        quantity=Decimal(10),
        average_cost=money,
        price=money,
        opened_on=date(2012, 4, 2),
        plan=plan,
    )


@pytest.mark.parametrize(
    ("ticker", "review_by", "is_sold"),
    [
        ("IBM", date(2012, 6, 29), True),
        ("IBM", date(2012, 7, 2), False),  # its time is not up
        ("AAPL", date(2012, 6, 29), False),  # it would be bought today
    ],
)
async def test_by_rules_what_is_due_to_be_looked_at_again_is_kept_only_if_it_would_be_bought(
    desk, facts, ticker, review_by, is_sold
):
    known, _ = facts
    signals = {view.ticker: view.signal for view in known["quant_report"].assets}
    assert signals["IBM"] is not QuantSignal.BEARISH
    held = held_with_a_plan(ticker, review_by)
    account: Portfolio = desk.empty_account().model_copy(update={"positions": (held,)})
    daily = await traded(desk, facts, portfolio=account)
    assert [sale.ticker for sale in daily.sell_recommendations] == [ticker] * is_sold
    if is_sold:
        (sale,) = daily.sell_recommendations
        assert "to be looked at again since 2012-06-29 (too little speaks for it now)" in (
            sale.reasoning
        )


@pytest.mark.parametrize(
    ("review_by", "told"),
    [
        (date(2012, 7, 2), "AAPL.review_by = 2012-07-02"),
        (date(2012, 6, 29), "AAPL.review_due = 2012-06-29"),
    ],
)
async def test_the_trader_is_told_when_what_is_held_is_to_be_looked_at_again(
    desk, facts, review_by, told
):
    held = held_with_a_plan("AAPL", review_by)
    account: Portfolio = desk.empty_account().model_copy(update={"positions": (held,)})
    model = scripted(desk, READ, DONE, says(picks()))
    await traded(desk, facts, portfolio=account)
    assert told in model.requests[-1].messages[0].text


async def reviewed(desk, facts, daily, **changes):
    known, _ = facts
    return await desk.do(ReviewPicks, daily_picks=daily, **{**known, **changes})


def review(*items, **fields):
    return {"picks": list(items), "confidence": 0.4, **fields}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            review(pick(allocation_pct="41"), pick("MSFT", allocation_pct="13")),
            "AAPL: the reviewer raised it to 41%, which a review may not; it stays at",
        ),
        (
            review(
                pick(allocation_pct="10"),
                pick("MSFT", allocation_pct="5"),
                pick("TSLA", reasons=[]),
            ),
            "TSLA: the reviewer added it",
        ),
        (
            review(pick(allocation_pct="10")),
            "MSFT: the reviewer left it out without a word, which counts as a veto",
        ),
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
    model = scripted(desk, READ, DONE, says(picks(pick())))
    await traded(desk, facts)
    task = model.requests[0].task
    assert task["signal_digest"] == digest_for_prompt(facts[1]["digest"])
    assert task["sentiment_report"] == sentiment_for_prompt(facts[1]["sentiment"])


def changed(report, ticker, /, **fields):
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
        ({"risk_score": 7.1, "catalyst_event": EARNINGS}, Decimal("14.94"), ""),
        ({"risk_score": 7.0}, Decimal("14.94"), ""),
        ({"evidence": ()}, None, "no research evidence"),
        ({"evidence": ("E1",)}, Decimal("7.47"), "halved"),
        ({"technical_score": 1.8}, Decimal("7.47"), "above what its scores carry"),
    ],
)
async def test_the_rules_reviewer_judges_risk_and_evidence(desk, facts, fields, share, told):
    report = changed(facts[0]["research_report"], "AAPL", **fields)
    answer = await reviewed(desk, facts, facts[1]["picks"], research_report=report)
    shares = {item.ticker: item.allocation_pct for item in answer.picks}
    assert shares.get("AAPL") == share
    assert ("AAPL" in answer.vetoed_tickers) == (share is None)
    assert told in " ".join(answer.adjustments)
    assert shares["MSFT"] == Decimal("13.34")


def left(name, share, *reasons):
    return pick(name, allocation_pct=share, reasons=list(reasons))


async def test_what_a_review_changed_is_told_by_code_with_its_reasons(desk, facts):
    hot = {"fact": "AAPL.close", "beside": "AAPL.sma_200", "speaks": "against", "why": "30% high"}
    risky = drafted("MSFT", "measured_risk", speaks="against")
    answer = review(left("AAPL", "10", hot), left("MSFT", "0", risky), notes="1 sector")
    model = scripted(desk, says(answer))
    told = await reviewed(desk, facts, facts[1]["picks"])
    assert "AAPL.allocation_pct" in model.requests[0].output_schema["$defs"]["FactName"]["enum"]
    assert [each.ticker for each in told.picks] == ["AAPL"]
    assert told.vetoed_tickers == ("MSFT",)
    vetoed, cut = told.adjustments
    assert vetoed == "MSFT: vetoed. Against: risk as measured 3 of 10."
    assert cut == (
        "AAPL: cut from 14.94% to 10%. "
        "Against: close 584.00 USD, 20% above 200-day average 486.60 USD (30% high)."
    )
    assert told.risk_notes == "1 sector"
    for each in told.figures:
        if each.field == "picks.0.reasoning":
            text = told.picks[0].reasoning
        else:
            text = told.adjustments[int(each.field.removeprefix("adjustments."))]
        assert text[each.start :].startswith(each.text)
    assert [(each.field, each.text) for each in told.loose] == [
        ("risk_notes", "1"),
        ("adjustments.1", "30"),
    ]


async def test_a_veto_without_a_reason_is_one_and_says_so(desk, facts):
    odd = left("AAPL", "0", drafted("AAPL", "price_target"))
    answer = review(odd, left("MSFT", "40"), vetoed_tickers=["MSFT"])
    model = scripted(desk, says(answer), says(answer))
    told = await reviewed(desk, facts, facts[1]["picks"])
    sent = model.requests[-1].messages[-1].text
    assert "picks.0.reasons.0.fact: " in sent
    assert "price_target" not in sent
    assert told.picks == ()
    assert told.adjustments == (
        "MSFT: vetoed; no reason was given",
        "AAPL: vetoed; no reason was given",
    )
    (corrected,) = told.corrected
    assert corrected.endswith(" AAPL.price_target")


async def test_no_model_is_asked_where_nothing_can_be_bought_or_sold(desk, facts):
    known, found = facts
    empty = known["research_report"].model_copy(update={"tickers": ()})
    model = scripted(desk)
    daily = await traded(desk, ({**known, "research_report": empty}, found))
    assert model.calls == 0
    assert daily.picks == daily.sell_recommendations == ()
    assert "no model was asked" in daily.corrected[0]


@pytest.mark.parametrize("signal", [QuantSignal.NEUTRAL, QuantSignal.UNCERTAIN])
@pytest.mark.parametrize("is_held", [True, False])
async def test_by_rules_what_is_neither_bullish_nor_bearish_is_left_as_it_is(
    desk, facts, signal, is_held
):
    """Between a purchase and a sale two votes must turn: one that turns by noise trades nothing."""
    money = Money(amount=Decimal(580))
    held = Position(ticker="AAPL", quantity=Decimal(10), average_cost=money, price=money)
    account = desk.empty_account().model_copy(update={"positions": (held,) if is_held else ()})
    quant = facts[0]["quant_report"]
    views = tuple(view.model_copy(update={"signal": signal}) for view in quant.assets)
    between = quant.model_copy(update={"assets": views})
    daily = await traded(desk, facts, portfolio=account, quant_report=between)
    assert (daily.picks, daily.sell_recommendations) == ((), ())
