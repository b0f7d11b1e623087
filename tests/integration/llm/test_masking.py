"""Masked cycles over the real SDKs and a real socket: no request that leaves tells who or when."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
from pydantic import SecretStr

from contracts.account import (
    CoolingOff,
    HeldPlan,
    OpenOrder,
    Portfolio,
    Position,
    SessionBefore,
    Side,
)
from contracts.cycle import CycleRequest, StudyCell
from contracts.cycle_query import CycleView, PipelineView, Recording
from contracts.halt import Halt
from contracts.message import Pipeline
from contracts.types import Money
from libs.llm.endpoints.endpoint import PRESETS, PRICES
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.rules.provider import RulesProvider
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.report.calls.chat import ChatRole, chat_of
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


async def masked_cycle(
    wire: str,
    case: Case,
    portfolio: Portfolio | None = None,
    account: str = "study-0123abcd-0-0-blind",
) -> tuple[Desk, dict[str, Any], list[Asked]]:
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
            portfolio=portfolio,
            request=CycleRequest(
                idempotency_key="wire",
                universe=tuple(case.universe),
                constraints={
                    "exclude_tickers": case.universe[-1],
                    "max_positions": "4",
                    "note": f"{case.universe[0]} is loved since {case.as_of:%B %Y}",
                },
            ),
            pipeline=Pipeline(name="blind", provider="model", account=account, masked=True),
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


async def test_two_studies_ask_the_same_about_a_date_so_that_the_second_one_pays_nothing() -> None:
    case = CASES[0]
    accounts = ("study-0123abcd-0-0-blind", "study-9999abcd-7-0-blind")
    first, second = [
        [request.body for request in (await masked_cycle("openai", case, account=account))[2]]
        for account in accounts
    ]
    assert len(first) >= 12
    assert first == second


def _without_own_words(asked: Asked) -> dict[str, Any]:
    """The body without the assistant's turns: those are the model's own, sent back verbatim."""
    messages = [each for each in asked.body["messages"] if each["role"] != "assistant"]
    return {**asked.body, "messages": messages}


def held(case: Case) -> Portfolio:
    """An account with a position, its stop and its thesis, and with a ticker that was just sold."""
    ticker, sold, since = case.universe[0], case.universe[1], date(2010, 4, 15)
    plan = HeldPlan(
        horizon_sessions=60,
        stop_price=usd("215.02"),
        risk=usd("505.39"),
        risk_pct=Decimal("0.5"),
        review_by=date(2010, 4, 30),
        review_event="next report of 2010-07-20",
        thesis=f"For: close 247.93 USD of {ticker} in April 2010",
        since=since,
        cycle_id=UUID(int=7),
    )
    position = Position(
        ticker=ticker,
        quantity=Decimal(15),
        average_cost=usd("243.84"),
        price=usd("246.25"),
        sector="Technology Hardware",
        opened_on=since,
        plan=plan,
    )
    stop = OpenOrder(
        order_id=UUID(int=8),
        asset=ticker,
        side=Side.SELL,
        quantity=Decimal(15),
        hold=usd("0"),
        stop_price=usd("215.02"),
        as_of=since,
    )
    return Portfolio(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=case.as_of,
        account="study-0123abcd-0-0-blind",
        cash=usd("82813.49"),
        equity=usd("86507.24"),
        positions=(position,),
        open_orders=(stop,),
        before=SessionBefore(session=date(2010, 5, 5), equity=usd("87000")),
        halt=Halt(
            reason=f"{ticker} fell on Thursday",
            by="owner",
            since=datetime(2010, 5, 6, tzinfo=UTC),
        ),
        cooling_off=(CoolingOff(ticker=sold, sold_on=date(2010, 5, 3), sessions_ago=3),),
    )


def usd(amount: str) -> Money:
    return Money(amount=Decimal(amount))


async def test_what_is_held_is_shown_without_a_name_a_level_or_a_thesis() -> None:
    case = bundled(date(2010, 5, 6))
    _, contracts, asked = await masked_cycle("claude", case, held(case))
    names = {*names_of(case, contracts), "Technology Hardware", "0123abcd", "fell on"}
    levels = ("246.25", "243.84", "215.02", "505.39", "82813", "86507", "87000")
    for request in asked:
        body = json.dumps(_without_own_words(request))
        assert [name for name in (*names, *levels) if name in body] == [], request.number
        assert WHEN.findall(body) == [], request.number
    shown = json.loads(asked[0].first.split("\n")[1])["portfolio"]
    assert shown["cooling_off"][0]["sold_on"] == "T-3"
    (position,) = shown["positions"]
    assert (position["value"], position["average_cost"]) == (4.2699, 99.0213)
    assert (position["plan"]["since"], position["plan"]["stop_price"]) == ("T-15", 87.3178)
    assert shown["open_orders"] == [
        {
            "asset": position["ticker"],
            "side": "sell",
            "stop_price": 87.3178,
            "hold": 0,
            "as_of": "T-15",
        }
    ]


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


@pytest.mark.parametrize("wire", WIRES)
async def test_a_masked_call_is_shown_as_it_was_sent(wire: str) -> None:
    """Every text of every body, in codes; what the models were shown is not put into real names."""
    desk, contracts, asked = await masked_cycle(wire, CASES[1])
    names = names_of(CASES[1], contracts)
    shown: set[str] = set()
    for entries in desk.journals.values():
        texts = {sha256(t.encode()).hexdigest(): t for entry in entries for t in entry.texts}
        for call in (entry for entry in entries if entry.name.startswith(f"{wire}:")):
            chat = chat_of(entries, call.index, texts)
            turns = [turn for turn in chat.asked if turn.role is not ChatRole.ASSISTANT]
            told = [turn.text for turn in turns] + [one.text for t in turns for one in t.calls]
            assert not any("not recorded" in text for text in told)
            assert [name for name in names for text in told[2:] if name in text] == []
            shown |= {*told}
    for request in asked:
        assert [text for text in request.sent if text not in shown] == [], request.number
        assert any(request.system.startswith(text) for text in shown if text)


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
