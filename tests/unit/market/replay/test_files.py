import asyncio
import gzip
from contextlib import nullcontext
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from libs.files import table
from libs.files.finding import BadFile
from libs.market.errors import BadReplayData
from libs.market.issuers import issuer_of
from libs.market.replay import files, layout, parsed
from libs.market.replay import store as replay_store
from libs.market.replay.checked import checked_files
from libs.market.replay.market import ReplayMarket, ReplayStore
from tests.data.fixture_market import make_fixture

HEADER = "date,open,high,low,close,volume"
GOOD = ("2024-01-02,10,11,9,10.5,1000", "2024-01-03,10.5,12,10,11.5,2000")
DAY = date(2024, 1, 3)


def directory_of(folder: Path, *rows: str, header: str = HEADER, name: str = "AAA.csv") -> Path:
    (folder / name).write_text("\n".join((header, *rows)) + "\n")
    return folder


async def test_a_plain_csv_is_enough(tmp_path: Path) -> None:
    market = ReplayMarket(ReplayStore(directory_of(tmp_path, *GOOD)))
    bars = await market.bars("AAA", DAY, 10)
    assert bars["close"].to_list() == [10.5, 11.5]
    (listing,) = await market.universe(DAY)
    assert (listing.sector, listing.currency, listing.exchange) == ("unknown", "USD", "XNYS")
    assert market.label.name == tmp_path.name


@pytest.mark.parametrize("end", ["\n\n", "\r\n \r\n", "\n,,,,,\n\n"])
async def test_empty_lines_at_the_end_are_no_rows(tmp_path: Path, end: str) -> None:
    path = tmp_path / "AAPL.csv"
    path.write_text("date,open,high,low,close,volume\n2012-06-29,1,1,1,1,1" + end)
    assert files.read_bars(path).height == 1


async def test_an_empty_line_between_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "AAPL.csv"
    row = "2012-06-{},1,1,1,1,1\n"
    path.write_text(f"date,open,high,low,close,volume\n{row.format(28)},,,,,\n{row.format(29)}")
    with pytest.raises(BadFile, match="line 3: no date"):
        files.read_bars(path)


async def test_parquet_gives_the_same_as_csv(tmp_path: Path) -> None:
    csv = ReplayMarket(ReplayStore(directory_of(tmp_path, *GOOD)))
    expected = await csv.bars("AAA", DAY, 10)
    other = tmp_path / "parquet"
    other.mkdir()
    pl.read_csv(tmp_path / "AAA.csv", try_parse_dates=True).write_parquet(other / "aaa.parquet")
    assert (await ReplayMarket(ReplayStore(other)).bars("AAA", DAY, 10)).equals(expected)


async def test_empty_action_cells_and_yahoos_zero_mean_none(tmp_path: Path) -> None:
    rows = ("2024-01-02,10,11,9,10,1000,,", "2024-01-03,10,11,9,10,1000,0,0.0")
    directory_of(tmp_path, *rows, header=f"{HEADER},dividend,split_factor")
    bars = await ReplayMarket(ReplayStore(tmp_path)).bars("AAA", DAY, 10)
    assert bars["close"].to_list() == [10, 10]


async def test_a_dividend_is_reinvested_at_the_close_of_its_day(tmp_path: Path) -> None:
    rows = ("2024-01-02,100,100,100,100,1000,0", "2024-01-03,98,98,98,98,1000,2")
    directory_of(tmp_path, *rows, header=f"{HEADER},dividend")
    close = (await ReplayMarket(ReplayStore(tmp_path)).bars("AAA", DAY, 2))["close"]
    assert close[1] / close[0] == pytest.approx((98 + 2) / 100)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (("2024-01-02,10,11,9,NaN,1",), "AAA.csv, line 2: close is 'NaN': not a number"),
        (("2024-01-02,10,11,9,,1",), "line 2: close is empty; correct"),
        (("2024-01-02,10,inf,9,10,1",), "line 2: high is 'inf': not a number"),
        (("2024-01-02,ten,11,9,10,1",), "line 2: open is 'ten': not a number"),
        ((GOOD[0], "2024-01-03,10,11,-9,10,1"), "line 3: low is '-9': not above zero"),
        ((GOOD[0], "2024-01-03,0,11,9,10,1"), "line 3: open is '0': not above zero"),
        (("2024-01-02,10,8,9,10,1",), "line 2: high is '8': below low"),
        (("2024-01-02,10,11,9,10,-1",), "line 2: volume is '-1': negative"),
        (("2024-01-02,10,11,9,10,",), "line 2: volume is empty"),
        (
            (GOOD[0], "2024-01-03,1e300,1e300,9,10,1"),
            "line 3: open is '1e300': no price: above 1,000,",
        ),
        (
            ("2024-01-02,10,11,9,10,1e300",),
            "line 2: volume is '1e300': above 1,000,000,000,000,000",
        ),
        ((*GOOD, "2024-01-04,10,11,9,10,1,7"), "line 4: 7 cells under a header of 6; correct the"),
        (("02/01/2024,10,11,9,10,1",), "line 2: date is '02/01/2024': could be a day and a month"),
        ((GOOD[0], GOOD[0]), "line 3: date is '2024-01-02': there twice"),
        ((*GOOD, GOOD[0]), "line 4: date is '2024-01-02': before the last; sort by date"),
        (
            ("2024-01-06,10,11,9,10,1",),
            "line 2: date is '2024-01-06': a weekend, on which XNYS is closed",
        ),
        ((), "AAA.csv: no rows"),
    ],
)
async def test_a_bad_row_is_refused_by_file_row_and_remedy(
    tmp_path: Path, rows: tuple[str, ...], says: str
) -> None:
    market = ReplayMarket(ReplayStore(directory_of(tmp_path, *rows)))
    with pytest.raises(BadReplayData, match=says):
        await market.bars("AAA", DAY, 10)


@pytest.mark.parametrize(
    ("header", "row", "says"),
    [
        ("date,open,high,low,close", "2024-01-02,10,11,9,10", "line 1: no column volume"),
        (f"{HEADER},adj_close", f"{GOOD[0]},10", "line 1: unknown column adj_close; keep to date"),
        (f"{HEADER},dividend", f"{GOOD[0]},much", "line 2: dividend is 'much': not a number"),
        (f"{HEADER},dividend", f"{GOOD[0]},-1", "line 2: dividend is '-1': not an amount"),
        (f"{HEADER},dividend", f"{GOOD[0]},1e300", "line 2: dividend is '1e300': not an amount"),
        (f"{HEADER},split_factor", f"{GOOD[0]},-2", "line 2: split_factor is '-2': not a ratio"),
        (
            f"{HEADER},split_factor",
            f"{GOOD[0]},1e300",
            "line 2: split_factor is '1e300': not a ratio",
        ),
    ],
)
async def test_a_bad_column_is_refused(tmp_path: Path, header: str, row: str, says: str) -> None:
    market = ReplayMarket(ReplayStore(directory_of(tmp_path, row, header=header)))
    with pytest.raises(BadReplayData, match=says):
        await market.bars("AAA", DAY, 10)


async def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "AAA.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(BadReplayData, match=r"AAA\.parquet: not readable as parquet"):
        await ReplayMarket(ReplayStore(tmp_path)).bars("AAA", DAY, 10)


@pytest.mark.parametrize(
    ("encoding", "says"),
    [("utf-16-le", "line 1: no text: it holds bytes of zero"), ("latin-1", "line 3: not UTF-8")],
)
async def test_another_encoding_is_refused_by_its_row(
    tmp_path: Path, encoding: str, says: str
) -> None:
    text = "\n".join((HEADER, GOOD[0], "2024-01-03,é,11,9,10,1"))
    (tmp_path / "AAA.csv").write_bytes(text.encode(encoding))
    with pytest.raises(BadReplayData, match=says):
        await ReplayMarket(ReplayStore(tmp_path)).bars("AAA", DAY, 10)


async def test_a_file_over_the_limit_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "FILE_BYTES_MAX", 10)
    with pytest.raises(BadReplayData, match="larger than"):
        await ReplayMarket(ReplayStore(directory_of(tmp_path, *GOOD))).bars("AAA", DAY, 10)


async def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    directory_of(tmp_path, *GOOD)
    directory_of(tmp_path, "nonsense", name="BBB.csv")
    assert (await ReplayMarket(ReplayStore(tmp_path)).bars("AAA", DAY, 10)).height == 2


def test_a_directory_that_is_none_or_empty_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(
        BadReplayData, match=f"{missing}: not a directory; set DESKBUS_MARKET_REPLAY_DIR"
    ):
        ReplayStore(missing)
    with pytest.raises(BadReplayData, match=f"{tmp_path}: 0 files of prices"):
        ReplayStore(tmp_path)


async def test_two_files_for_one_ticker_cost_this_ticker(tmp_path: Path) -> None:
    directory_of(tmp_path, *GOOD)
    directory_of(tmp_path, *GOOD, name="aaa.parquet")
    directory_of(tmp_path, *GOOD, name="BBB.csv")
    market = ReplayMarket(ReplayStore(tmp_path))
    with pytest.raises(BadReplayData, match="AAA is also in"):
        await market.bars("AAA", DAY, 1)
    assert [listing.ticker for listing in await market.universe(DAY)] == ["BBB"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [("synthetic = 'yes'", "synthetic is unknown or"), ("x = 1", "x is unknown"), ("=", "source")],
)
def test_a_bad_label_file_is_refused(tmp_path: Path, settings: str, says: str) -> None:
    (directory_of(tmp_path, *GOOD) / "source.toml").write_text(settings)
    with pytest.raises(BadReplayData, match=says):
        ReplayStore(tmp_path)


async def test_a_known_time_without_a_zone_is_refused(tmp_path: Path) -> None:
    rows = ("AAA,2024-01-02T10:00:00Z,fine", "AAA,2024-01-02T10:00:00,no zone")
    directory_of(tmp_path, *GOOD)
    directory_of(tmp_path, *rows, header="ticker,known_at,title", name="news.csv")
    with pytest.raises(
        BadReplayData, match=r"news\.csv, line 3: known_at is .*: not a time with a zone"
    ):
        await ReplayMarket(ReplayStore(tmp_path)).news(DAY, ["AAA"], 5)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("15.03.2024", datetime(2024, 3, 15, 20, tzinfo=UTC)),
        ("03/15/2024", datetime(2024, 3, 15, 20, tzinfo=UTC)),
        ('"Mar 15, 2024"', datetime(2024, 3, 15, 20, tzinfo=UTC)),
        ("20240315", datetime(2024, 3, 15, 20, tzinfo=UTC)),
        ("15.03.2024 10:00 +02:00", datetime(2024, 3, 15, 8, tzinfo=UTC)),
        ("2024-03-15 10:00:00Z", datetime(2024, 3, 15, 10, tzinfo=UTC)),
        ("15.03.2024 10:00", None),
        ("03/04/2024", None),
        ("soon", None),
    ],
)
def test_known_at_is_read_as_other_dates_are(
    tmp_path: Path, text: str, known: datetime | None
) -> None:
    directory_of(tmp_path, *GOOD)
    directory_of(tmp_path, f"AAA,{text},up", header="ticker,known_at,title", name="news.csv")
    reading = asyncio.run(_records_of(tmp_path))
    assert reading == known or (known is None and "known_at is" in str(reading))


async def _records_of(folder: Path) -> object:
    try:
        return (await ReplayStore(folder).records("news", "news"))["known_at"][0]
    except BadReplayData as error:
        return error.message


async def test_records_in_parquet_keep_their_zone(tmp_path: Path) -> None:
    directory_of(tmp_path, *GOOD)
    known = datetime(2024, 1, 2, 15, tzinfo=UTC)
    table = pl.DataFrame({"ticker": ["AAA"], "known_at": [known], "title": ["up"]})
    table.write_parquet(tmp_path / "news.parquet")
    (item,) = await ReplayMarket(ReplayStore(tmp_path)).news(DAY, ["AAA"], 5)
    assert item.known_at == known


async def test_records_without_a_known_time_at_all_are_dropped(tmp_path: Path) -> None:
    directory_of(tmp_path, *GOOD)
    directory_of(tmp_path, "AAA,up", header="ticker,title", name="news.csv")
    assert await ReplayMarket(ReplayStore(tmp_path)).news(DAY, ["AAA"], 5) == ()


async def test_a_sector_may_change_at_a_known_time(tmp_path: Path) -> None:
    directory_of(tmp_path, *GOOD)
    rows = ("AAA,,Technology", "AAA,2024-01-03,Energy")
    directory_of(tmp_path, *rows, header="ticker,known_at,sector", name="sectors.csv")
    market = ReplayMarket(ReplayStore(tmp_path))
    sectors = [(await market.universe(day))[0].sector for day in (date(2024, 1, 2), DAY)]
    assert sectors == ["Technology", "Energy"]


async def test_share_classes_have_the_issuer_that_the_file_names_from_when_it_is_known(
    tmp_path: Path,
) -> None:
    for name in ("AAA.csv", "BBB.csv", "CCC.csv"):
        directory_of(tmp_path, *GOOD, name=name)
    rows = ("AAA,,Technology,Alpha", "BBB,,Technology,", "BBB,2024-01-03,Technology, Alpha ")
    header = "ticker,known_at,sector,issuer"
    directory_of(tmp_path, *rows, header=header, name="sectors.csv")
    market = ReplayMarket(ReplayStore(tmp_path))
    for day, issuers in ((date(2024, 1, 2), ["Alpha", "", ""]), (DAY, ["Alpha", "Alpha", ""])):
        listed = await market.universe(day)
        assert [await issuer_of(market, listing) for listing in listed] == issuers


async def test_the_cache_of_prices_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(10):
        directory_of(tmp_path, *GOOD, name=f"T{n:04}.csv")
    store = ReplayStore(tmp_path)
    one = (await store.bars("T0000")).estimated_size()
    monkeypatch.setattr(parsed, "BARS_BYTES_MAX", 8 * one)
    listings = await ReplayMarket(store).universe(DAY)
    assert len(listings) == 10
    assert len(store._parsed._bars) == 8
    assert (await ReplayMarket(store).bars("T0000", DAY, 1)).height == 1


async def test_who_traded_is_known_without_reading_files_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(10):
        directory_of(tmp_path, *GOOD, name=f"T{n:04}.csv")
    store = ReplayStore(tmp_path)
    monkeypatch.setattr(parsed, "BARS_BYTES_MAX", 1)
    read, reads = replay_store.read_prices, []

    def counted(path: Path, *calendars: Any) -> Any:
        reads.append(path.name)
        return read(path, *calendars)

    monkeypatch.setattr(replay_store, "read_prices", counted)
    for _ in range(3):
        assert len(await ReplayMarket(store).universe(DAY)) == 10
    assert len(reads) == 10


def test_a_missing_bundled_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "BUNDLED_PACKAGE", "no_such_package_here")
    with pytest.raises(BadReplayData, match="install bokeh-sampledata"):
        layout.find_bundled()


def test_the_fixture_is_what_its_script_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = make_fixture.HERE
    monkeypatch.setattr(make_fixture, "HERE", tmp_path)
    make_fixture.main()
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in committed.glob("*.csv")}
    assert sum(map(len, written.values())) < 400_000


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("2024-03-15,10,11,9,999,100", "close is '999': not between low and high"),
        ("2024-03-15,10,11,9,8.9,100", "close is '8.9': not between low and high"),
        ("2024-03-15,12,11,9,10,100", "open is '12': not between low and high"),
    ],
)
def test_a_price_outside_its_bar_is_refused_with_its_row_and_column(
    tmp_path: Path, row: str, what: str
) -> None:
    good = "2024-03-14,10,11,9,10,100"
    (tmp_path / "AAA.csv").write_text(f"date,open,high,low,close,volume\n{good}\n{row}\n")
    with pytest.raises(BadFile, match=rf"AAA.csv, line 3: {what}"):
        files.read_bars(tmp_path / "AAA.csv")


async def test_a_share_of_another_exchange_has_bars_on_its_own_sessions(tmp_path: Path) -> None:
    row = "2024-07-04,10,11,9,10,1000"
    directory_of(tmp_path, *GOOD)
    directory_of(tmp_path, row, name="SAP.DE.csv")
    directory_of(tmp_path, row, name="TOY.csv")
    directory_of(tmp_path, row, name="OWN.csv")
    directory_of(
        tmp_path,
        "toy ,Technology,XTKS",
        header="ticker,sector,exchange",
        name="sectors.csv",
    )
    store = ReplayStore(tmp_path)
    for ticker in ("SAP.DE", "TOY"):
        assert list(await store.dates(ticker)) == [date(2024, 7, 4)]
    with pytest.raises(BadReplayData, match="on which XNYS is closed"):
        await store.dates("OWN")


async def test_a_share_class_has_one_spelling(tmp_path: Path) -> None:
    directory_of(tmp_path, *GOOD, name="brk-b.csv")
    directory_of(tmp_path, *GOOD, name="ES=F.csv")
    store = ReplayStore(tmp_path)
    assert store.tickers == ("BRK.B",)
    assert [str(stray) for stray in store.strays] == [
        "ES=F.csv: its name is a future; it is ignored"
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("AAA.csv", "Price,Close\nTicker,AAA\nDate,\n2024-01-02,10\n"),
        ("AAA.csv", f"{HEADER}\n0000-01-03,10,11,9,10,1\n"),
        ("AAA.csv", f"{HEADER}\n9999-12-31T23:59:59-05:00,10,11,9,10,1\n"),
        ("AAA.csv", f"{HEADER}\n0001-01-01T09:30:00+05:00,10,11,9,10,1\n"),
        ("AAA.csv", "Price,Close,High,Low,Open,Volume\nTicker,M,M,M,M,M\nDate,,,,,\n"),
        ("AAA.csv", f"{HEADER}\n{GOOD[0]}\n\x00"),
        ("news.csv", "ticker,title,known_at\nAAA,up,+12345-01-01T00:00:00Z\n"),
        ("filings.csv", "ticker,accession,form,filed\nAAA,1,8-K,2204-03-01\n"),
    ],
)
async def test_whatever_stands_in_a_file_only_its_own_error_comes_out(
    tmp_path: Path, name: str, text: str
) -> None:
    directory_of(tmp_path, *GOOD, name="BBB.csv")
    directory_of(tmp_path, *GOOD)
    (tmp_path / name).write_text(text)
    store = ReplayStore(tmp_path)
    for _ in range(2):
        ask = (
            store.bars("AAA")
            if name == "AAA.csv"
            else store.records(name.removesuffix(".csv"), name)
        )
        with pytest.raises(BadReplayData, match=f"^{name}"):
            await ask
    assert (await store.bars("BBB")).height == 2


@pytest.mark.parametrize(
    ("row", "costs"),
    [
        ("AAA,Tech,XNYS,USD,12345-01-01", {"AAA"}),
        ("AAA,Tech,XNYS,USD,1900-01-01", {"AAA"}),
        ("AAA,Tech,XNYS,USD,2099-01-01", {"AAA"}),
        ("AAA,,XNYS,USD,", {"AAA"}),
        ("aaa ,Tech, Software,XNYS,USD,", {"AAA"}),
        (",Tech,XNYS,USD,", {"AAA"}),  # of any ticker without a row
        ("ZZZ,,XNYS,USD,", set()),
    ],
)
async def test_a_bad_row_of_sectors_costs_its_ticker(
    tmp_path: Path, row: str, costs: set[str]
) -> None:
    directory_of(tmp_path, *GOOD)
    directory_of(tmp_path, *GOOD, name="BBB.csv")
    rows = ("BBB,Energy,XNYS,USD,", row)
    header = "ticker,sector,exchange,currency,known_at"
    directory_of(tmp_path, *rows, header=header, name="sectors.csv")
    store = ReplayStore(tmp_path)
    listed = await ReplayMarket(store).universe(DAY)
    assert {"AAA", "BBB"} - {listing.ticker for listing in listed} == costs
    assert [listing.sector for listing in listed if listing.ticker == "BBB"] == ["Energy"]
    assert all(str(store.faults[name]).startswith("sectors.csv, line 3") for name in costs)
    assert str(store.faults["sectors"]).startswith("sectors.csv, line 3")
    with pytest.raises(BadReplayData) if costs else nullcontext():
        await store.bars("AAA")
    refused = {file.name async for file in checked_files(store) if file.refused}
    assert refused == {"sectors.csv", *(f"{name}.csv" for name in costs)}


async def test_tickers_of_hong_kong_without_a_lot_are_named_once(tmp_path: Path) -> None:
    row = "2024-03-15,10,11,9,10,1000"
    for name in ("0005.HK", "0700.HK", "2800.HK", "AAA"):
        directory_of(tmp_path, row, name=f"{name}.csv")
    directory_of(tmp_path, "2800.HK,Funds,500", header="ticker,sector,lot", name="sectors.csv")
    notes = [file.note async for file in checked_files(ReplayStore(tmp_path)) if file.note]
    assert notes == ["of 2 tickers of XHKG sectors.csv has no lot: their shares count as lots of 1"]


@pytest.mark.parametrize(
    ("name", "sign", "listed", "why"),
    [
        ("AAA", "€", "", "the sign €, and they count in USD"),
        ("AAA", "€", "EUR", ""),
        ("AAA", "$", "", ""),
        ("SAP.DE", "$", "", "the sign $, and they count in EUR"),
        ("SAP.DE", "€", "", ""),
        ("VOD.L", "£", "GBX", "the sign £, and they count in GBX"),
        ("VOD.L", "£", "GBP", ""),
    ],
)
async def test_the_sign_of_another_currency_is_refused(
    tmp_path: Path, name: str, sign: str, listed: str, why: str
) -> None:
    row = "2024-03-15," + ",".join(f"{sign}{price}" for price in (10, 11, 9, 10)) + ",1000"
    directory_of(tmp_path, row, name=f"{name}.csv")
    directory_of(
        tmp_path, f"{name},Tech,{listed}", header="ticker,sector,currency", name="sectors.csv"
    )
    store = ReplayStore(tmp_path)
    if not why:
        assert (await store.bars(name)).height == 1
        return
    with pytest.raises(BadReplayData, match=why.replace("$", r"\$")):
        await store.bars(name)


async def test_a_gzip_file_is_read_as_what_is_in_it(tmp_path: Path) -> None:
    text = "\n".join((HEADER, *GOOD)) + "\n"
    (tmp_path / "AAA.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "BBB.csv").write_bytes(b"\xef\xbb\xbf" * 2 + text.encode())
    (tmp_path / "CCC.csv").write_bytes(f"\ufeff{text}".encode("utf-16"))
    (tmp_path / "DDD.csv.gz").write_bytes(gzip.compress(text.encode())[:30])
    store = ReplayStore(tmp_path)
    for name in ("AAA", "BBB", "CCC"):
        assert (await store.bars(name)).height == 2
    with pytest.raises(BadReplayData, match=r"DDD\.csv\.gz: no whole gzip file"):
        await store.bars("DDD")


async def test_figures_without_their_filing_are_refused_however_often_they_are_asked_for(
    tmp_path: Path,
) -> None:
    directory_of(tmp_path, *GOOD)
    (tmp_path / "filings.csv").write_text("ticker,accession,form,filed\nAAA,1,10-K,2024-01-02\n")
    (tmp_path / "reported.csv").write_text(
        "ticker,accession,concept,period_end,quarters,unit,value\nAAA,2,Assets,2023-12-31,0,USD,5\n"
    )
    store = ReplayStore(tmp_path)
    for _ in range(2):
        with pytest.raises(
            BadReplayData, match=r"figures of filings that filings\.csv does not have"
        ):
            await store.records("reported", "figures")


async def test_a_file_of_another_ticker_is_refused(tmp_path: Path) -> None:
    text = "Price,Close,High,Low,Open,Volume\nTicker,M,M,M,M,M\nDate,,,,,\n2024-01-02,1,1,1,1,1\n"
    (tmp_path / "AAA.csv").write_text(text)
    with pytest.raises(BadReplayData, match="it holds prices of M"):
        await ReplayStore(tmp_path).bars("AAA")
