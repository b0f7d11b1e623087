"""Masked cycles over the real SDKs and a real socket: no request that leaves tells who or when."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pytest
from pydantic import SecretStr

from contracts.cycle import CycleRequest, StudyCell
from contracts.message import Pipeline
from contracts.query import CycleView, PipelineView, Recording
from libs.llm.endpoints.endpoint import PRESETS, PRICES
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.rules.provider import RulesProvider
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.runtime.settings import Settings
from services.assessment import app as assessment
from services.replay import replay
from services.research import app as research
from services.risk import app as risk
from services.sentiment import app as sentiment
from services.trader import app as trader
from tests.fakes.in_process_desk import InProcessDesk, Stored, broker_of_the_imagination
from tests.fakes.masked_model import MaskedModel
from tests.fakes.model_bench import WIRES
from tests.fakes.model_server import KEY, Asked, model_server
from tests.unit.services.conftest import FIXTURE_AS_OF, FIXTURE_MARKET, Desk

BUNDLED = ("AAPL", "GOOG", "IBM", "MSFT")
FIXTURE = ("ALFA", "BRVO", "CHRL", "ECHO", "GOLF.DE")
WHEN = re.compile(
    r"(?<![\w.])(?:19|20)\d{2}(?!\.\d)(?:-\d{2}-\d{2})?\b|\b(?:January|February|April|June|July|August|September"
    r"|October|November|December|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b"
)


@dataclass(frozen=True)
class Case:
    """A market, what a study asks about in it, and when."""

    market: ReplayMarket
    universe: Sequence[str]
    as_of: date


def bundled(day: date) -> Case:
    return Case(ReplayMarket(ReplayStore()), BUNDLED, day)


CASES = (
    bundled(date(2005, 3, 14)),
    bundled(date(2010, 5, 6)),
    bundled(date(2012, 6, 29)),
    Case(ReplayMarket(ReplayStore(FIXTURE_MARKET)), FIXTURE, FIXTURE_AS_OF),
)


async def masked_cycle(wire: str, case: Case) -> tuple[Desk, dict[str, Any], list[Asked]]:
    """A masked cycle's contracts, and the requests that left for its model."""
    async with model_server(MaskedModel(case.universe[0])) as server:
        url = server.url if wire == "claude" else server.openai_url
        whole = replace(PRESETS[wire].capabilities, stream=False)
        endpoint = replace(PRESETS[wire], base_url=url, capabilities=whole)
        provider = RemoteProvider(endpoint, SecretStr(KEY), PRICES)
        desk = Desk(
            market=case.market,
            providers={"rules": RulesProvider(), "model": provider},
            as_of=case.as_of,
            request=CycleRequest(
                idempotency_key="wire",
                universe=tuple(case.universe),
                constraints={
                    "exclude_tickers": case.universe[-1],
                    "max_positions": "4",
                    "note": f"{case.universe[0]} is loved since {case.as_of:%B %Y}",
                },
            ),
            pipeline=Pipeline(
                name="blind", provider="model", account="study-0123abcd-0-0-blind", masked=True
            ),
        )
        try:
            return desk, await desk.cycle(), server.asked
        finally:
            await provider.close()
            assert server.refused == []


def names_of(case: Case, contracts: dict[str, Any]) -> set[str]:
    """Whatever tells who is meant: tickers, companies, sectors, publishers, words of headlines."""
    digest = contracts["digest"]
    names = {*case.universe, "Bokeh", "Fixture"}
    for candidate in digest.candidates:
        names |= {candidate.name, candidate.sector}
        for headline in candidate.headlines:
            names |= {headline.source, headline.title, *headline.title.split(" ")[:2]}
    names |= {finding.name for finding in contracts["research"].tickers}
    # Words in small letters are the language's, not a name's.
    return {name for name in names if len(name) > 2 and not name.islower() and name != "The"}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.as_of}")
async def test_no_body_has_a_name_a_date_or_a_headline_of_the_universe(
    wire: str, case: Case
) -> None:
    _, contracts, asked = await masked_cycle(wire, case)
    names = names_of(case, contracts)
    assert names >= set(case.universe)
    assert len(asked) >= 12, "every agent but the sentiment's and the memory's, with a repair each"
    for request in asked:
        body = json.dumps(_without_own_words(request))
        found = [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", body)]
        assert found == [], (request.number, found)
        assert WHEN.findall(body) == [], request.number


def _without_own_words(asked: Asked) -> dict[str, Any]:
    """The body without the assistant's turns: those are the model's own, sent back verbatim."""
    messages = [each for each in asked.body["messages"] if each["role"] != "assistant"]
    return {**asked.body, "messages": messages}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.as_of}")
async def test_contracts_on_record_have_real_names_only(case: Case) -> None:
    _, contracts, _ = await masked_cycle("claude", case)
    for name, contract in contracts.items():
        texts = contract.model_dump_json()
        assert not re.search(r"\b[SG]\d{2,3}\b|T[+-]\d", texts), name
    tickers = {finding.ticker for finding in contracts["research"].tickers}
    assert tickers
    assert tickers <= set(case.universe)
    reasons = [reason for pick in contracts["picks"].picks for reason in pick.reasons]
    assert reasons
    assert {reason.about for reason in reasons} <= tickers


async def test_a_masked_cycle_that_starts_again_asks_nobody_anew() -> None:
    desk, contracts, asked = await masked_cycle("claude", CASES[1])
    before = len(asked)
    again = replace(desk, providers={**desk.providers, "model": _Silent()})
    assert await again.cycle() == contracts
    assert len(asked) == before


async def test_a_masked_cycle_is_replayed_from_its_record_alone() -> None:
    case, settings = CASES[1], Settings()
    async with model_server(MaskedModel("AAPL")) as server:
        endpoint = replace(PRESETS["claude"], base_url=server.url)
        model = RemoteProvider(endpoint, SecretStr(KEY), PRICES)
        providers = {"rules": RulesProvider(), "claude": model}
        apps = (sentiment, research, trader, risk, assessment)
        routes = [app.routes(case.market, providers, settings).commands for app in apps]
        desk = InProcessDesk(
            [*(route for each in routes for route in each), *broker_of_the_imagination()], settings
        )
        account = "study-0123abcd-0-0-blind"
        pipeline = Pipeline(name="blind", provider="claude", account=account, masked=True)
        cycle = await desk.run(
            CycleRequest(
                idempotency_key="again",
                as_of=case.as_of,
                universe=BUNDLED,
                pipelines=(pipeline,),
                study=StudyCell(study="blindness", number=0),
            )
        )
        await model.close()
    assert cycle.state.status == "completed"
    view = CycleView(
        cycle_id=next(iter(desk.cycles)),
        kind="decision",
        pipelines=(
            PipelineView(
                name="blind",
                account=account,
                provider="claude",
                state="completed",
                status=cycle.state.status,
            ),
        ),
    )
    report = await replay(view, [recording_of(each) for each in desk.operations.values()], settings)
    assert report.differences == []
    assert report.operations >= 7
    assert report.calls > 20


def recording_of(stored: Stored) -> Recording:
    """An operation as the orchestrator tells it for a replay."""
    return Recording(
        op_id=stored.row.op_id,
        step=stored.row.step,
        pipeline=stored.row.pipeline,
        status="completed",
        command=json.loads(stored.command),
        result=None if stored.result is None else json.loads(stored.result),
        journal=tuple(stored.journal),
    )


class _Silent(RulesProvider):
    """Nobody may ask it: all is on record."""

    name = "claude"

    def model_for(self, stage: str, size: Any) -> str:
        return PRESETS["claude"].model_for(stage, size)

    async def complete(self, request: Any) -> Any:
        raise AssertionError(request.agent)


async def test_a_guessed_name_is_no_answer_and_its_tool_call_tells_nothing() -> None:
    _, _, asked = await masked_cycle("claude", CASES[1])
    told = [
        json.loads(block["content"])
        for request in asked
        for message in request.body["messages"]
        if message["role"] == "user" and not isinstance(message["content"], str)
        for block in message["content"]
        if block["type"] == "tool_result" and "none of this task's codes" in str(block["content"])
    ]
    assert told
    assert {answer["error"]["code"] for answer in told} == {"bad_tool_arguments"}
