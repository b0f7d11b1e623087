"""Values in the shape of their contract, where their meaning is plain."""

import json

import pytest
from pydantic import BaseModel

from contracts.memory import MemoryDraft
from contracts.research import PlanDraft, QuantDraft, QuantSignal, ResearchDraft
from contracts.risk import ReviewDraft
from contracts.sentiment import SentimentDraft
from contracts.strategy import StrategyDraft
from contracts.trader import PicksDraft
from libs.llm.answer import read_answer
from libs.llm.reading.values import TICKER_PATTERN, unwrapped

REASON = {"fact": "AAPL.close", "speaks": "for", "why": "up"}
BUY = {"ticker": "AAPL", "allocation_pct": 10, "confidence": 0.7, "reasons": [REASON]}
ANSWER = {"picks": [BUY], "confidence": 0.8}
PLAIN = PicksDraft.model_validate(ANSWER)


def buy(**changes: object) -> dict[str, object]:
    return {**ANSWER, "picks": [{**BUY, **changes}]}


SAME = {
    "plain": ANSWER,
    "answer": {"answer": ANSWER},
    "contract": {"PicksDraft": ANSWER},
    "two wrappers": {"result": {"data": ANSWER}},
    "list of one": [ANSWER],
    "text": {"answer": json.dumps(ANSWER)},
    "schema around it": {**PicksDraft.model_json_schema(), "answer": ANSWER},
    "schema with values": {"type": "object", "properties": ANSWER},
    "null for an empty list": {**ANSWER, "sell_recommendations": None},
    "null for a default": buy(review_event=None, stop_atr=None),
    "one object for a list": {**ANSWER, "picks": BUY},
    "a list as text": {**ANSWER, "picks": json.dumps([BUY])},
    "the same twice": {**ANSWER, "picks": [BUY, BUY]},
    "an unknown field": {**ANSWER, "note": "x"},
    "an unknown field within": buy(note="x"),
    "percent sign": buy(allocation_pct="10%"),
    "percent": buy(confidence="70 %"),
    "percent word": buy(confidence="70 percent"),
    "fraction of ten": buy(confidence="7/10"),
    "out of": buy(confidence="70 out of 100"),
    "dollar": buy(ticker="$aapl"),
    "exchange": buy(ticker="NASDAQ:AAPL"),
    "exchange and blank": buy(ticker="NASDAQ: AAPL"),
    "case of a choice": buy(reasons=[{**REASON, "speaks": "FOR"}]),
    "one reason": buy(reasons=REASON),
    "camel case": {"picks": [{**BUY, "allocationPct": 10}], "Confidence": 0.8},
}
SAME["camel case"]["picks"][0].pop("allocation_pct")  # type: ignore[index]


@pytest.mark.parametrize("answer", SAME.values(), ids=SAME)
def test_a_plain_meaning_is_read(answer: object) -> None:
    read = read_answer(json.dumps(answer), PicksDraft)
    assert (read.value, read.errors) == (PLAIN, ())


@pytest.mark.parametrize(
    "answer",
    [
        buy(confidence=85),
        buy(confidence="85"),
        buy(confidence="high"),
        buy(allocation_pct="7/10"),
        buy(allocation_pct="a tenth"),
        buy(confidence="7/8"),
        buy(confidence="200%"),
        buy(ticker="Apple Inc."),
        buy(ticker="AAPL, MSFT"),
        buy(reasons=[{**REASON, "speaks": "perhaps"}]),
        PicksDraft.model_json_schema(),
        {"answers": [ANSWER, ANSWER]},
    ],
    ids=str,
)
def test_what_may_mean_two_things_is_asked_again(answer: object) -> None:
    assert read_answer(json.dumps(answer), PicksDraft).value is None


def test_what_was_left_out_is_noted() -> None:
    answer = {**buy(note="x"), "more": 1}
    assert read_answer(json.dumps(answer), PicksDraft).notes == (
        "picks.0.note: no such field, left out",
        "more: no such field, left out",
    )


def test_a_choice_is_read_in_any_case() -> None:
    view = {"ticker": "AAPL", "signal": "Bullish", "confidence": 0.5, "reasons": []}
    read = read_answer(
        json.dumps({"signal": "NEUTRAL ", "confidence": 0.5, "assets": view}), QuantDraft
    )
    assert read.value is not None
    assert read.value.signal is QuantSignal.NEUTRAL
    assert read.value.assets[0].signal is QuantSignal.BULLISH


DRAFTS = (PicksDraft, ReviewDraft, QuantDraft, ResearchDraft, SentimentDraft, MemoryDraft)
STRANGE = "zqx-17 marks"


@pytest.mark.parametrize("draft", [*DRAFTS, PlanDraft, StrategyDraft], ids=lambda d: d.__name__)
def test_no_error_quotes_what_was_wrong(draft: type[BaseModel]) -> None:
    """A model that reads its wrong value again writes it again."""
    fields = draft.model_json_schema()["properties"]
    for value in (STRANGE, [{STRANGE: STRANGE}], {"ticker": STRANGE}):
        read = read_answer(json.dumps(dict.fromkeys(fields, value)), draft)
        assert STRANGE not in "; ".join(read.errors)


@pytest.mark.parametrize(
    "answer",
    [
        buy(confidence=True),
        buy(confidence="０.７"),
        buy(allocation_pct="１０"),
        buy(allocation_pct="1_0"),
        buy(confidence="0,7"),
        buy(confidence=[0.7, 0.8]),
        {**ANSWER, "Confidence": 0.9},
        BUY,
        {"confidence": 0.8},
        {"picks": [BUY], "confidence": 0.8, "sales": [BUY]},
    ],
    ids=str,
)
def test_what_no_person_would_read_so_is_asked_again(answer: object) -> None:
    assert read_answer(json.dumps(answer), PicksDraft).value is None


def test_a_field_of_the_wrappers_name_is_no_wrapper() -> None:
    answer = {"answer": "calm", "confidence": 0.5}
    assert unwrapped(answer, PicksDraft.model_json_schema()) == answer


def test_a_ticker_is_known_by_its_pattern() -> None:
    fields = PicksDraft.model_json_schema()["$defs"]["BuyDraft"]["properties"]
    assert fields["ticker"]["pattern"] == TICKER_PATTERN
