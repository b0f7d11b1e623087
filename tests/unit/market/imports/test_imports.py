"""Vendors' files of prices: read by their form, joined with what a folder has, never over it."""

import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from libs.files.finding import BadFile
from libs.market.calendar import exchange_calendar
from libs.market.imports.folder import (
    TradingPlace,
    change_of,
    labels_for,
    open_folder,
    write,
    write_prices,
)
from libs.market.imports.series import (
    ImportedSeries,
    ImportForm,
    files_in,
    series_in,
    ticker_in_name,
)
from libs.market.replay.checked import checked_files
from libs.market.replay.files import FilePrices, read_prices
from libs.market.replay.formats import SPLITS, SPLITS_AND_DIVIDENDS
from libs.market.replay.store import ReplayStore
from tests.fakes.vendor_files import bars, download, history, lean_folder, to_parquet

ANY = ImportForm()
ROWS = len(bars())
HEAD = "Date,Open,High,Low,Close,Volume"


def of(series: ImportedSeries) -> FilePrices:
    return series.prices(exchange_calendar())


def two() -> dict[str, object]:
    return {"ACME": bars(), "BRK-B": bars(3, first=date(2024, 2, 1))}


@pytest.mark.parametrize(
    "written",
    [
        lambda path: download(two()).to_csv(path),
        lambda path: download(two(), by="ticker").to_csv(path),
        lambda path: download(two()).reset_index().to_csv(path, index=False),
        lambda path: download(two()).reset_index().to_csv(path),
        lambda path: download(two()).rename_axis([None, None], axis=1).to_csv(path),
        lambda path: to_parquet(download(two()), path.rename(path.with_suffix(".parquet"))),
        lambda path: to_parquet(
            download(two(), by="ticker"), path.rename(path.with_suffix(".parquet"))
        ),
    ],
    ids=["columns", "by-ticker", "reset", "reset-counted", "unnamed", "parquet", "parquet-by"],
)
def test_a_download_of_several_tickers_is_read_whatever_its_shape(
    tmp_path: Path, written: Callable[[Path], None]
) -> None:
    (tmp_path / "prices.csv").touch()
    written(tmp_path / "prices.csv")
    (path,) = files_in(tmp_path)
    read = {each.ticker: of(each) for each in series_in(path, ANY)}

    assert {ticker: prices.frame.height for ticker, prices in read.items()} == {
        "ACME": ROWS,
        "BRK.B": len(bars(first=date(2024, 2, 1))),
    }
    assert read["ACME"].frame["close"].to_list() == bars()["Close"].to_list()
    assert {prices.form.adjusted for prices in read.values()} == {SPLITS_AND_DIVIDENDS}


def test_the_form_says_what_its_prices_are_adjusted_for(tmp_path: Path) -> None:
    path = tmp_path / "ACME.csv"
    for frame, adjusted in (
        (history(bars()), SPLITS_AND_DIVIDENDS),
        (history(bars()).assign(**{"Adj Close": 1.0}), SPLITS),
        (download({"ACME": bars().assign(**{"Adj Close": 1.0})}), SPLITS),
        (bars().assign(**{"Adj Close": 1.0}), SPLITS),
    ):
        frame.to_csv(path)
        (series,) = series_in(path, ANY)
        assert (series.opened.says_adjusted, of(series).form.adjusted) == (True, adjusted)
    bars().to_csv(path)
    assert not series_in(path, ANY)[0].opened.says_adjusted, "asked for"
    (series,) = series_in(path, ImportForm(vendor="stooq"))
    assert of(series).form.adjusted == SPLITS_AND_DIVIDENDS


def test_a_list_of_several_tickers_is_parted(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    download(two()).stack(future_stack=True).dropna().to_csv(path)

    assert {each.ticker: of(each).frame.height for each in series_in(path, ANY)} == {
        "ACME": ROWS,
        "BRK.B": len(bars(first=date(2024, 2, 1))),
    }


def test_columns_that_are_named_are_read_and_all_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "ACME.csv"
    path.write_text(
        "Día;Apertura;Máximo;Mínimo;Último;Vol;Nota\n02/01/2024;1,5;1,6;1,4;1,55;1.000;x\n",
        encoding="cp1252",
    )
    named = {
        "date": "Día",
        "open": "apertura",
        "high": "Máximo",
        "low": "Mínimo",
        "close": "Último",
    }
    wanted = ImportForm(columns={**named, "volume": "Vol"}, month_first=False)
    (series,) = series_in(path, wanted)

    assert of(series).frame.row(0)[:6] == (date(2024, 1, 2), 1.5, 1.6, 1.4, 1.55, 1000)
    assert [*series.opened.unused] == ["nota"]


@pytest.mark.parametrize(
    ("name", "ticker"),
    [
        ("ACME.csv", "ACME"),
        ("ACME (1).csv", "ACME"),
        ("BRK-B.csv", "BRK.B"),
        ("daily_adjusted_ACME.csv", "ACME"),
        ("aapl_us_d.csv", "AAPL"),
        ("aapl.us.txt", "AAPL"),
        ("vod.uk.txt", "VOD.L"),
        ("sap.de.csv", "SAP.DE"),
        ("0700.HK.csv", "0700.HK"),
        ("ACME_2020-01-01_2024-01-01.csv", "ACME"),
        ("ACME Historical Data.csv", "ACME"),
        ("HistoricalData_1710700000.csv", ""),
        ("prices.csv", ""),
        ("Acme Corp Stock Price History.csv", ""),
        ("^GSPC.csv", ""),
    ],
)
def test_a_files_name_says_the_ticker_or_it_is_asked_for(name: str, ticker: str) -> None:
    assert ticker_in_name(Path(name)) == ticker


def test_lean_prices_are_raw_and_its_factors_become_dividends_and_splits(tmp_path: Path) -> None:
    frame = bars()
    first, second = frame.index[9], frame.index[19]
    close = frame["Close"].iloc[9]
    factors = (
        f"{first:%Y%m%d},{(close - 0.5) / close},0.25,{close}\n"
        f"{second:%Y%m%d},1,0.25,{frame['Close'].iloc[19]}\n20501231,1,1,0\n"
    )
    folder = lean_folder(tmp_path / "data", frame, "acme", factors)
    (path,) = files_in(folder)
    (series,) = series_in(path, ANY)
    read = of(series).frame

    assert (series.ticker, of(series).form.adjusted) == ("ACME", "")
    assert read["close"].to_list() == frame["Close"].to_list()
    acted = read.filter((pl.col("dividend") != 0) | (pl.col("split_factor") != 1))
    assert acted.select("date", "dividend", "split_factor").rows() == [
        (frame.index[10].date(), 0.5, 1.0),
        (frame.index[20].date(), 0.0, 4.0),
    ]


def test_factor_files_of_lean_may_be_packed_in_a_dated_zip_file(tmp_path: Path) -> None:
    frame = bars()
    last = "20501231,1,1\n"
    folder = lean_folder(tmp_path / "data", frame, "acme", None)
    (path,) = files_in(folder)
    packed = folder / "equity" / "usa" / "factor_files"
    packed.mkdir()
    for day, factors in (
        ("20240101", last),
        ("20240301", f"{frame.index[9]:%Y%m%d},1,0.5\n{last}"),
    ):
        with zipfile.ZipFile(packed / f"factor_files_{day}.zip", "w") as archive:
            archive.writestr("acme.csv", factors)
            archive.writestr("other.csv", last)
    read = of(series_in(path, ANY)[0]).frame
    assert read.filter(pl.col("split_factor") != 1)["split_factor"].to_list() == [2.0]

    with zipfile.ZipFile(packed / "factor_files_20240401.zip", "w") as archive:
        archive.writestr("other.csv", last)
    assert "no dividends and no splits" in series_in(path, ANY)[0].notes[0]
    with zipfile.ZipFile(
        packed / "factor_files_20240501.zip", "w", zipfile.ZIP_DEFLATED
    ) as archive:
        archive.writestr("acme.csv", b"0" * 70_000_000)
    with pytest.raises(BadFile, match=r"20240501.zip.*unpacks to more than 64 MB"):
        series_in(path, ANY)
    (packed / "factor_files_20240501.zip").write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(BadFile, match=r"20240501.zip"):
        series_in(path, ANY)


def test_lean_without_a_factor_file_says_so_and_a_zip_bomb_is_bounded(tmp_path: Path) -> None:
    folder = lean_folder(tmp_path / "data", bars(), "acme", None)
    (path,) = files_in(folder)
    assert "no dividends and no splits" in series_in(path, ANY)[0].notes[0]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("acme.csv", b"0" * 70_000_000)
    with pytest.raises(BadFile, match="unpacks to more than 64 MB"):
        series_in(path, ANY)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.csv", "1")
    with pytest.raises(BadFile, match="unpack it"):
        series_in(path, ANY)
    path.write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(BadFile):
        series_in(path, ANY)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 9, "an Excel workbook; open it and save"),
        (b"PK\x03\x04....[Content_Types].xml", "an Excel workbook; open it and save"),
        (b"\x1f\x8b\x08", "no whole gzip file"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (f"{HEAD}\n45293,1,1,1,1,1\n".encode(), "the number of a day, as Excel counts"),
        (f"{HEAD}\n03/04/2024,1,1,1,1,1\n".encode(), "could be a day and a month"),
        (f"{HEAD}\n2024-01-06,1,1,1,1,1\n".encode(), "a weekend"),
        (b"Close,Price\n1,2\n", "no column date"),
        (b'{"Meta Data": {}}', "JSON, not CSV"),
        (b"Datetime,Open,High,Low,Close,Volume\n1,1,1,1,1,1\n", "bars within a day"),
        (b"", "no rows"),
        (b"\n\n", "no rows"),
        (
            f"sep=,\n{HEAD}\n2024-01-02,1,1,1,1,1\n2024-01-03,x,1,1,1,1\n".encode(),
            "line 4: open is",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(
    tmp_path: Path, body: bytes, why: str
) -> None:
    path = tmp_path / "ACME.csv"
    path.write_bytes(body)
    with pytest.raises(BadFile, match=why):
        of(series_in(path, ANY)[0])


def test_rows_without_prices_and_words_at_the_end_are_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "ACME.csv"
    path.write_text(
        f"{HEAD}\n2024-03-14,1,1,1,1,10\n2024-03-15,null,null,null,null,null\n\n"
        '"Data provided by Acme, all rights reserved."\n'
    )
    (series,) = series_in(path, ANY)
    assert (of(series).frame.height, of(series).empty) == (1, 1)
    assert series.notes == ["not read: 'Data provided by Acme, all rights reserved.'"]
    path.write_text(f"{HEAD}\n2024-03-14,1,1,1,1,10\n2024-03-15,null,1,1,1,1\n")
    with pytest.raises(BadFile, match="line 3: open is 'null'"):
        of(series_in(path, ANY)[0])


def imported(folder: Path, path: Path) -> list[str]:
    """Import all of a file; the rows of the past that it replaces."""
    replaced: list[str] = []
    for series in series_in(path, ANY):
        change = change_of(open_folder(folder), series.ticker, of(series))
        replaced += change.differing
        write_prices(change)
    return replaced


def test_a_later_download_is_joined_and_rows_that_differ_are_named(tmp_path: Path) -> None:
    folder, path = tmp_path / "data", tmp_path / "prices.csv"
    whole = bars()
    download({"ACME": whole.iloc[:40]}).to_csv(path)
    assert imported(folder, path) == []
    download({"ACME": whole.iloc[30:]}).to_csv(path)
    assert imported(folder, path) == []
    read = read_prices(folder / "ACME.csv")
    assert read.frame["close"].to_list() == whole["Close"].to_list()
    assert read.form.adjusted == SPLITS_AND_DIVIDENDS, "said also in the desk's own form"
    assert "adjusted for splits and dividends" in read.form.caveat

    changed = whole.copy()
    changed.iloc[3, 4] += 1
    download({"ACME": changed}).to_csv(path)
    assert imported(folder, path) == [f"{whole.index[3]:%Y-%m-%d}: volume 1003 becomes 1004"]
    assert not [*folder.glob("*partial*"), *folder.glob(".*")]


def test_raw_and_adjusted_prices_are_not_mixed(tmp_path: Path) -> None:
    folder, path = tmp_path / "data", tmp_path / "prices.csv"
    download({"ACME": bars()}).to_csv(path)
    imported(folder, path)
    bars().assign(**{"Adj Close": 1.0}).to_csv(tmp_path / "ACME.csv")
    with pytest.raises(BadFile, match="adjusted for splits and dividends, those of the import adj"):
        imported(folder, tmp_path / "ACME.csv")


@pytest.mark.slow
def test_a_folder_says_where_its_tickers_trade(tmp_path: Path) -> None:
    new = open_folder(tmp_path / "data")
    assert (new.place_of("ACME").exchange, new.place_of("ACME").source) == ("XNYS", "assumed")
    assert new.place_of("SAP.DE") == TradingPlace("XETR", "EUR", "the suffix")
    assert new.place_of("VOD.L").currency == "", "pence or pounds: asked for"
    places = {
        "ACME": TradingPlace("XNYS", "USD"),
        "VOD.L": TradingPlace("XLON", "GBX"),
        "ACM": TradingPlace("XTSE", "CAD"),
    }
    files = labels_for(new, places)
    assert 'exchange = "XNYS"' in files[tmp_path / "data" / "source.toml"]
    for path, text in files.items():
        write(path, text)
    bars().to_csv(tmp_path / "data" / "ACME.csv")
    there = open_folder(tmp_path / "data")
    for ticker, place in places.items():
        found = there.place_of(ticker)
        assert (found.exchange, found.currency) == (place.exchange, place.currency)
    assert labels_for(there, places) == {}
    with pytest.raises(BadFile, match=r"VOD\.L at XLON in GBX"):
        labels_for(there, {"VOD.L": TradingPlace("XLON", "GBP")})


def test_adjusted_prices_of_two_bases_are_not_joined(tmp_path: Path) -> None:
    folder, path, whole = tmp_path / "data", tmp_path / "prices.csv", bars()
    download({"ACME": whole.iloc[:40]}).to_csv(path)
    imported(folder, path)
    written = (folder / "ACME.csv").read_text()
    halved = whole.assign(**{n: whole[n] / 2 for n in ("Open", "High", "Low", "Close")})
    for later, why in (
        (halved.iloc[40:], "without a day in common"),
        (whole.iloc[40:], "without a day in common"),
        (halved.iloc[37:], "another base"),
        (halved.iloc[:39], "another base"),
    ):
        download({"ACME": later}).to_csv(path)
        with pytest.raises(BadFile, match=f"{why}.*download the whole history.*--out"):
            imported(folder, path)
        assert (folder / "ACME.csv").read_text() == written
    download({"ACME": halved}).to_csv(path)
    assert len(imported(folder, path)) == 40, "all older rows are replaced"


def test_cut_factors_of_lean_become_whole_splits(tmp_path: Path) -> None:
    frame = bars()
    first, second = frame.index[9], frame.index[19]
    factors = f"{first:%Y%m%d},1,0.0714286\n{second:%Y%m%d},1,0.142857\n20501231,1,1\n"
    (path,) = files_in(lean_folder(tmp_path / "data", frame, "acme", factors))
    read = of(series_in(path, ANY)[0]).frame
    assert [ratio for ratio in read["split_factor"] if ratio != 1] == [2.0, 7.0]


@pytest.mark.parametrize(
    ("head", "day", "is_noted"),
    [
        ("Date,Open,High,Low,Close,Volume", "2024-02-01 00:00:00-05:00", True),
        ("date,open,high,low,close,volume", "2024-02-01 00:00:00-05:00", True),
        ("Date,Open,High,Low,Close,Volume", "2024-02-01", True),
        ("date,open,high,low,close,volume", "2024-02-01", False),
        ("Date,Open,High,Low,Close,Volume,Dividend", "2024-02-01", False),
    ],
)
async def test_a_file_that_may_be_a_vendors_is_noted_by_check(
    tmp_path: Path, head: str, day: str, *, is_noted: bool
) -> None:
    (tmp_path / "ACME.csv").write_text(f"{head}\n{day},1,1,1,1,1{',' * head.count('Dividend')}\n")
    (file,) = [file async for file in checked_files(ReplayStore(tmp_path))]
    assert (file.refused, file.first) == ("", date(2024, 2, 1))
    assert ("`deskbus market import` settles it" in file.note) is is_noted
