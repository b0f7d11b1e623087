"""Whole decision cycles on the live source: real yfinance, the stand-in of Yahoo, no model."""

from datetime import date
from pathlib import Path
from typing import Any

import orjson

from contracts.cycle import CycleRequest, CycleStatus
from libs.market.recording import Recorder
from libs.runtime.settings import Settings
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.fakes.yahoo_live import AS_OF, BEFORE, Live
from tests.flow.conftest import thinking_routes


async def cycle(
    settings: Settings, as_of: date, tickers: tuple[str, ...] | None = None
) -> tuple[InProcessDesk, Any]:
    desk = InProcessDesk([*await thinking_routes(settings), *broker_of_the_imagination()], settings)
    asked = CycleRequest(idempotency_key="a", as_of=as_of, universe=tickers)
    return desk, await desk.run(asked)


async def test_a_decision_from_yahoos_screens_news_and_calendar_to_orders(live: Live) -> None:
    desk, ended = await cycle(Settings(market={"source": "yahoo"}), AS_OF)
    assert (ended.state.status, ended.state.reason) == (CycleStatus.COMPLETED, "")
    digest = desk.contract("digest")
    sources = {source["name"]: source for source in digest["sources"]}  # type: ignore[attr-defined]
    assert set(sources) == {"screener", "news", "earnings"}
    assert all(source.get("error") is None for source in sources.values())
    named = {item["ticker"] for item in digest["candidates"]}  # type: ignore[attr-defined]
    assert {"ALFA", "DLTA", "FOXT"} <= named
    assert desk.contract("validate")["decisions"]


async def test_an_older_day_is_decided_on_prices_and_says_what_it_had_not(live: Live) -> None:
    desk, ended = await cycle(
        Settings(market={"source": "yahoo"}), BEFORE, ("ALFA", "BRVO", "FOXT")
    )
    assert ended.state.status is CycleStatus.COMPLETED, ended.state.reason
    sources = {source["name"]: source for source in desk.contract("digest")["sources"]}  # type: ignore[attr-defined]
    assert sources["earnings"]["error"]["code"] == "not_in_source"
    assert sources["screener"].get("error") is None


async def test_a_named_universe_is_all_that_is_asked_about(live: Live) -> None:
    named = ("ALFA", "BRVO", "FOXT")
    desk, ended = await cycle(Settings(market={"source": "yahoo"}), AS_OF, named)
    assert ended.state.status is CycleStatus.COMPLETED, ended.state.reason
    sources = {source["name"]: source for source in desk.contract("digest")["sources"]}  # type: ignore[attr-defined]
    assert all(source.get("error") is None for source in sources.values())
    assert live.server.count("screener") == 0
    charts = {address.partition("/chart/")[2].partition("?")[0] for address in live.server.asked}
    assert charts & live.server.market.companies.keys() == set(named)


async def test_headlines_of_an_older_session_are_there_as_far_as_yahoos_page_reaches(
    live: Live,
) -> None:
    desk, ended = await cycle(
        Settings(market={"source": "yahoo"}), BEFORE, ("ALFA", "BRVO", "INDI")
    )
    assert ended.state.status is CycleStatus.COMPLETED, ended.state.reason
    digest = desk.contract("digest")
    headlines = {each["ticker"]: each.get("headlines", ()) for each in digest["candidates"]}  # type: ignore[attr-defined]
    assert headlines["ALFA"]


async def test_headlines_that_got_no_answer_are_told_and_the_cycle_goes_on(live: Live) -> None:
    live.server.fails("/xhr/ncp", status=401, body="")
    desk, ended = await cycle(Settings(market={"source": "yahoo"}), AS_OF, ("ALFA", "BRVO"))
    assert ended.state.status is CycleStatus.COMPLETED, ended.state.reason
    sources = {source["name"]: source for source in desk.contract("digest")["sources"]}  # type: ignore[attr-defined]
    assert sources["news"]["error"]["code"] == "source_unavailable"


async def test_yahoo_being_down_fails_the_cycle_with_the_reason(live: Live) -> None:
    live.server.fails("", status=500, body="")
    _, ended = await cycle(Settings(market={"source": "yahoo"}), AS_OF, ("ALFA", "BRVO"))
    assert ended.state.status is CycleStatus.FAILED
    assert "sources_failed" in ended.state.reason or "source_unavailable" in ended.state.reason


async def test_the_recorded_day_decides_as_the_live_one_did(live: Live, tmp_path: Path) -> None:
    tickers = ("ALFA", "BRVO", "DLTA", "ECHO", "FOXT")
    folder = tmp_path / "recorded"
    await Recorder(live.market, folder, tell=lambda _: None).run(tickers, date(2023, 1, 3))
    decided = []
    for settings in (Settings(market={"source": "yahoo"}), Settings(market={"replay_dir": folder})):
        desk, ended = await cycle(settings, AS_OF, tickers)
        assert ended.state.status is CycleStatus.COMPLETED, ended.state.reason
        decided.append(desk.contract("validate")["decisions"])
    assert orjson.dumps(decided[0]) == orjson.dumps(decided[1])
