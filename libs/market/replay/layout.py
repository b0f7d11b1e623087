"""The files of a replay directory: which there are, and what the directory says of itself.

None of prices or records is read here, so that whoever only describes the source loads little.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from libs.market.calendar import DEFAULT_EXCHANGE
from libs.market.errors import BadReplayData, BadReplayDir
from libs.market.replay.listings import BUNDLED_LISTINGS
from libs.runtime.own_text import Unreadable, text_in, toml_in

SUFFIXES = (".csv", ".parquet")
TICKERS_MAX = 5_000
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
    raise BadReplayData(
        Path(BUNDLED_FILE),
        None,
        "the bundled prices are not installed",
        "install bokeh-sampledata, or point DESKBUS_REPLAY_DIR at a directory of prices",
    )


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
            directory, "not a directory", "set DESKBUS_REPLAY_DIR to one, or unset it"
        )
    prices: dict[str, Path] = {}
    records: dict[str, Path] = {}
    for path in sorted(directory.iterdir()):
        if path.suffix not in SUFFIXES:
            continue
        name = path.name.removesuffix(path.suffix)
        paths, key = (records, name) if name in RECORDS else (prices, name.upper())
        if key in paths:
            raise BadReplayData(
                path, None, f"{key} is also in {paths[key].name}", "keep one of the two"
            )
        paths[key] = path
    if not prices or len(prices) > TICKERS_MAX:
        raise BadReplayDir(
            directory,
            f"{len(prices)} files of prices where 1 to {TICKERS_MAX} are allowed",
            "put one CSV or Parquet file a ticker into it",
        )
    settings = _settings(directory)
    return Layout(
        name=str(settings.get("name", directory.name)),
        description=str(settings.get("description", "")),
        synthetic=settings.get("synthetic", False) is True,
        currency=str(settings.get("currency", DEFAULT_CURRENCY)),
        exchange=str(settings.get("exchange", DEFAULT_EXCHANGE)),
        prices=prices,
        records=records,
    )


def _settings(directory: Path) -> Mapping[str, object]:
    path = directory / LABEL_FILE
    if not path.exists():
        return {}
    try:
        settings = toml_in(text_in(path))
    except (Unreadable, OSError) as error:
        raise BadReplayData(path, None, str(error)[:160], "correct the file") from error
    allowed = {"name": str, "description": str, "synthetic": bool, "currency": str, "exchange": str}
    for key, value in settings.items():
        if not isinstance(value, allowed.get(key, ())):
            raise BadReplayData(
                path,
                None,
                f"{key[:40]} is unknown or of the wrong type",
                f"use {', '.join(allowed)}",
            )
    return settings
