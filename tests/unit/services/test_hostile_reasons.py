"""Whatever a model gives as reasons ends typed, in words that a person understands, and bounded."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from contracts.cycle import CycleRequest
from contracts.reasons import FIGURES_MAX, LOOSE_MAX, Reasoned
from contracts.research import AnswerQuestion, ResearchTickers
from contracts.risk import ReviewPicks
from contracts.sentiment import ScoreSentiment
from contracts.trader import PickTrades
from libs.llm.errors import AnswerInvalid
from libs.llm.provider import ModelReply, ModelRequest
from libs.llm.rules.provider import RulesProvider
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.market.source import MarketData
from tests.fakes.hostile_reasons import GROWING, HEARD, REFUSED, Reasons, spoiled
from tests.unit.services.conftest import FIXTURE_AS_OF, FIXTURE_MARKET, Desk

TICKERS = ("ALFA", "CHRL")
JSON_CHARS_MAX = 120_000
SECONDS_MAX = 5.0
AGENTS = {
    "sentiment": ScoreSentiment,
    "quant": AnswerQuestion,
    "analyst": ResearchTickers,
    "trader": PickTrades,
    "risk_review": ReviewPicks,
}


CASES = [
    *product((name for name in HEARD if ": " not in name), AGENTS),
    # Strangers' words are handled in one place: two agents that read them will do.
    *product((name for name in HEARD if ": " in name), ("sentiment", "analyst")),
]


class Spoiling(RulesProvider):
    """The rules, with other reasons, and other words, in their answers."""

    def __init__(self, reasons: Reasons | None, words: str = "") -> None:
        super().__init__()
        self._reasons, self._words = reasons, words
        self.asked = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await super().complete(request)
        if request.output_schema is None:
            return reply
        self.asked += 1
        answer = spoiled(json.loads(reply.text), TICKERS, self._reasons, self._words)
        return reply.model_copy(update={"text": json.dumps(answer)})


def desk_on(market: MarketData, provider: RulesProvider) -> Desk:
    return Desk(market=market, providers={"rules": provider}, as_of=FIXTURE_AS_OF)


@pytest.fixture(scope="module")
def market() -> MarketData:
    return ReplayMarket(ReplayStore(FIXTURE_MARKET))


@pytest.fixture(scope="module")
def before(market: MarketData) -> Mapping[str, Mapping[str, Any]]:
    """What each agent is given, from an honest cycle."""
    desk = desk_on(market, RulesProvider())
    desk.request = CycleRequest(idempotency_key="test", universe=TICKERS)
    made = asyncio.run(desk.cycle())
    digest, mood, plan = made["digest"], made["sentiment"], made["plan"]
    seen = {"signal_digest": digest, "sentiment_report": mood}
    found = {"quant_report": made["quant"], "research_report": made["research"]}
    known = {**found, "portfolio": desk.empty_account(), "request": desk.request}
    return {
        "sentiment": {"signal_digest": digest},
        "quant": {"plan": plan},
        "analyst": {"plan": plan, **seen},
        "trader": {"plan": plan, **seen, **known},
        "risk_review": {"plan": plan, "daily_picks": made["picks"], **known},
    }


def texts_in(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a contract as JSON, with its place."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from texts_in(each, f"{field}.{place}")
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from texts_in(each, f"{field}.{name}")


def accounted_for(report: Reasoned) -> None:
    """Asserts that a report is bounded and hides nothing, and that its marks are in their place."""
    told = report.model_dump(mode="json")
    assert len(json.dumps(told, ensure_ascii=False)) < JSON_CHARS_MAX
    texts = dict(texts_in(told))
    assert [place for place, text in texts.items() if not text.isprintable()] == []
    assert len(report.figures) <= FIGURES_MAX
    assert len(report.loose) <= LOOSE_MAX
    for mark in (*report.figures, *report.loose):
        assert texts[f".{mark.field}"][mark.start :].startswith(mark.text)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "agent"), CASES)
async def test_reasons_of_any_kind_end_in_a_report_with_every_number_accounted_for(
    market: MarketData, before: Mapping[str, Any], case: str, agent: str
) -> None:
    model = Spoiling(HEARD[case])
    began = time.process_time()
    report = await desk_on(market, model).do(AGENTS[agent], **before[agent])
    assert time.process_time() - began < SECONDS_MAX
    assert 1 <= model.asked <= 2  # an unknown name is asked about once
    accounted_for(report)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("words", GROWING)
async def test_words_that_stand_on_no_fact_are_bounded_and_their_numbers_loose(
    market: MarketData, before: Mapping[str, Any], agent: str, words: str
) -> None:
    report = await desk_on(market, Spoiling(None, GROWING[words])).do(
        AGENTS[agent], **before[agent]
    )
    accounted_for(report)
    assert bool(report.loose) == (words != "letters")


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_reason_at_all_ends_as_an_answer_that_is_not_valid(
    market: MarketData, before: Mapping[str, Any], agent: str, case: str
) -> None:
    with pytest.raises(AnswerInvalid) as caught:
        await desk_on(market, Spoiling(REFUSED[case])).do(AGENTS[agent], **before[agent])
    assert caught.value.code == "answer_invalid"
    assert agent in caught.value.message
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 2_000
