"""The demo's market: the bundled prices of four companies up to its last days, with headlines that
are synthetic and say so."""

import asyncio
import shutil
from datetime import date
from pathlib import Path

import polars as pl

from libs.market.replay.files import ACTION_COLUMNS, BAR_COLUMNS
from libs.market.replay.layout import LABEL_FILE, SAMPLE_DIR
from libs.market.replay.store import ReplayStore

TICKERS = ("AAPL", "GOOG", "IBM", "MSFT")
"""Those of the bundled five that traded then."""
FIRST, LAST = date(2009, 6, 1), date(2010, 5, 26)
"""The year: up for two thirds of it, a fall in January, another from 6 May on."""
TODAY = date(2010, 5, 27)
"""The session of the decision that waits for a visitor."""
PRICES_UNTIL = date(2010, 6, 25)
"""Some weeks more, so that what is approved is filled, and a visitor can go on."""
HEADLINES = Path(__file__).parent / "headlines.csv"
LABEL = """\
name = "bokeh-sampledata"
description = "real daily prices of AAPL, GOOG, IBM and MSFT up to 2010-06-25, with figures of 13 \
filings; all headlines are synthetic, written for this demo"
"""


def write_market(folder: Path) -> None:
    """Make the folder a replay directory; what is there already stays."""
    if (folder / LABEL_FILE).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    store = ReplayStore()
    for ticker in TICKERS:
        bars = asyncio.run(store.bars(ticker)).select(*BAR_COLUMNS, *ACTION_COLUMNS)
        bars.filter(pl.col("date") <= PRICES_UNTIL).write_csv(folder / f"{ticker}.csv")
    described = asyncio.run(store.descriptions(LAST, store.tickers))
    rows = [{"ticker": ticker, **described[ticker]} for ticker in TICKERS]
    pl.DataFrame(rows).write_csv(folder / "sectors.csv")
    for kind in ("filings", "reported"):
        shutil.copyfile(SAMPLE_DIR / f"{kind}.csv", folder / f"{kind}.csv")
    shutil.copyfile(HEADLINES, folder / "news.csv")
    # Last: the label says that all of it is there.
    (folder / LABEL_FILE).write_text(LABEL)
