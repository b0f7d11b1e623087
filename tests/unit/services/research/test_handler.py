"""Plan, quant and analyst with a scripted model: what is sent back, and what becomes of it."""

import json
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.account import HeldPlan, Position
from contracts.cycle import CycleRequest
from contracts.operation import JOURNAL_BATCH_MAX, CallKind
from contracts.research import (
    AnswerQuestion,
    MakePlan,
    QuantSignal,
    ResearchFinding,
    ResearchTickers,
)
from contracts.sentiment import BuildDigest, ScoreSentiment
from contracts.types import Money
from libs.llm.errors import AnswerInvalid
from libs.llm.provider import ModelReply
from libs.llm.rules.provider import RulesProvider
from libs.market.facts import facts_of
from libs.runtime.settings import Settings
from services.research.tools import NoIndicators
from tests.fakes.scripted_model import ScriptedProvider, asks, says

PLAN = {
    "objective": "look at Apple",
    "assets": ["AAPL"],
    "quant_question": "up or down?",
    "expected_outputs": ["RSI14"],
}
FINDING = {
    "ticker": "AAPL",
    "fundamental_score": 0,
    "technical_score": 7,
    "risk_score": 3,
    "reasons": [{"fact": "AAPL.close", "speaks": "for", "why": "it rises"}],
}
REPORT = {"tickers": [FINDING]}
DONE = ModelReply(text="done")


async def seen_by(desk):
    """What the sentiment stage leaves, by the rules; then the desk's model is a script."""
    request = CycleRequest(idempotency_key="test")
    digest = await desk.do(BuildDigest, request=request)
    report = await desk.do(ScoreSentiment, signal_digest=digest)
    return {"signal_digest": digest, "sentiment_report": report}


def scripted(desk, *replies) -> ScriptedProvider:
    provider = ScriptedProvider(replies)
    desk.providers = {"rules": provider}
    return provider


async def plan_of(desk, seen):
    return await desk.do(
        MakePlan,
        request=CycleRequest(idempotency_key="test"),
        portfolio=desk.empty_account(),
        **seen,
    )


async def test_a_plan_for_an_asset_nobody_offered_is_sent_back_and_mended(desk):
    seen = await seen_by(desk)
    model = scripted(desk, DONE, says({**PLAN, "assets": ["TSLA"]}), says(PLAN))
    plan = await plan_of(desk, seen)
    assert plan.assets == ("AAPL",)
    assert "neither in the digest nor held; choose from " in model.requests[-1].messages[-1].text


async def test_a_plan_that_stays_wrong_asks_for_another_attempt_that_quotes_the_errors(desk):
    seen = await seen_by(desk)
    bad = says({**PLAN, "quant_question": ""})
    scripted(desk, DONE, bad, bad, bad)
    with pytest.raises(AnswerInvalid, match="quant_question") as caught:
        await plan_of(desk, seen)
    assert caught.value.corrections
    desk.errors, desk.journals = (caught.value.message,), {}
    model = scripted(desk, DONE, says(PLAN))
    await plan_of(desk, seen)
    for request in model.requests:
        assert "quant_question" in request.messages[0].text.split("<errors>")[1]


async def test_the_planner_may_look_at_its_account_and_markets_and_has_no_tool_that_writes(desk):
    seen = await seen_by(desk)
    wanted = asks(("get_portfolio", {"llm_name": "other"}), ("place_buy_order", {"ticker": "AAPL"}))
    model = scripted(desk, wanted, DONE, says(PLAN))
    await plan_of(desk, seen)
    offered = {tool.name for tool in model.requests[0].tools}
    assert len(offered) == 10
    assert "get_portfolio" in offered
    account, refused = [entry for entry in desk.journals["makeplan"] if entry.kind is CallKind.TOOL]
    assert account.reply["positions"] == []
    assert refused.reply["error"]["code"] == "tool_not_allowed"


async def test_the_quant_gets_the_question_and_computed_indicators_and_nothing_else(desk):
    seen = await seen_by(desk)
    scripted(desk, DONE, says(PLAN))
    plan = await plan_of(desk, seen)
    trend = {"fact": "AAPL.close", "beside": "AAPL.sma_50", "speaks": "for", "why": "it holds"}
    view = {"ticker": "AAPL", "signal": "bullish", "confidence": 0.4, "reasons": [trend]}
    answer = {"signal": "bullish", "confidence": 0.4, "answer": "Up.", "assets": [view]}
    model = scripted(desk, says({**answer, "assets": []}), says(answer))
    report = await desk.do(AnswerQuestion, plan=plan)
    assert report.signal is QuantSignal.BULLISH
    first = model.requests[0]
    assert not first.tools
    assert set(first.task) == {"as_of", "plan"}
    assert first.facts["AAPL.rsi_14"] == 55.5816
    assert "AAPL.rsi_14 = 55.5816\n" in first.messages[0].text
    assert "AAPL.rsi_14" in first.output_schema["$defs"]["FactName"]["enum"]
    (apple,) = report.assets
    assert apple.reasoning == (
        "For: close 584.00 USD, 2.1% above 50-day average 571.96 USD (it holds)."
    )
    assert report.reasoning == "Up: 1 bullish of 1"
    assert "up or down?" in first.messages[0].text
    kinds = [entry.kind for entry in desk.journals["answerquestion"]]
    # The indicators, then each answer and the check of it.
    assert kinds == [CallKind.READ, *(2 * [CallKind.MODEL, CallKind.READ])]


async def test_without_indicators_for_any_asset_the_quant_fails_and_asks_no_model(desk):
    seen = await seen_by(desk)
    scripted(desk, DONE, says(PLAN))
    plan = (await plan_of(desk, seen)).model_copy(update={"assets": ("ZZZZ",)})
    model = scripted(desk)
    with pytest.raises(NoIndicators, match="ZZZZ"):
        await desk.do(AnswerQuestion, plan=plan)
    assert model.calls == 0


@pytest.mark.parametrize(
    ("finding", "told"),
    [
        ({"ticker": "MSFT"}, "tickers.0: no tool answered for it"),
        ({"reasons": [{"fact": "AAPL.clos", "speaks": "for"}]}, "did you mean AAPL.close?"),
    ],
)
async def test_a_finding_is_about_what_tools_answered_for_and_names_facts(desk, finding, told):
    seen = await seen_by(desk)
    scripted(desk, DONE, says(PLAN))
    plan = await plan_of(desk, seen)
    bad = {**REPORT, "tickers": [{**FINDING, **finding}]}
    tools = asks(("get_stock_price", {"ticker": "AAPL"}), ("get_news", {"ticker": "AAPL"}))
    model = scripted(desk, tools, DONE, says(bad), says(REPORT))
    report = await desk.do(ResearchTickers, plan=plan, **seen)
    assert told in model.requests[-1].messages[-1].text
    assert (report.tool_calls_made, report.tickers[0].evidence) == (2, ("E0",))


async def test_a_name_that_stays_unknown_is_asked_about_once_and_falls_away(desk):
    made_up = [{"fact": "AAPL.beta", "speaks": "for"}, {"fact": "AAPL.close", "speaks": "for"}]
    bad = says({"tickers": [{**FINDING, "reasons": made_up}]})
    seen = await seen_by(desk)
    scripted(desk, DONE, says(PLAN))
    plan = await plan_of(desk, seen)
    model = scripted(desk, asks(("get_stock_price", {"ticker": "AAPL"})), DONE, bad, bad)
    report = await desk.do(ResearchTickers, plan=plan, **seen)
    assert model.calls == 4
    assert [each.fact for each in report.tickers[0].reasons] == ["AAPL.close"]
    (corrected,) = report.corrected
    assert corrected.startswith("AAPL: ")
    assert corrected.endswith(" AAPL.beta")


async def test_a_finding_without_reasons_stands_on_nothing_and_says_so(desk):
    (found,) = (await researched(desk, reasons=[])).tickers
    assert (found.reasons, found.evidence) == ((), ())
    assert found.summary.startswith("no reason was given")


async def test_a_finding_tells_news_reports_and_the_rest_apart(fixture_desk):
    found = await fixture_desk.cycle()
    told = {each.ticker: each for each in found["research"].tickers}
    charlie = told["CHRL"]
    assert charlie.summary.startswith("For: close 89.96 USD, ")
    assert "headline" in charlie.news_summary
    assert "report" in charlie.earnings_outlook
    report = found["research"]
    for figure in report.figures:
        _, place, name = figure.field.split(".")
        assert getattr(report.tickers[int(place)], name)[figure.start :].startswith(figure.text)
    assert report.loose == ()


async def test_ten_tickers_by_nine_tools_never_outgrow_a_batch_of_the_record(directory):
    tickers = [f"T{number}" for number in range(12)]
    for number, ticker in enumerate(tickers):
        directory.prices(ticker, [50.0 + number + day / 10 for day in range(260)])
    desk = directory.desk()
    found = await desk.cycle()
    assert len(found["research"].tickers) == 10
    assert found["research"].tool_calls_made == 72
    assert max(desk.batches) <= JOURNAL_BATCH_MAX


def many_shares(directory, count) -> list[str]:
    """Rising shares, all of them in the news so that they are candidates."""
    tickers = [f"T{number:02}" for number in range(count)]
    for number, ticker in enumerate(tickers):
        directory.prices(ticker, [50.0 + number + day / 10 for day in range(260)])
    directory.news(*((ticker, "Record orders", "a paper") for ticker in tickers))
    return tickers


@pytest.mark.parametrize("few", [1, 8, 10])
async def test_of_25_candidates_only_a_few_are_looked_into(directory, few):
    many_shares(directory, 30)
    desk = directory.desk(settings=Settings(model={"research_tickers_max": few}))
    found = await desk.cycle()
    assert len(found["digest"].candidates) == 25
    assert len(found["plan"].assets) == few
    assert [item.ticker for item in found["research"].tickers] == list(found["plan"].assets)
    calls = [entry for entry in desk.journals["researchtickers"] if entry.kind is CallKind.TOOL]
    asked = {
        str(call.request["arguments"]["ticker"]) for call in calls if "ticker" in str(call.request)
    }
    assert asked == set(found["plan"].assets)


@pytest.mark.parametrize(
    ("review_by", "universe", "is_first"),
    [
        ("2012-06-29", None, True),
        ("2012-06-29", ("T25",), True),
        ("2012-06-29", ("T01",), False),  # the request is about others
        ("2012-07-02", None, False),  # its time is not up
    ],
)
async def test_by_rules_what_is_due_to_be_looked_at_again_is_looked_into_first(
    directory, review_by, universe, *, is_first
):
    many_shares(directory, 30)
    desk = directory.desk(settings=Settings(model={"research_tickers_max": 3}))
    seen = await seen_by(desk)
    assert "T25" not in seen["signal_digest"].tickers[:3]
    money = Money(amount=Decimal(60))
    plan = HeldPlan(
        horizon_sessions=60,
        risk=money,
        risk_pct=Decimal(1),
        review_by=review_by,
        since="2012-04-02",
        cycle_id=UUID(int=1),
    )
    held = Position(ticker="T25", quantity=Decimal(9), average_cost=money, price=money, plan=plan)
    request = CycleRequest(idempotency_key="test", universe=universe)
    account = desk.empty_account().model_copy(update={"positions": (held,)})
    made = await desk.do(MakePlan, request=request, portfolio=account, **seen)
    assert (made.assets[0] == "T25") is is_first
    assert len(made.assets) == 3


async def test_a_plan_for_more_than_can_be_looked_into_is_sent_back(desk):
    desk.settings = Settings(model={"research_tickers_max": 2})
    seen = await seen_by(desk)
    three = {**PLAN, "assets": ["AAPL", "IBM", "MSFT"]}
    model = scripted(desk, DONE, says(three), says(PLAN))
    await plan_of(desk, seen)
    assert "assets: at most 2 tickers can be looked into" in model.requests[-1].messages[-1].text


async def test_the_tools_answer_an_analyst_for_no_more_tickers_than_it_may_look_into(desk):
    desk.settings = Settings(model={"research_tickers_max": 2})
    seen = await seen_by(desk)
    scripted(desk, DONE, says(PLAN))
    plan = await plan_of(desk, seen)
    price, news = "get_stock_price", "get_news"
    wanted = asks(
        (price, {"ticker": "AAPL"}),
        (price, {"ticker": "ibm"}),
        (price, {"ticker": "MSFT"}),
        (news, {"ticker": "IBM"}),
        ("get_earnings_calendar", {}),
    )
    model = scripted(desk, wanted, DONE, says(REPORT))
    await desk.do(ResearchTickers, plan=plan, **seen)
    results = [json.loads(each.content) for each in model.requests[1].messages[-1].results]
    codes = [result.get("error", {}).get("code") for result in results]
    # The bundled data has no news and no calendar; the third ticker was not even looked up.
    assert codes == [None, None, "ticker_limit", "not_in_source", "not_in_source"]
    assert "AAPL, IBM" in results[2]["error"]["message"]


INVENTED = {
    "current_price": "1.00",
    "currency": "EUR",
    "exchange": "XMAR",
    "sector": "a sector of its own",
    "name": "Banana Ltd",
    "measured_risk": 0,
}


async def researched(desk, **finding):
    """The report on AAPL of an analyst who has asked for its price."""
    seen = await seen_by(desk)
    scripted(desk, DONE, says(PLAN))
    plan = await plan_of(desk, seen)
    tools = asks(("get_stock_price", {"ticker": "AAPL"}))
    scripted(desk, tools, DONE, says({"tickers": [{**FINDING, **finding}]}))
    return await desk.do(ResearchTickers, plan=plan, **seen)


async def test_facts_are_the_markets_whatever_the_analyst_says_of_them(desk):
    report = await researched(desk, **INVENTED)
    (found,) = report.tickers
    honest = (await researched(desk)).tickers[0]
    assert found == honest
    assert (found.current_price, found.currency) == (Decimal("584.0000"), "USD")
    assert (report.analysis_date, report.sectors_analyzed) == (desk.as_of, (found.sector,))
    assert found.sector == "Information Technology"
    assert found.measured_risk > 0
    assert found.measured_risk_reason


async def test_what_an_analyst_calls_a_peer_or_a_catalyst_out_of_nothing_is_left_out_and_told(desk):
    report = await researched(desk, sector_peers=["MSFT", "QGAS"], catalyst="a takeover, for sure")
    (found,) = report.tickers
    assert (found.sector_peers, found.catalyst, found.catalyst_event) == (("MSFT",), "", None)
    catalyst, peers = report.corrected
    assert "QGAS left out of its peers" in peers
    assert "names none of the 0 dated events of AAPL" in catalyst


@pytest.mark.parametrize("named", ["by its fact", "by its id"])
async def test_a_catalyst_is_a_dated_event_that_the_source_has_of_that_ticker(directory, named):
    directory.prices("AAA", [50.0 + day / 10 for day in range(260)])
    directory.prices("BBB", [50.0 + day / 10 for day in range(260)])
    directory.news(("AAA", "Bid for the whole company", "wire"))
    desk = directory.desk()
    facts = await facts_of(desk.market, "AAA", desk.as_of)
    (event,) = facts.events

    async def said(ticker: str) -> ResearchFinding:
        desk.journals.clear()
        seen = await seen_by(desk)
        scripted(desk, DONE, says({**PLAN, "assets": [ticker]}))
        plan = await plan_of(desk, seen)
        tools = asks(("get_stock_price", {"ticker": ticker}))
        why = [{"fact": f"{ticker}.close", "speaks": "for"}]
        fact = f"AAA.headline@{event.on}.{event.id.removeprefix('headline-')}"
        catalyst = fact if named == "by its fact" else event.id
        claim = {**FINDING, "ticker": ticker, "reasons": why, "catalyst": catalyst}
        scripted(desk, tools, DONE, says({"tickers": [claim]}))
        desk_found = await desk.do(ResearchTickers, plan=plan, **seen)
        desk.providers = {"rules": RulesProvider()}
        return desk_found.tickers[0]

    assert (await said("AAA")).catalyst_event == event
    assert (await said("BBB")).catalyst_event is None
