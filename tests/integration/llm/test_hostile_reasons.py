"""Reasons as no honest model gives them, over the real SDKs and a real socket."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from contracts.cycle import CycleRequest
from contracts.operation import CallKind
from contracts.research import AnswerQuestion
from libs.llm.endpoints.endpoint import PRESETS, PRICES
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.errors import AnswerInvalid, ReplyTooLarge
from libs.llm.rules.provider import RulesProvider
from libs.market.replay.market import ReplayMarket, ReplayStore
from tests.fakes.hostile_reasons import HEARD, REFUSED, Reasons, spoiled
from tests.fakes.model_bench import WIRES
from tests.fakes.model_server import KEY, Asked, model_server
from tests.fakes.rules_model import as_the_rules
from tests.fakes.wire_formats import Says
from tests.unit.services.conftest import FIXTURE_AS_OF, FIXTURE_MARKET, Desk

TICKERS = ("ALFA", "CHRL")
TOO_LARGE = {"the same ten thousand times", "ten thousand unknown", "a huge why"}
"""Larger than any reply may be: refused before a word of it is read."""
CASES = [
    *(name for name in HEARD if ": " not in name and name not in TOO_LARGE),
    "orders: an order",
    "told: a fake answer",
]
"""The others, with two of the strangers' words: the rest goes through the same code."""


def spoiling(reasons: Reasons) -> Any:
    """A model that answers as the rules do, but for its reasons."""

    def answer(asked: Asked) -> Says:
        said = as_the_rules(asked)
        assert isinstance(said, Says)
        whole = json.loads(said.text[said.text.index("{") :])
        return Says(json.dumps(spoiled(whole, TICKERS, reasons)))

    return answer


@pytest.fixture(scope="module")
def honest() -> tuple[Desk, Any]:
    """A desk, and the plan that the rules have made on it."""
    desk = Desk(
        market=ReplayMarket(ReplayStore(FIXTURE_MARKET)),
        providers={"rules": RulesProvider()},
        as_of=FIXTURE_AS_OF,
        request=CycleRequest(idempotency_key="wire", universe=TICKERS),
    )
    return desk, asyncio.run(desk.cycle())["plan"]


async def answered(wire: str, reasons: Reasons, honest: tuple[Desk, Any]) -> tuple[Desk, Any]:
    before, plan = honest
    async with model_server(spoiling(reasons)) as server:
        url = server.url if wire == "claude" else server.openai_url
        # In one body: in pieces of a token these answers are larger than any reply may be.
        whole = replace(PRESETS[wire].capabilities, stream=False)
        endpoint = replace(PRESETS[wire], base_url=url, capabilities=whole)
        provider = RemoteProvider(endpoint, SecretStr(KEY), PRICES)
        desk = replace(before, providers={"rules": provider}, journals={})
        try:
            return desk, await desk.do(AnswerQuestion, plan=plan)
        finally:
            await provider.close()
            assert server.refused == []


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("case", CASES)
async def test_they_end_in_a_report_and_no_unknown_name_is_asked_about_twice(
    wire: str, case: str, honest: tuple[Desk, Any]
) -> None:
    desk, report = await answered(wire, HEARD[case], honest)
    assert [each.ticker for each in report.assets] == list(TICKERS)
    assert all(each.reasoning for each in report.assets)
    models = [e for e in desk.journals["answerquestion"] if e.kind is CallKind.MODEL]
    assert len(models) <= 2


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("case", sorted(TOO_LARGE))
async def test_what_is_larger_than_a_reply_may_be_ends_as_a_fault_that_names_the_limit(
    wire: str, case: str, honest: tuple[Desk, Any]
) -> None:
    with pytest.raises(ReplyTooLarge, match=r"the reply has .*, the limit"):
        await answered(wire, HEARD[case], honest)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_reason_ends_as_an_answer_that_is_not_valid(
    wire: str, case: str, honest: tuple[Desk, Any]
) -> None:
    with pytest.raises(AnswerInvalid):
        await answered(wire, REFUSED[case], honest)
