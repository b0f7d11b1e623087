"""What the live source answered is what the recorded directory answers for the same as_of."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from libs.market.errors import MarketError, NotInSource
from libs.market.recording import BATCH, Recorder, TickerRecording
from libs.market.replay.market import ReplayFills, ReplayMarket, ReplayStore
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from tests.fakes.yahoo_live import AS_OF, BEFORE, Live

SINCE = date(2023, 1, 3)
TICKERS = ["ALFA", "BRVO", "DLTA", "FOXT", "GOLF.DE"]
NEXT_EVENING = datetime(2024, 3, 18, 23, tzinfo=UTC)


async def record(
    live: Live, folder: Path, tickers: Sequence[str] = TICKERS
) -> list[TickerRecording]:
    told: list[TickerRecording] = []
    await Recorder(live.market, folder, tell=told.append).run(tickers, SINCE)
    return told


def replayed(folder: Path) -> ReplayMarket:
    return ReplayMarket(ReplayStore(folder))


async def outcome(market: Any, name: str, arguments: dict[str, Any], as_of: date = AS_OF) -> Any:
    try:
        found = await MarketTools(market, as_of, MARKET_TOOL_NAMES).call(name, arguments)
    except MarketError as error:
        return error.code
    return {key: value for key, value in found.items() if key != "source"}


async def test_every_question_gets_the_live_answer_again(live: Live, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    await record(live, folder)
    replay = replayed(folder)
    for ticker in TICKERS:
        assert (await replay.bars(ticker, AS_OF, 300)).equals(
            await live.market.bars(ticker, AS_OF, 300)
        )
        for name in (
            "get_stock_price",
            "get_stock_history",
            "get_technical_indicators",
            "get_fundamentals",
            "get_news",
            "get_earnings",
        ):
            arguments = {"ticker": ticker}
            live_says = await outcome(live.market, name, arguments)
            recorded_says = await outcome(replay, name, arguments)
            if live_says == "not_in_source":
                # Of this one Yahoo has no page of reports; of others it has, so there is a file.
                assert (name, ticker) == ("get_earnings", "GOLF.DE")
                assert (recorded_says["upcoming"], recorded_says["last_reported"]) == (None, None)
                continue
            assert recorded_says == live_says, (name, ticker)
    assert await replay.universe(AS_OF) == await live.market.universe(AS_OF, TICKERS)
    live_due = await outcome(live.market, "get_earnings_calendar", {})
    assert await outcome(replay, "get_earnings_calendar", {}) == live_due


async def test_fills_and_actions_of_past_sessions_are_recorded_too(
    live: Live, tmp_path: Path
) -> None:
    await record(live, tmp_path / "r")
    fills = ReplayFills(ReplayStore(tmp_path / "r"))
    for ticker in ("DLTA", "FOXT"):
        assert await fills.actions(ticker, SINCE, AS_OF) == await live.fills.actions(
            ticker, SINCE, AS_OF
        )
    assert await fills.next_open("DLTA", BEFORE) == await live.fills.next_open("DLTA", BEFORE)


async def test_undated_things_are_not_known_before_they_were_recorded(
    live: Live, tmp_path: Path
) -> None:
    await record(live, tmp_path / "r")
    replay = replayed(tmp_path / "r")
    assert await replay.fundamentals("ALFA", BEFORE) is None
    assert (await replay.universe(BEFORE, ["ALFA"]))[0].sector == "unknown"
    assert all(row.eps_actual is not None for row in await replay.earnings(BEFORE, ["ALFA"]))


async def test_an_evening_later_only_what_is_new_is_added(live: Live, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    await record(live, folder)
    first = {path.name: path.read_text() for path in folder.glob("*.csv")}
    live.at(NEXT_EVENING)
    live.server.market.companies["ALFA"].info["trailingEps"] = 9.9
    await record(live.fresh(tmp_path / "b"), folder)
    second = {path.name: path.read_text() for path in folder.glob("*.csv")}
    assert second["ALFA.csv"].startswith(first["ALFA.csv"].rstrip("\n"))
    assert second["sectors.csv"] == first["sectors.csv"]
    added = set(second["fundamentals.csv"].splitlines()) - set(
        first["fundamentals.csv"].splitlines()
    )
    assert len(added) == 1
    assert "ALFA" in added.pop()
    replay = replayed(folder)
    before, after = (
        await replay.fundamentals("ALFA", AS_OF),
        await replay.fundamentals("ALFA", date(2024, 3, 18)),
    )
    assert before is not None
    assert after is not None
    assert (before.eps_ttm, after.eps_ttm) == (3.3, 9.9)


async def test_a_run_that_was_cut_off_goes_on_where_it_stopped(live: Live, tmp_path: Path) -> None:
    folder, companies = tmp_path / "r", live.server.market.companies
    many = [f"T{n:02}" for n in range(BATCH + 2)]
    for name in many:
        companies[name] = type(companies["ALFA"])(name, companies["ALFA"].rows)

    class Cut(BaseException):
        """The process is gone."""

    seen: list[str] = []

    def tell(each: TickerRecording) -> None:
        if each.ticker in many:
            seen.append(each.ticker)
        if len(seen) == BATCH:
            raise Cut

    with pytest.raises(Cut):
        await Recorder(live.market, folder, tell=tell).run(many, SINCE)
    assert len(list(folder.glob("T*.csv"))) == BATCH
    asked = live.server.count("/chart/T")
    told = await record(live.fresh(tmp_path / "b"), folder, many)
    skipped = [each.ticker for each in told if each.absent == {"all": "recorded already"}]
    assert skipped == many[:BATCH]
    assert live.server.count("/chart/T") - asked == 2 * 2  # of two tickers, zone and chart
    assert len(list(folder.glob("T*.csv"))) == len(many)
    assert not list(folder.glob("*.partial"))


async def test_what_got_no_answer_is_told_and_left_for_another_run(
    live: Live, tmp_path: Path
) -> None:
    folder = tmp_path / "r"
    live.server.fails("/chart/DLTA", status=500, body="", times=99)
    told = {each.ticker: each for each in await record(live, folder, ["ALFA", "DLTA", "NOPE"])}
    assert told["ALFA"].failure is None
    assert (told["DLTA"].failure, told["DLTA"].is_final) == ("source_unavailable", False)
    assert (told["NOPE"].failure, told["NOPE"].is_final) == ("unknown_ticker", True)
    assert not (folder / "DLTA.csv").exists()
    live.server.faults.clear()
    again = {each.ticker: each for each in await record(live, folder, ["ALFA", "DLTA", "NOPE"])}
    assert again["DLTA"].failure is None
    assert (folder / "DLTA.csv").exists()


async def test_a_page_that_fails_costs_no_other_and_is_named(live: Live, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    live.server.fails("/xhr/ncp", status=401, body="")
    live.server.fails("/v1/finance/visualization", status=401, body="")
    told = {each.ticker: each for each in await record(live, folder, ["ALFA", "GOLF.DE"])}
    assert told["ALFA"].failure is None
    assert (told["ALFA"].absent, told["ALFA"].is_final) == ({"news": "source_unavailable"}, False)
    assert told["ALFA"].rows.keys() == {"sectors", "fundamentals", "earnings"}
    assert (told["(calendar)"].absent, told["(calendar)"].is_final) == (
        {"earnings": "source_unavailable"},
        False,
    )
    assert told["(EURUSD)"].rows["fx"] > 0
    live.server.faults.clear()
    again = {
        each.ticker: each for each in await record(live.fresh(tmp_path / "b"), folder, ["ALFA"])
    }
    assert (again["ALFA"].absent, again["ALFA"].is_final) == ({}, True)


async def test_a_rate_limit_is_waited_out(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.server.fails("/chart/", status=429, body="Too Many Requests")
    waits: list[float] = []

    def pause(wait_s: float) -> None:
        waits.append(wait_s)
        live.server.faults.clear()
        live.clock[0] += wait_s

    async def at_once(_: float) -> None:
        return None

    monkeypatch.setattr("libs.market.recording.asyncio.sleep", at_once)
    told: list[TickerRecording] = []
    recorder = Recorder(live.market, tmp_path / "r", tell=told.append, pause=pause)
    await recorder.run(["ALFA"], SINCE)
    assert waits == [60.0]
    assert told[0].failure is None


async def test_absences_say_which_and_why(live: Live, tmp_path: Path) -> None:
    (told,) = [each for each in await record(live, tmp_path / "r", ["INDI"]) if each.sessions]
    assert told.absent == {"earnings": "not_in_source"}
    assert told.rows == {"sectors": 1, "news": 1, "fundamentals": 0}
    assert (told.first, told.last) == (date(2023, 12, 11), AS_OF)
    with pytest.raises(NotInSource):
        await live.market.earnings(AS_OF, ["INDI"])
