"""The way from yfinance's downloads and a broker's export to a decision on them: at most six
commands, each printed by the one before."""

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pandas as pd
import pytest

from libs.market.replay.files import read_bundled
from libs.market.replay.layout import find_bundled
from tests.fakes.vendor_files import download
from tests.integration.desk.command_line import CommandLine, Said

SINCE = date(2010, 1, 4)
TICKERS = ("AAPL", "IBM", "MSFT")
COMMANDS_MAX = 6
EXPORT = """"Positions for account Individual ...000 as of 04:48 PM ET, 2013/03/01"

"Symbol","Description","Qty (Quantity)","Price","Mkt Val (Market Value)","Cost Basis","Type"
"AAPL","APPLE INC","10","430.47","$4,304.70","$2,140.10","Equity"
"IBM","INTL BUSINESS MACHINES","4.5","202.91","$913.10","$0.00","Equity"
"Cash & Cash Investments","--","--","--","$50,000.00","--","Cash and Money Market"
"Account Total","--","--","--","$55,217.80","$2,140.10","--"
"""


def downloaded(ticker: str) -> pd.DataFrame:
    bars = read_bundled(find_bundled())[ticker]
    bars = bars.filter(bars["date"] >= SINCE)
    columns = {name.title(): bars[name].to_list() for name in ("open", "high", "low", "close")}
    index = pd.DatetimeIndex(bars["date"].to_list(), name="Date")
    return pd.DataFrame({**columns, "Volume": bars["volume"].to_list()}, index=index)


def printed(said: Said) -> str:
    """The command that an output ends with, as it is typed."""
    return re.findall(r"(?:next: |^  )deskbus (.*?)(?:    .*)?$", said.err, re.MULTILINE)[-1]


@pytest.fixture
def deskbus(make_open_dir: Callable[[], Path], tmp_path: Path) -> CommandLine:
    return CommandLine(make_open_dir() / "desk", tmp_path)


def test_downloads_and_an_export_become_a_decision_in_six_commands(deskbus: CommandLine) -> None:
    download({ticker: downloaded(ticker) for ticker in TICKERS}).to_csv(deskbus.cwd / "prices.csv")
    (deskbus.cwd / "schwab.csv").write_text(EXPORT)
    typed = ["market import prices.csv"]

    def run() -> Said:
        said = deskbus(typed[-1])
        assert said.code == 0, said.err
        return said

    typed.append(printed(run()))
    typed.append(printed(run()))
    assert typed[-1] == "up --detach"
    try:
        (begun,) = re.findall(r"next: deskbus (portfolio import) FILE", run().err)
        typed.append(f"{begun} schwab.csv --opened-on {SINCE}")
        typed.append(printed(run()))
        opened = run()
        assert "account main is open" in opened.out
        typed.append(printed(opened))
        decided = run()
    finally:
        deskbus("down")
    assert len(typed) <= COMMANDS_MAX
    assert "Decision of Fri 2013-03-01  completed" in decided.out
    assert "4.5 shares held already" in " ".join(decided.out.split())
