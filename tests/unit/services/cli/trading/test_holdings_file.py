"""A file of holdings: what is read, and what is told line by line instead of guessed."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from contracts.capital import HOLDINGS_MAX
from services.cli.shell.problem import Problem
from services.cli.trading.holdings_file import FILE_BYTES_MAX, HoldingsFile, read_holdings

HEAD = "ticker,quantity,cost,opened_on"


def read(tmp_path: Path, text: str | bytes) -> HoldingsFile:
    path = tmp_path / "holdings.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_holdings(path)


def test_a_file_is_read_whatever_the_order_and_spelling_of_its_columns(tmp_path: Path) -> None:
    text = '\ufeffOpened On, Ticker ,COST,quantity,note\r\n2010-03-01,aapl,201.35,40,"a, b"\r\n\r\n'
    found = read(tmp_path, text)

    (line,) = found.lines
    assert (line.line, line.ticker, line.quantity) == (2, "AAPL", Decimal(40))
    assert (line.cost, line.opened_on, line.currency) == (Decimal("201.35"), date(2010, 3, 1), None)
    assert (found.findings, found.unused) == ([], ["note"])


def test_the_currency_may_be_stated(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD},currency\nSAP,5,40,2010-03-01,eur\nIBM,5,40,2010-03-01,\n")

    assert [each.currency for each in found.lines] == ["EUR", None]


@pytest.mark.parametrize(
    ("row", "field", "told"),
    [
        (",10,20,2010-03-01", "ticker", "ticker is missing"),
        ("AAPL,,20,2010-03-01", "quantity", "quantity is missing: how many shares"),
        ("AAPL,10,,2010-03-01", "cost", "cost is missing: what one share cost"),
        ("AAPL,10,20,", "opened_on", "opened_on is missing: since when"),
        ("AAPL,ten,20,2010-03-01", "quantity", "no number"),
        ("AAPL,-10,20,2010-03-01", "quantity", "no short positions"),
        ("AAPL,0,20,2010-03-01", "quantity", "more than 0"),
        ("AAPL,nan,20,2010-03-01", "quantity", "more than 0"),
        ("AAPL,10,inf,2010-03-01", "cost", "more than 0"),
        ("AAPL,10,20,03/01/2010", "opened_on", "write YYYY-MM-DD"),
        ("AAPL,10,20,2010-02-30", "opened_on", "no date"),
        ("AAPL,10,20", "", "3 cells under a header of 4"),
        ("AAPL,1,000,20,2010-03-01", "", "write numbers without commas"),
        ('"=cmd()",10,20,2010-03-01', "", "ticker"),
        ("AAPL,1e30,20,2010-03-01", "", "quantity"),
        ("AAPL,10,20.1234567,2010-03-01", "", "cost"),
    ],
)
def test_a_line_that_cannot_be_used_is_told_and_the_others_are_read(
    tmp_path: Path, row: str, field: str, told: str
) -> None:
    found = read(tmp_path, f"{HEAD}\n{row}\nIBM,5,40,2010-03-01\n")

    assert [each.ticker for each in found.lines] == ["IBM"]
    assert {(each.line, each.field) for each in found.findings} == {(2, field)}
    assert told in found.findings[0].message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no column ticker and no column quantity"),
        ("AAPL,10,20,2010-03-01\n", "its first line has no column ticker"),
        ("ticker,quantity,opened_on\nAAPL,10,2010-03-01\n", "no column cost"),
        ("ticker;quantity;cost;opened_on\n", "separated by ;"),
        (f"{HEAD},cost\n", "the column cost stands in it twice"),
        (f"{HEAD}\n\n", "no line below"),
        (f'{HEAD}\n"AAPL,1', "line 2 is no CSV"),
        (f"{HEAD}\n" + "AAPL,1,1,2010-03-01\n" * (HOLDINGS_MAX + 1), "at most 200"),
        (b"\xff\xfe" + HEAD.encode("utf-16-le"), "not UTF-8"),
        (b"a" * (FILE_BYTES_MAX + 1), "larger than 256,000 bytes"),
    ],
)
def test_what_is_no_file_of_holdings_is_refused_with_an_example(
    tmp_path: Path, text: str | bytes, told: str
) -> None:
    with pytest.raises(Problem, match="holdings") as refused:
        read(tmp_path, text)
    assert told in refused.value.message
    assert HEAD in refused.value.hint


def test_a_file_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot be read"):
        read_holdings(tmp_path / "none.csv")
