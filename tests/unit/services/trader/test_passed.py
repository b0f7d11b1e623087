"""What the trader passed over: in its words, by a rule of one's own, and never a spoiled answer."""

import json
from decimal import Decimal
from typing import Any

import pytest

from contracts.not_bought import Cause
from contracts.risk import Evidence
from contracts.trader import PicksDraft
from libs.facts.fact import FactIndex
from libs.llm.answer import read_answer
from libs.quant.risk import evaluation
from libs.quant.risk.evaluation import Room, room_for
from libs.quant.risk.facts import RiskRule, gate
from services.trader.logic import Ahead, daily_picks
from tests.unit.services.risk.test_logic import books, research

ANSWER = {"picks": [], "sell_recommendations": [], "confidence": 0.2, "answer": "calm"}


@pytest.mark.parametrize(
    ("passed", "read"),
    [
        ([{"ticker": "AAA", "why": "too hot"}], ["AAA"]),
        ({"AAA": "too hot", "BBB": "no news"}, []),
        (["AAA: too hot", {"ticker": "BBB", "why": "no news"}, {"ticker": "CCC"}, 7], ["BBB"]),
        ("nothing else", []),
        (None, []),
        ([{"ticker": f"A{n}", "why": "x" * 500} for n in range(90)], [f"A{n}" for n in range(40)]),
    ],
)
def test_lines_about_others_are_optional_and_spoil_no_answer(passed: Any, read: list[str]) -> None:
    answer = read_answer(json.dumps({**ANSWER, "passed": passed}), PicksDraft)
    assert answer.errors == ()
    assert answer.value is not None
    assert [one.ticker for one in answer.value.passed] == read


def test_a_models_words_stand_on_record_and_a_number_in_them_is_loose() -> None:
    draft = PicksDraft.model_validate(
        {**ANSWER, "passed": [{"ticker": "AAA", "why": "fell 30 days"}]}
    )
    closed = Room(Decimal(0), "too cheap", "penny_stock", "0.50", "1")
    fields = daily_picks(draft, FactIndex.of(()), research(), Ahead(()), rooms={"BBB": closed})
    rule, words = fields["passed"]
    assert (rule.ticker, rule.cause, rule.name) == ("BBB", Cause.RULE, "penny_stock")
    assert (rule.value, rule.limit, rule.why) == ("0.50", "1", "too cheap")
    assert (words.ticker, words.cause, words.why) == ("AAA", Cause.OWN_WORDS, "fell 30 days")
    assert [(mark.field, mark.text) for mark in fields["loose"]] == [("passed.1.why", "30")]


def test_a_rule_of_ones_own_that_leaves_no_room_is_named_with_value_and_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = RiskRule(
        "penny_stock",
        "a cheap share can be moved by little money",
        lambda leg, _: gate(
            leg, ok=False, value="10.00", limit="100.00", kept="", vetoed="it is too cheap"
        ),
    )
    monkeypatch.setattr(evaluation, "BUY_GATES", (*evaluation.BUY_GATES, own))
    evidence = {"AAA": Evidence(ticker="AAA", risk_score=3, measured_risk=3, price=Decimal(10))}
    room = room_for(["AAA"], evidence, books(), None)["AAA"]
    assert (room.allocation_pct, room.rule, room.value, room.limit) == (
        Decimal(0),
        "penny_stock",
        "10.00",
        "100.00",
    )
    assert "it is too cheap" in room.why
