"""The files of a replay directory: which there are, and what the directory says of itself.

None of prices or records is read here, so that whoever only describes the source loads little.
"""

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from contracts.types import spelled
from libs.files.finding import FileFinding
from libs.market.calendar import DEFAULT_EXCHANGE
from libs.market.errors import BadReplayData, BadReplayDir
from libs.market.replay.listings import BUNDLED_LISTINGS
from libs.market.symbols import can_be_ticker, no_share
from libs.runtime.own_text import UnreadableFile, text_in, toml_in

SUFFIXES = (".csv.gz", ".csv", ".parquet")
OTHER_TABLES = frozenset({".xlsx", ".xls", ".ods", ".gz", ".zip", ".txt", ".tsv", ".pq"})
"""Suffixes of files that people bring data in, and that are not read."""
TICKERS_MAX = 5_000
ENTRIES_MAX = 20_000
"""Files and folders of a directory that are looked at."""
LABEL_FILE = "source.toml"
RECORDS = frozenset(
    {"sectors", "news", "fundamentals", "earnings", "filings", "reported", "fx"},
)
"""Files that are no ticker's prices, without their suffix."""
SAMPLE_DIR = Path(__file__).parents[1] / "filings" / "sample"
"""Figures and filings that come with the desk, beside the bundled prices."""
DEFAULT_CURRENCY = "USD"
BUNDLED_PACKAGE = "bokeh_sampledata"
BUNDLED_FILE = "_data/stocks.csv.gz"
BUNDLED_NAME = "bokeh-sampledata"
BUNDLED_DESCRIPTION = (
    "real daily prices of AAPL, FB, GOOG, IBM and MSFT, 2000-03-01 to 2013-03-01; "
    "splits and dividends recovered from the adjusted close; figures of 13 filings of AAPL, GOOG, "
    "IBM and MSFT, July 2009 to May 2010; no news or earnings dates"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The files, by ticker and by kind of records, and the name that the source goes by;
    `synthetic` marks generated prices. `bundled` is the one file of the bundled prices."""

    name: str
    description: str
    synthetic: bool
    currency: str
    exchange: str
    prices: Mapping[str, Path]
    records: Mapping[str, Path]
    bundled: Path | None = None
    doubled: Mapping[str, FileFinding] = field(default_factory=dict)
    """Tickers and kinds of records that two files are named after: neither is read."""
    strays: Sequence[FileFinding] = ()
    """Files that are ignored, though they look like data."""


def layout_of(directory: Path | None) -> Layout:
    """The files of a directory, or the bundled ones. Raises BadReplayData for a directory that is
    none or holds no prices."""
    return _bundled() if directory is None else _scan(directory)


def find_bundled() -> Path:
    """The path of the price file inside bokeh-sampledata, found without importing the package."""
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / BUNDLED_FILE
        if path.is_file():
            return path
    remedy = "install bokeh-sampledata, or point DESKBUS_MARKET_REPLAY_DIR at a directory of prices"
    raise BadReplayData(FileFinding(BUNDLED_FILE, "the bundled prices are not installed", remedy))


def _bundled() -> Layout:
    path = find_bundled()
    return Layout(
        name=BUNDLED_NAME,
        description=BUNDLED_DESCRIPTION,
        synthetic=False,
        currency=DEFAULT_CURRENCY,
        exchange=DEFAULT_EXCHANGE,
        prices=dict.fromkeys(BUNDLED_LISTINGS, path),
        records={kind: SAMPLE_DIR / f"{kind}.csv" for kind in ("filings", "reported")},
        bundled=path,
    )


def _scan(directory: Path) -> Layout:
    if not directory.is_dir():
        raise BadReplayDir(
            directory, "not a directory", "set DESKBUS_MARKET_REPLAY_DIR to one, or unset it"
        )
    prices: dict[str, Path] = {}
    records: dict[str, Path] = {}
    doubled: dict[str, FileFinding] = {}
    strays: list[FileFinding] = []
    for path in entries(directory):
        suffix = next((end for end in SUFFIXES if path.name.lower().endswith(end)), "")
        if not suffix:
            if path.suffix.lower() in OTHER_TABLES:
                strays.append(FileFinding(path.name, "not CSV or Parquet", "it is ignored"))
            continue
        stem = path.name[: -len(suffix)]
        is_record = stem.lower() in RECORDS
        if why := _stray(path, stem, is_record=is_record):
            strays.append(FileFinding(path.name, why, "it is ignored"))
            continue
        paths, key = (records, stem.lower()) if is_record else (prices, spelled(stem))
        if key in paths:
            remedy = "keep one of the two"
            doubled[key] = FileFinding(path.name, f"{key} is also in {paths[key].name}", remedy)
        paths[key] = path
    if not prices or len(prices) > TICKERS_MAX:
        ignored = f", {len(strays)} ignored, as {strays[0]}" if strays else ""
        raise BadReplayDir(
            directory,
            f"{len(prices)} files of prices where 1 to {TICKERS_MAX} are allowed{ignored}",
            "put one CSV or Parquet file a ticker into it",
        )
    settings = label_in(directory)
    return Layout(
        name=str(settings.get("name", directory.name)),
        description=str(settings.get("description", "")),
        synthetic=settings.get("synthetic", False) is True,
        currency=str(settings.get("currency", DEFAULT_CURRENCY)),
        exchange=str(settings.get("exchange", DEFAULT_EXCHANGE)),
        prices=prices,
        records=records,
        doubled=doubled,
        strays=strays,
    )


def entries(directory: Path) -> Sequence[Path]:
    """The entries of the directory, by name. Raises BadReplayDir where it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in islice(entries, ENTRIES_MAX + 1)]
    except OSError as error:
        why = f"it cannot be listed ({error.strerror})"
        raise BadReplayDir(directory, why, "make it readable") from error
    if len(names) > ENTRIES_MAX:
        what = f"more than {ENTRIES_MAX:,} files in it, the limit"
        raise BadReplayDir(directory, what, "move other files elsewhere")
    return [directory / name for name in sorted(names)]


def _stray(path: Path, stem: str, *, is_record: bool) -> str:
    """Why a file with the suffix of data is none; "" where it is."""
    if path.name.startswith("."):
        return "a hidden file"
    if not path.is_file():
        return "a link to nothing" if path.is_symlink() else "no file"
    if is_record:
        return ""
    if not can_be_ticker(spelled(stem)):
        return "its name is not a ticker"
    kind = no_share(spelled(stem))
    return f"its name is {kind}" if kind else ""


def label_in(directory: Path) -> Mapping[str, object]:
    """The settings of a directory's source.toml, {} without one. Raises BadReplayData."""
    path = directory / LABEL_FILE
    if not path.exists():
        return {}
    try:
        settings = toml_in(text_in(path))
    except (UnreadableFile, OSError) as error:
        raise BadReplayData(FileFinding(path.name, str(error)[:160], "correct the file")) from error
    allowed = {"name": str, "description": str, "synthetic": bool, "currency": str, "exchange": str}
    for key, value in settings.items():
        if not isinstance(value, allowed.get(key, ())):
            what = f"{key[:40]} is unknown or of the wrong type"
            raise BadReplayData(FileFinding(path.name, what, f"use {', '.join(allowed)}"))
    return settings
