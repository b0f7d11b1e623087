"""EDGAR beside prices from elsewhere: the tools' answers, and a recording that answers the same."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from libs.market import sources
from libs.market.choice import DataKind
from libs.market.errors import ContactMissing, NotInSource
from libs.market.facts import facts_of
from libs.market.filings.reported import Filing
from libs.market.kinds import label_of
from libs.market.replay.market import ReplayMarket
from libs.market.replay.store import ReplayStore
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from libs.runtime.settings import Settings
from services.cli.operating import market
from tests.fakes.edgar_live import AS_OF, BEFORE, CONTACT, EdgarLive
from tests.fakes.edgar_server import Company, StandIn, serving
from tests.fakes.yahoo_live import live_fixture
from tests.flat_settings import settings_with

SINCE = datetime(2023, 1, 3)  # noqa: DTZ001 - as typer gives it
FIXTURE_AS_OF = date(2024, 3, 15)


def settings(edgar: StandIn, folder: Path, **more: object) -> Settings:
    chosen = {"market_fundamentals": "edgar", "market_events": "edgar", **more}
    return settings_with(
        edgar_url=edgar.url, edgar_contact=SecretStr(CONTACT), data_dir=folder, **chosen
    )


@pytest.fixture
def mixed(edgar: EdgarLive, tmp_path: Path) -> MarketData:
    """Bundled prices, and the rest from EDGAR, as the settings make it."""
    return market_of(settings(edgar.server, tmp_path))


async def test_figures_are_of_the_close_asked_about_and_the_answer_says_who_answered(
    mixed: MarketData,
) -> None:
    told = {}
    for day in (BEFORE, AS_OF):
        tools = MarketTools(mixed, day, MARKET_TOOL_NAMES)
        told[day] = await tools.call("get_fundamentals", {"ticker": "AAPL"})
    figures = {day: answer["figures"] for day, answer in told.items()}
    assert (figures[BEFORE]["eps_ttm"], figures[BEFORE]["form"]) == (6.29, "10-K")
    assert (figures[AS_OF]["eps_ttm"], figures[AS_OF]["form"]) == (9.08, "10-K/A")
    assert told[AS_OF]["source"] == "edgar (fundamentals), bokeh-sampledata (prices)"
    assert {told[day]["newest"] <= f"{day}T21:00:00+00:00" for day in told} == {True}


async def test_filings_are_dated_events(mixed: MarketData) -> None:
    answer = await MarketTools(mixed, AS_OF, MARKET_TOOL_NAMES).call(
        "get_filings", {"ticker": "AAPL"}
    )
    assert answer["source"] == "edgar"
    assert [item["form"] for item in answer["items"]] == ["10-K/A", "10-K", "8-K", "10-K"]
    assert "2.02" in answer["items"][2]["text"]


async def test_figures_are_brought_to_the_shares_of_the_close(
    edgar: EdgarLive, tmp_path: Path
) -> None:
    @dataclass
    class Split:
        async def splits(self, ticker: str, as_of: date) -> list[tuple[datetime, float]]:
            return [(edgar.feed.calendar.open(AS_OF), 2.0)]

    from libs.market.edgar.market import EdgarMarket  # noqa: PLC0415 - beside its stand-in

    found = await EdgarMarket(edgar.feed, Split()).fundamentals("AAPL", AS_OF)
    assert found is not None
    assert found.eps_ttm == 4.54


def test_only_the_kinds_that_were_chosen_come_from_edgar(edgar: EdgarLive, tmp_path: Path) -> None:
    only_events = market_of(settings(edgar.server, tmp_path, market_fundamentals=None))
    labels = {kind: label_of(only_events, kind).name for kind in DataKind}
    assert labels.pop(DataKind.EVENTS) == "edgar"
    assert set(labels.values()) == {"bokeh-sampledata"}


async def test_a_ticker_with_prices_that_edgar_does_not_list_is_not_in_the_source(
    mixed: MarketData,
) -> None:
    with pytest.raises(NotInSource, match="DESKBUS_EDGAR_CIKS"):
        await mixed.fundamentals("IBM", AS_OF)


async def test_a_companys_number_is_the_issuer_of_its_tickers(mixed: MarketData) -> None:
    known = await facts_of(mixed, "AAPL", AS_OF)
    assert known.issuer == "CIK 320193"
    assert (await facts_of(mixed, "IBM", AS_OF)).issuer == "", "EDGAR does not list it here"


# --- recorded -----------------------------------------------------------------------------------


@pytest.fixture
def alfa() -> Iterator[StandIn]:
    """ALFA's filings: a year that was restated, and shares of two classes on one cover page."""
    company = Company(1, ["ALFA"])
    first, second = "0000000001-24-000001", "0000000001-24-000002"
    company.files(first, "10-K", "2024-02-01", "2024-02-01T21:10:00.000Z", report="2023-12-31")
    company.files(second, "10-K/A", "2024-03-01", "2024-03-01T21:10:00.000Z", report="2023-12-31")
    company.files(
        "0000000001-24-000003", "8-K", "2024-03-15", "2024-03-15T19:10:00.000Z", items="5.02,9.01"
    )
    year = {"start": "2023-01-01", "end": "2023-12-31"}
    for accession, filed, value in ((first, "2024-02-01", 3.0), (second, "2024-03-01", 4.5)):
        company.states(
            "EarningsPerShareDiluted", value, accession, filed=filed, unit="USD/shares", **year
        )
    for count in (900, 400):
        company.states(
            "EntityCommonStockSharesOutstanding",
            count,
            second,
            "2024-02-15",
            "2024-03-01",
            unit="shares",
            taxonomy="dei",
        )
    with serving(company) as server:
        yield server


@pytest.fixture
def recording(alfa: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandIn]:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DESKBUS_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "MARKET_FUNDAMENTALS": "edgar",
        "MARKET_EVENTS": "edgar",
        "EDGAR_URL": alfa.url,
        "EDGAR_CONTACT": CONTACT,
    }.items():
        monkeypatch.setenv(f"DESKBUS_{name}", value)
    monkeypatch.setattr(market, "asking", asyncio.run)  # without setting up the process' log
    sources._edgar.cache_clear()
    with live_fixture(monkeypatch, tmp_path):
        yield alfa


def test_a_recording_answers_what_edgar_answered_and_does_not_hold_the_contact(
    recording: StandIn, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "recorded"
    for _ in range(2):
        market.record(folder, universe=["ALFA"], since=SINCE)
        (folder / "recording.json").unlink()  # as another evening would
    live = sources.edgar_of(Settings(data_dir=tmp_path / ".deskbus"))
    replay = ReplayMarket(ReplayStore(folder))

    async def both() -> tuple[tuple[Filing, ...], tuple[Filing, ...]]:
        return (
            await live.filings("ALFA", FIXTURE_AS_OF),
            await replay.filings("ALFA", FIXTURE_AS_OF),
        )

    asked, recorded = asyncio.run(both())
    assert recorded == asked
    assert [filing.items for filing in recorded] == [(), (), ("5.02", "9.01")]
    (listing,) = asyncio.run(replay.universe(FIXTURE_AS_OF, ("ALFA",)))
    assert listing.issuer == "CIK 1"
    found = asyncio.run(replay.fundamentals("ALFA", FIXTURE_AS_OF))
    assert found is not None
    desk = market_of(Settings(market={"source": "yahoo"}, data_dir=tmp_path / ".deskbus"))
    assert asyncio.run(desk.fundamentals("ALFA", FIXTURE_AS_OF)) == found
    assert (found.eps_ttm, found.form) == (4.5, "10-K/A")
    assert "class" in found.absent["shares_outstanding"]
    earlier = asyncio.run(replay.fundamentals("ALFA", date(2024, 2, 15)))
    assert earlier is not None
    assert earlier.eps_ttm == 3.0
    assert not (folder / "fundamentals.csv").exists(), "figures come from one source"
    assert "EDGAR" in replay.label.description
    everything = b"".join(path.read_bytes() for path in folder.iterdir())
    captured = capsys.readouterr()
    for text in (everything.decode(), captured.out, captured.err):
        assert CONTACT not in text
        assert "margaret" not in text


def test_without_a_contact_nothing_is_recorded(
    recording: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DESKBUS_EDGAR_CONTACT")
    with pytest.raises(ContactMissing):
        market.record(tmp_path / "recorded", universe=["ALFA"], since=SINCE)
    assert not (tmp_path / "recorded").exists()
    assert recording.asked == []
