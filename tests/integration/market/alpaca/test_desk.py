"""Alpaca as the settings make it: whole decisions, names and sectors, the commands, a recording."""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import orjson
import polars as pl
import pytest
from pydantic import SecretStr

from contracts.cycle import CycleRequest, CycleStatus
from libs.market import sources
from libs.market.alpaca.standing import ALPACA_DIR, keep_standing
from libs.market.choice import DataKind
from libs.market.errors import SourceUnavailable
from libs.market.kinds import label_of
from libs.market.recording import FROM_ALPACA, Recorder
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.market.source import whole_volume
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from services.cli.operating import doctor, market
from tests.fakes import edgar_live, edgar_server
from tests.fakes.alpaca_live import AS_OF, BEFORE, CLOSE, EVENING, NEXT, TICKERS, AlpacaLive
from tests.fakes.alpaca_server import BARS, KEY_ID, NEWS, SECRET, Bar, Story
from tests.fakes.edgar_server import Company
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.flow.conftest import thinking_routes

SICS = {"ALFA": "3571", "BRVO": "6022", "CHLI": "4911", "DLTA": "2834"}
SINCE = date(2023, 1, 3)


@pytest.fixture
def companies(tmp_path: Path, alpaca: AlpacaLive) -> Iterator[edgar_live.EdgarLive]:
    """EDGAR with the business of four of the five."""
    known = [
        Company(n, [name], name=f"{name} CORP", sic=sic)
        for n, (name, sic) in enumerate(SICS.items(), 1)
    ]
    for company in known:
        accession = f"000000000{company.cik}-24-000001"
        company.files(accession, "8-K", "2024-03-01", "2024-03-01T21:10:00.000Z")
    with edgar_server.serving(*known) as server:
        live = edgar_live.edgar_source(server, tmp_path / "edgar")
        live.now[0] = EVENING
        yield live
        live.close()


@pytest.fixture
def chosen(
    alpaca: AlpacaLive,
    companies: edgar_live.EdgarLive,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Settings:
    """Settings of a desk on Alpaca, whose sources are those of the test."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DESKBUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sources, "alpaca_feed_of", lambda _: alpaca.feed)
    monkeypatch.setattr(market, "alpaca_feed_of", lambda _: alpaca.feed)
    monkeypatch.setattr(sources, "edgar_of", lambda _: companies.feed)
    monkeypatch.setattr(market, "asking", asyncio.run)
    key = tmp_path / "alpaca-data.key"
    key.write_text(f"{KEY_ID} {SECRET}\n")
    monkeypatch.setenv("DESKBUS_MARKET_SOURCE", "alpaca")
    monkeypatch.setenv("DESKBUS_ALPACA_DATA_KEY_FILE", str(key))
    monkeypatch.setenv("DESKBUS_ALPACA_TICKERS", ",".join(TICKERS))
    monkeypatch.setenv("DESKBUS_EDGAR_CONTACT", "jane@example.org")
    monkeypatch.setenv("DESKBUS_DATA_DIR", str(tmp_path / "desk"))
    return Settings()


async def test_a_decision_from_alpacas_prices_and_headlines_to_orders(
    chosen: Settings, alpaca: AlpacaLive
) -> None:
    desk = InProcessDesk([*await thinking_routes(chosen), *broker_of_the_imagination()], chosen)
    ended = await desk.run(CycleRequest(idempotency_key="a", as_of=AS_OF))
    assert (ended.state.status, ended.state.reason) == (CycleStatus.COMPLETED, "")
    digest = desk.contract("digest")
    by_name = {source["name"]: source for source in digest["sources"]}  # type: ignore[attr-defined]
    assert by_name["screener"].get("error") is None
    assert by_name["news"].get("error") is None
    assert by_name["earnings"]["error"]["code"] == "not_in_source"
    said = digest["market_source"]  # type: ignore[index]
    assert "provisional" in said
    sectors = {each["ticker"]: each["sector"] for each in digest["candidates"]}  # type: ignore[attr-defined]
    assert sectors["ALFA"] == "Information Technology"
    assert sectors["BRVO"] == "Financials"


async def test_an_account_of_iex_alone_decides_without_screens_by_volume_and_says_so(
    chosen: Settings, alpaca: AlpacaLive
) -> None:
    """Also where other kinds of data have sources of their own."""
    alpaca.world.sip = False
    mixed = chosen.changed(market={"fundamentals": "edgar", "events": "edgar"})
    desk = InProcessDesk([*await thinking_routes(mixed), *broker_of_the_imagination()], mixed)
    ended = await desk.run(CycleRequest(idempotency_key="a", as_of=AS_OF))
    assert ended.state.status is CycleStatus.COMPLETED, ended.state.reason
    digest = desk.contract("digest")
    assert "IEX only" in digest["market_source"]  # type: ignore[index]
    assert not whole_volume(market_of(mixed))
    assert "most active" not in orjson.dumps(digest["candidates"]).decode()  # type: ignore[index]


async def test_names_and_sectors_are_of_the_newest_session_alone(
    chosen: Settings, alpaca: AlpacaLive, companies: edgar_live.EdgarLive
) -> None:
    data = market_of(chosen)
    listed = {each.ticker: each for each in await data.universe(AS_OF)}
    assert [(listed[name].sector, listed[name].issuer) for name in ("CHLI", "DLTA")] == [
        ("Utilities", "CIK 3"),
        ("Health Care", "CIK 4"),
    ]
    assert (listed["NEWN"].sector, listed["NEWN"].name) == ("unknown", "NEWN"), "not in EDGAR"
    assert listed["ALFA"].name == "ALFA CORP"
    assert listed["ALFA"].exchange == "XNAS"
    asked = len(companies.server.asked)
    before = await data.universe(BEFORE)
    assert {(each.name == each.ticker, each.sector) for each in before} == {(True, "unknown")}
    assert len(companies.server.asked) == asked, "of the past nobody is asked"


async def test_names_that_were_seen_in_the_night_are_kept_while_the_exchange_is_open(
    chosen: Settings, alpaca: AlpacaLive, companies: edgar_live.EdgarLive
) -> None:
    night, trading = datetime(2024, 3, 14, 23, tzinfo=UTC), datetime(2024, 3, 15, 15, tzinfo=UTC)
    data = market_of(chosen)
    for moment, sector in ((night, "Information Technology"), (trading, "Information Technology")):
        alpaca.at(moment)
        companies.now[0] = moment
        (listing,) = await data.universe(BEFORE, ("ALFA",))
        assert listing.sector == sector
    (other,) = await data.universe(BEFORE, ("CHLI",))
    assert other.sector == "unknown", "nobody saw it in the night"


async def test_of_a_large_universe_only_those_that_are_looked_at_are_asked_about(
    chosen: Settings, companies: edgar_live.EdgarLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libs.market.alpaca.market.NAMED_MAX", 4)
    data = market_of(chosen)
    assert {each.sector for each in await data.universe(AS_OF)} == {"unknown"}
    assert companies.server.count("/submissions/") == 0
    (one,) = await data.universe(AS_OF, ("ALFA",))
    assert one.sector == "Information Technology"


async def test_without_an_answer_of_edgar_no_sector_is_guessed(
    chosen: Settings, companies: edgar_live.EdgarLive
) -> None:
    companies.server.fails("/submissions/", "500 page")
    with pytest.raises(SourceUnavailable):
        await market_of(chosen).universe(AS_OF)


async def test_headlines_alone_come_from_alpaca_beside_other_prices(
    chosen: Settings, alpaca: AlpacaLive
) -> None:
    data = market_of(chosen.changed(market={"source": "replay", "headlines": "alpaca"}))
    assert label_of(data, DataKind.HEADLINES).name == "alpaca"
    assert label_of(data, DataKind.PRICES).name == "bokeh-sampledata"
    assert {item.ticker for item in await data.news(AS_OF, ("ALFA", "DLTA"), 5)} == {"ALFA", "DLTA"}
    assert alpaca.server.count(BARS) == 0


def test_the_commands_say_what_is_known_and_show_no_key(
    chosen: Settings, alpaca: AlpacaLive, capsys: pytest.CaptureFixture[str]
) -> None:
    market.sources(json=True)
    rows = {row["name"]: row for row in map(orjson.loads, capsys.readouterr().out.splitlines())}
    assert rows["alpaca"]["usable"]
    assert rows["alpaca"]["used_for"] == ["prices", "headlines"]
    assert "key PKMA... of" in rows["alpaca"]["said"]
    assert "not known yet" in rows["alpaca"]["said"]
    assert not alpaca.server.asked
    market.show("ALFA", datetime(2024, 3, 15))  # noqa: DTZ001 - as typer gives it
    shown = capsys.readouterr().out
    assert "from alpaca" in shown
    assert "provisional" in shown
    keep_standing(chosen.data_dir / ALPACA_DIR, alpaca.told[-1])
    checks = [check for check in doctor.machine(Settings()) if check.name == "market data"]
    assert "prices of all US exchanges (SIP), seen at 2024-03-15 23:00 UTC" in checks[0].said
    assert " of 200 requests a minute left then" in checks[0].said
    everything = f"{rows} {shown} {checks}"
    assert KEY_ID not in everything
    assert SECRET not in everything


def test_doctor_says_that_no_proxy_is_used(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    (line,) = [check.said for check in doctor.machine(Settings()) if check.name == "proxy"]
    assert "directly to alpaca" in line


def test_doctor_says_what_prices_from_alpaca_lack(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DESKBUS_EDGAR_CONTACT")
    monkeypatch.delenv("DESKBUS_ALPACA_TICKERS")
    lacks = [check.said for check in doctor.machine(Settings()) if check.name == "market data"][1]
    assert "DESKBUS_EDGAR_CONTACT" in lacks
    assert "DESKBUS_ALPACA_TICKERS" in lacks
    key = tmp_path / "alpaca-data.key"
    for mode, told in ((0o600, False), (0o644, True)):
        key.chmod(mode)
        assert any(str(key) in check.todo for check in doctor.machine(Settings())) is told
    monkeypatch.setenv("DESKBUS_ALPACA_DATA_KEY_FILE", str(tmp_path / "nowhere"))
    first = next(check for check in doctor.machine(Settings()) if check.name == "market data")
    assert (first.verdict, "cannot be read" in first.said) == ("problem", True)


# --- recorded -------------------------------------------------------------------------------------


async def record(live: AlpacaLive, folder: Path) -> None:
    recorder = Recorder(live.market, folder, source=FROM_ALPACA, tell=lambda _: None)
    await recorder.run(["ALFA", "BRVO", "DLTA"], SINCE)


async def test_a_recording_keeps_the_first_wording_and_each_edit(
    alpaca: AlpacaLive, tmp_path: Path
) -> None:
    folder = tmp_path / "recorded"
    story = Story(
        20, ("ALFA",), CLOSE - timedelta(hours=2), [(CLOSE - timedelta(hours=2), "first")]
    )
    alpaca.world.stories = [story]
    await record(alpaca, folder)
    story.wordings.append((CLOSE + timedelta(hours=12), "second"))
    alpaca.at(EVENING + timedelta(days=3))
    await record(alpaca.fresh(), folder)
    replay = ReplayMarket(ReplayStore(folder))
    assert [item.title for item in await replay.news(AS_OF, ("ALFA",), 5)] == ["first"]
    both = await replay.news(NEXT, ("ALFA",), 5)
    assert [(item.title, item.known_at) for item in both] == [
        ("second", CLOSE + timedelta(hours=12)),
        ("first", CLOSE - timedelta(hours=2)),
    ]


async def test_a_recording_keeps_the_bar_of_the_evening_and_adds_the_next_ones(
    alpaca: AlpacaLive, tmp_path: Path
) -> None:
    folder = tmp_path / "recorded"
    await record(alpaca, folder)
    evening = await alpaca.market.bars("DLTA", AS_OF, 300)
    last = alpaca.world.bars["DLTA"][-1]
    alpaca.world.bars["DLTA"].append(
        Bar(AS_OF, last.open, last.high + 9, last.low - 9, last.close, 7, EVENING)
    )
    alpaca.at(EVENING + timedelta(days=3))
    await record(alpaca.fresh(), folder)
    replay = ReplayMarket(ReplayStore(folder))
    assert (await replay.bars("DLTA", AS_OF, 300)).equals(evening)
    assert (await replay.bars("DLTA", NEXT, 2))["date"].to_list() == [AS_OF, NEXT]
    stored = pl.read_csv(folder / "DLTA.csv")
    assert stored.filter(pl.col("split_factor") != 1)["date"].to_list() == [AS_OF.isoformat()]
    assert "alpaca-recorded" in (folder / "source.toml").read_text()


def test_the_command_records_headlines_from_alpaca(
    chosen: Settings, alpaca: AlpacaLive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    since = datetime(2023, 1, 3)  # noqa: DTZ001 - as typer gives it
    market.record(tmp_path / "r", ["ALFA,BRVO"], since)
    assert "may not be passed on" in capsys.readouterr().err
    assert "ALFA opens a plant" in (tmp_path / "r" / "news.csv").read_text()
    assert alpaca.server.count(NEWS) == 2
    found = b"".join(path.read_bytes() for path in (tmp_path / "r").iterdir())
    assert KEY_ID.encode() not in found
    assert SECRET.encode() not in found
    assert SecretStr(SECRET).get_secret_value() == SECRET
