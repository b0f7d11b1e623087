"""A file of holdings: what is read, and what is told line by line instead of guessed."""

import csv
import tomllib
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from contracts.capital import HOLDINGS_MAX
from services.cli.shell.problem import CliProblem
from services.cli.trading.capital import import_file
from services.cli.trading.holdings_file import FILE_BYTES_MAX, HoldingsFile, Reading, read_holdings

HEAD = "ticker,quantity,cost,opened_on"


def read(tmp_path: Path, text: str | bytes, **how: Any) -> HoldingsFile:
    path = tmp_path / "holdings.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_holdings(path, Reading(**how))


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
        ("AAPL,10,,2010-03-01", "cost", "cost is missing: cost per share"),
        ("AAPL,10,20,", "opened_on", "opened_on is missing: purchase date"),
        ("AAPL,ten,20,2010-03-01", "quantity", "not a number"),
        ("AAPL,-10,20,2010-03-01", "quantity", "no short positions"),
        ("AAPL,0,20,2010-03-01", "quantity", "more than 0"),
        ("AAPL,nan,20,2010-03-01", "quantity", "not a number"),
        ("AAPL,10,inf,2010-03-01", "cost", "not a number"),
        ("AAPL,10,20,03/01/2010", "opened_on", "write dates as YYYY-MM-DD"),
        ("VOD.L,10,70.12p,2010-03-02", "cost", "write the number alone, and GBX as its currency"),
        ("AAPL,1_000,20,2010-03-01", "quantity", "not a number"),
        ("AAPL,10,20,2010-02-30", "opened_on", "no date"),
        ("AAPL,10,20", "", "3 cells under a header of 4"),
        ("AAPL,1,000,20,2010-03-01", "", "write numbers without commas"),
        ('"=cmd()",10,20,2010-03-01', "", "ticker"),
        ("AAPL,1e30,20,2010-03-01", "quantity", "too large"),
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
        (f"{HEAD},cost\n", "the column cost appears twice"),
        (f"{HEAD}\n\n", "no line below"),
        (f'{HEAD}\n"AAPL,1', "line 2: no CSV"),
        (f"{HEAD}\n" + "AAPL,1,1,2010-03-01\n" * (HOLDINGS_MAX + 1), "at most 200"),
        (b"\xff" + HEAD.encode(), "no column ticker"),
        (b"a" * (FILE_BYTES_MAX + 1), "larger than 256,000 bytes"),
    ],
)
def test_what_is_no_file_of_holdings_is_refused_with_an_example(
    tmp_path: Path, text: str | bytes, told: str
) -> None:
    with pytest.raises(CliProblem, match="holdings") as refused:
        read(tmp_path, text)
    assert told in refused.value.message
    assert HEAD in refused.value.hint


def test_a_file_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(CliProblem, match="cannot be read"):
        read_holdings(tmp_path / "none.csv")


def test_lots_of_one_share_are_one_position_at_average_cost(tmp_path: Path) -> None:
    rows = "AAPL,10,20,2010-03-01\nIBM,1,9,2010-03-01\nAAPL,30,24,2009-03-02\n"
    found = read(tmp_path, f"{HEAD}\n{rows}")

    assert [(it.ticker, it.quantity, it.cost) for it in found.lines] == [
        ("AAPL", Decimal(40), Decimal(23)),
        ("IBM", Decimal(1), Decimal(9)),
    ]
    assert found.lines[0].opened_on == date(2009, 3, 2)
    assert found.notes == ["AAPL: 2 lots as one, at average cost"]


def test_lots_in_two_currencies_are_refused(tmp_path: Path) -> None:
    rows = "SAP,10,20,2010-03-01,EUR\nSAP,10,20,2010-03-01,USD\n"
    found = read(tmp_path, f"{HEAD},currency\n{rows}")

    assert not found.lines
    assert "the lots of SAP are in several currencies" in found.findings[0].message


def test_a_european_file_is_read(tmp_path: Path) -> None:
    text = "Symbol;Qty;Avg Price;Open Date\nSAP;1.000;20,55;01.03.2010\n"
    (line,) = read(tmp_path, text).lines

    assert (line.quantity, line.cost) == (Decimal(1000), Decimal("20.55"))
    assert line.opened_on == date(2010, 3, 1)


def test_trades_are_netted_and_an_action_that_is_not_known_is_refused(tmp_path: Path) -> None:
    head = "Action,Time,Ticker,No. of shares,Price / share,Currency (Price / share)\n"
    trades = (
        "Market buy,2024-01-03 14:30:05.123,ACME,10,20,USD\n"
        "Deposit,2024-01-02 09:00:00,,,,\n"
        "Limit buy,2024-02-01 15:00:00,ACME,10,30,USD\n"
        "Market sell,2024-03-01 15:00:00,ACME,5,40,USD\n"
        "Market buy,2024-01-04 15:00:00,GONE,5,40,USD\n"
        "Market sell,2024-01-05 15:00:00,GONE,5,41,USD\n"
    )
    (line,) = read(tmp_path, head + trades).lines
    assert (line.ticker, line.quantity, line.cost) == ("ACME", Decimal(15), Decimal(25))
    assert (line.opened_on, line.currency) == (date(2024, 1, 3), "USD")
    with pytest.raises(CliProblem, match="the action 'Stock split open'"):
        read(tmp_path, f"{head}{trades}Stock split open,2024-04-01 15:00:00,ACME,15,20,USD\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ticker;quantity;cost;opened_on\nAAPL;10;51,255;2009-03-02\n", "could part thousands"),
        ("Symbol,Qty,Shares,Avg Cost\nAAPL,10,20,150\n", "the column quantity appears twice"),
        ("Open Positions,Data\nOpen Positions\n", "no column ticker"),
        (
            (
                "Action,Time,Ticker,No. of shares,Price / share\n"
                "Market buy,2024-01-03 10:00:00,ACME,1,20\n"
                "Market sell,2024-01-04 10:00:00,ACME,2,20\n"
            ),
            "more of ACME is sold than was bought",
        ),
        (
            "Action,Time,Ticker,No. of shares,Price / share\nMarket buy,2024-01-03\n",
            "2 cells under a header of 5",
        ),
        (
            (
                "Action,Time,Ticker,No. of shares,Price / share,Currency (Price / share)\n"
                "Market buy,2024-01-03 10:00:00,VOD,1,70,GBX\n"
                "Market buy,2024-01-04 10:00:00,VOD,1,0.9,GBP\n"
            ),
            "in another currency",
        ),
    ],
)
def test_what_could_mean_two_things_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CliProblem) as refused:
        read(tmp_path, text)
    assert told in refused.value.message


def test_no_position_is_lost_and_no_cash_is_made_up(tmp_path: Path) -> None:
    rows = "CASH,100,60.25,2020-01-02\nMSFT,,,\n"
    found = read(tmp_path, f"{HEAD}\n{rows}")
    assert ([it.ticker for it in found.lines], found.cash) == (["CASH"], None)
    assert {(each.line, each.field) for each in found.findings} == {
        (3, "quantity"),
        (3, "cost"),
        (3, "opened_on"),
    }


def test_cash_is_read_as_the_files_numbers_are(tmp_path: Path) -> None:
    head = "Symbol;Qty;Avg Cost;Market Value;Open Date\n"
    text = f"{head}SAP;10;150,25;1.502,50;01.03.2010\nCash;;;1.234;\n"
    assert read(tmp_path, text).cash == Decimal(1234)
    assert read(tmp_path, f"{text}Cash;;;USD 900;\n").cash is None, "asked for instead"


def test_a_fraction_is_kept_to_six_places_and_what_is_cut_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}\nAAPL,0.5,20,2010-03-01\nMSFT,1.23456789,20,2010-03-01\n")
    assert [it.quantity for it in found.lines] == [Decimal("0.5"), Decimal("1.234567")]
    assert found.notes == ["MSFT: 1.23456789 shares as 1.234567: the books use six decimals"]


def test_spellings_of_a_share_class_are_one_position(tmp_path: Path) -> None:
    rows = "BRK.B,10,200,2010-03-01\nBRK/B,10,220,2010-03-01\n"
    (line,) = read(tmp_path, f"{HEAD}\n{rows}").lines
    assert (line.ticker, line.quantity, line.cost) == ("BRK.B", Decimal(20), Decimal(210))


CASES = Path(__file__).parents[4] / "data" / "own_files"
EXPECTED = tomllib.loads((CASES / "EXPECT.toml").read_text())["holdings"]


@pytest.mark.parametrize(("name", "expected"), EXPECTED.items(), ids=EXPECTED)
def test_a_brokers_export_is_read_or_asks_one_question(name: str, expected: dict[str, Any]) -> None:
    path = CASES / "holdings" / name
    opened_on = expected.get("opened_on")
    if opened_on or "asks" in expected:
        (question,) = read_holdings(path).findings
        assert expected.get("asks", "--opened-on") in question.message
    found = read_holdings(path, Reading(opened_on=opened_on))
    if opened_on or "asks" not in expected:
        read_lines = [[it.ticker, str(it.quantity), str(it.cost)] for it in found.lines]
        assert read_lines == expected["lines"]
    assert str(found.cash or "") == expected.get("cash", "")


def positions(found: HoldingsFile) -> list[tuple[str, str, str]]:
    assert not found.findings
    return [(it.ticker, f"{it.quantity.normalize():f}", str(it.cost)) for it in found.lines]


DAY = {"opened_on": date(2024, 3, 15)}
FIDELITY = """\ufeffAccount Number,Account Name,Symbol,Description,Quantity,Last Price,\
Last Price Change,Current Value,Today's Gain/Loss Dollar,Percent Of Account,Cost Basis Total,\
Average Cost Basis,Type
Z1,Individual,SPAXX**,HELD IN MONEY MARKET,,,,$1250.50,,10.00%,,,Cash,
Z1,Individual,ACME,ACME INC,10.5,$21.44,-$0.35,"$1,225.12",,80%,"$1,210.00",$115.24,Margin,
Z2,Roth IRA,ACME,ACME INC,4.5,$21.44,-$0.35,$96.48,,10%,$90.00,$20.00,Cash,
Z1,Individual,Pending Activity,,,,,-$100.00,,,,,

"The data and information in this spreadsheet is provided to you solely for your use."
"Date downloaded Mar-15-2024 4:30 p.m ET"
"""
ROBINHOOD = """"Activity Date","Process Date","Settle Date","Instrument","Description",\
"Trans Code","Quantity","Price","Amount"
"3/15/2024","3/15/2024","3/18/2024","ACME","Acme Inc
CUSIP: 000000000","Sell","5","$40.00","$200.00"
"2/1/2024","2/1/2024","2/5/2024","ACME","Acme Inc","Buy","10","$30.00","($300.00)"
"1/3/2024","1/3/2024","1/5/2024","ACME","Acme Inc","Buy","10","$20.00","($200.00)"
"1/2/2024","1/2/2024","1/2/2024","","ACH Deposit","ACH","","","$900.00"

"","","","","","","","","","The data provided is for informational purposes only."
"""
DEGIRO = """Datum,Tijd,Product,ISIN,Beurs,Uitvoeringsplaats,Aantal,Koers,,Lokale waarde,,Waarde,,\
Wisselkoers,Transactiekosten,,Totaal,,Order ID
15-03-2024,10:30,ACME NV,NL0000000001,EAM,XAMS,-5,"40,00",EUR,"200,00",EUR,"200,00",EUR,,"-2,00",\
EUR,"198,00",EUR,a
15-03-2024,09:30,ACME NV,NL0000000001,EAM,XAMS,10,"30,50",EUR,"-305,00",EUR,"-305,00",EUR,,"-2,00",\
EUR,"-307,00",EUR,b
"""
IBKR = """\ufeffStatement,Header,Field Name,Field Value
Account Information,Data,Base Currency,USD
Open Positions,Header,DataDiscriminator,Asset Category,Currency,Symbol,Quantity,Cost Price
Open Positions,Data,Summary,Stocks,USD,ACME,"1,000",20.00
Open Positions,Data,Lot,Stocks,USD,ACME,"1,000",20.00
Open Positions,Total,,Stocks,USD,,,
Open Positions,Header,DataDiscriminator,Asset Category,Currency,Symbol,Mult,Quantity,Cost Price
Open Positions,Data,Summary,Equity and Index Options,USD,ACME 17JAN25 25 C,100,2,1.50
Cash Report,Header,Currency Summary,Currency,Total
Cash Report,Data,Ending Cash,Base Currency Summary,"1,234.5"
Cash Report,Data,Ending Cash,EUR,100
Cash Report,Data,Ending Cash,USD,1125
"""


def test_fidelitys_positions_and_money_market_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, FIDELITY, **DAY)
    assert positions(found) == [("ACME", "15", "86.668000")]
    assert found.cash == Decimal("1250.50")
    notes = " | ".join(found.notes)
    for words in ("untested", "Pending Activity -$100.00 is not counted", "2 accounts"):
        assert words in notes


def test_robinhoods_trades_become_positions_newest_first(tmp_path: Path) -> None:
    found = read(tmp_path, ROBINHOOD)
    assert positions(found) == [("ACME", "15", "25")]
    assert found.lines[0].opened_on == date(2024, 1, 3)
    notes = " | ".join(found.notes)
    for words in ("untested", "at average cost", "splits are not known"):
        assert words in notes
    split = ROBINHOOD.replace('"Sell","5","$40.00"', '"SPL","5",""')
    with pytest.raises(CliProblem, match="the action 'SPL' is unknown and may change"):
        read(tmp_path, split)


def test_degiros_trades_have_isins_that_are_asked_for(tmp_path: Path) -> None:
    (question,) = read(tmp_path, DEGIRO).findings
    assert "NL0000000001 ('ACME NV') is an ISIN: say its ticker with --ticker" in question.message
    found = read(tmp_path, DEGIRO, tickers={"NL0000000001": "ACME.AS"})
    assert positions(found) == [("ACME.AS", "5", "30.5")]
    assert (found.lines[0].currency, found.lines[0].opened_on) == ("EUR", date(2024, 3, 15))
    assert "dates are read day first, as 15-03-2024" in found.notes


def test_a_statement_names_its_options_and_has_its_cash(tmp_path: Path) -> None:
    found = read(tmp_path, IBKR, **DAY)
    (finding,) = found.findings
    assert "is an option, and the desk holds only shares: leave it out" in finding.message
    found = read(tmp_path, IBKR, **DAY, is_shares_only=True)
    assert positions(found) == [("ACME", "1000", "20")]
    assert (found.cash, found.cash_currency) == (Decimal("1234.5"), "USD")
    assert "left out: 'ACME 17JAN25 25 C', an option (line 8)" in found.notes


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("ACME,-10,20,Equity", "no short positions"),
        ("BTC-USD,1,20,Cryptocurrency", "is Cryptocurrency, and the desk holds only shares"),
        ("BTC-USD,1,20,", "is a crypto "),
        ("-ACME240119C150,1,20,", "is an option"),
        ("ACME  240119C00150000,1,20,", "is an option"),
        ("ACME 01/19/2024 150.00 C,1,20,Option", "is an option"),
        ("ESH4,1,20,Futures", "is Futures"),
        ("US912828,1,20,Fixed Income", "is Fixed Income"),
        ("ACME,1,n/a,Equity", "cost is 'n/a', not a number"),
    ],
)
def test_what_is_no_share_is_refused_by_name(tmp_path: Path, row: str, why: str) -> None:
    found = read(tmp_path, f"Symbol,Quantity,Cost Price,Asset Class\n{row}\n", **DAY)
    assert why in found.findings[0].message


def test_columns_may_be_named_and_a_gift_costs_nothing(tmp_path: Path) -> None:
    text = "Wertpapier;St\u00fcck;Einstand;Kauf\nACME;1,5;0;03/04/2024\nOTHR;2;1,25;\u00e9\n"
    named = {
        "ticker": "wertpapier",
        "quantity": "ST\u00dcCK",
        "cost": "Einstand",
        "opened_on": "Kauf",
    }
    found = read(tmp_path, text.encode("cp1252"), columns=named, month_first=False)
    assert [(it.ticker, it.quantity, it.cost) for it in found.lines] == [
        ("ACME", Decimal("1.5"), 0)
    ]
    assert found.lines[0].opened_on == date(2024, 4, 3)
    (asked, _) = read(tmp_path, text.encode("utf-16"), columns=named).findings
    assert "--dates day-first" in asked.message


def test_dates_are_read_in_the_order_that_they_say_themselves(tmp_path: Path) -> None:
    rows = "AAPL,1,1,03/04/2010\nIBM,1,1,03/25/2010\n"
    found = read(tmp_path, f"{HEAD}\n{rows}")
    assert found.lines[0].opened_on == date(2010, 3, 4)
    assert found.notes == ["dates are read month first, as 03/04/2010"]


def test_cash_in_several_currencies_is_asked_for(tmp_path: Path) -> None:
    head = "Symbol,Quantity,Cost Price,Currency,Value\nACME,1,20,USD,20\n"
    found = read(tmp_path, f"{head}Cash,,,USD,5\nCash,,,EUR,7\n", **DAY)
    assert found.cash is None
    assert "cash in several currencies is not used: 5 USD, 7 EUR" in found.notes[-1]
    found = read(tmp_path, f"{head}Cash,,,EUR,7\n", **DAY)
    assert (found.cash, found.cash_currency) == (Decimal(7), "EUR")


def test_another_brokers_headings_and_a_portfolio_without_cost_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CliProblem, match="are from Fidelity's positions, not from Robinhood"):
        read(tmp_path, FIDELITY, broker="robinhood")
    portfolio = (
        'Product,Symbol/ISIN,Amount,Closing,Local value,,Value in EUR\nACME,NL1,1,"2,0",EUR,2,2\n'
    )
    with pytest.raises(CliProblem) as refused:
        read(tmp_path, portfolio)
    assert "export the transactions" in refused.value.hint


def test_the_lots_of_a_flex_query_are_not_counted_beside_their_sum(tmp_path: Path) -> None:
    head = "Symbol,Quantity,CostBasisPrice,OpenDateTime,LevelOfDetail\n"
    lots = "ACME,4,20,20230105;093000,LOT\nACME,6,20,20230106;093000,LOT\n"
    found = read(tmp_path, f"{head}ACME,10,20,,SUMMARY\n{lots}", **DAY)
    assert positions(found) == [("ACME", "10", "20")]
    found = read(tmp_path, head + lots)
    assert positions(found) == [("ACME", "10", "20.000000")]
    assert found.lines[0].opened_on == date(2023, 1, 5)


def test_a_column_that_stands_twice_alike_is_read_once(tmp_path: Path) -> None:
    found = read(tmp_path, "Symbol,Symbol,Quantity,Avg Cost\nACME,ACME,10,20\n", **DAY)
    assert positions(found) == [("ACME", "10", "20")]


def test_an_option_among_trades_is_named_and_may_be_left_out(tmp_path: Path) -> None:
    option = '"1/4/2024","","","ACME","ACME 1/19/2024 Call $25.00","BTO","1","$2.00","($200.00)"'
    text = ROBINHOOD.replace('"1/2/2024"', f'{option}\n"1/2/2024"', 1)
    with pytest.raises(CliProblem, match=r"'ACME 1/19/2024 Call \$25.00' is an option") as refused:
        read(tmp_path, text)
    assert "--shares-only" in refused.value.hint
    assert positions(read(tmp_path, text, is_shares_only=True)) == [("ACME", "15", "25")]


def test_the_sign_of_a_cost_says_its_currency(tmp_path: Path) -> None:
    rows = "SAP,5,€40.00,2010-03-01\nVOD,5,£40.00,2010-03-01\nIBM,5,$40.00,2010-03-01\n"
    found = read(tmp_path, f"{HEAD}\n{rows}")
    assert [each.currency for each in found.lines] == ["EUR", "GBP", None]
    found = read(tmp_path, f"{HEAD},currency\nSAP,5,€40.00,2010-03-01,USD\n")
    assert "which is not USD" in found.findings[0].message


def test_a_comma_before_three_digits_is_read_as_the_files_other_numbers_are(
    tmp_path: Path,
) -> None:
    dutch = DEGIRO.replace('"40,00"', '"3,900"').replace('"30,50"', '"3,812"')
    rows = csv.reader(dutch.splitlines())
    for text in dutch, "\n".join(";".join(cells) for cells in rows):
        found = read(tmp_path, text, tickers={"NL0000000001": "ACME.AS"})
        assert positions(found) == [("ACME.AS", "5", "3.812")]
    us = f'{HEAD}\nACME,"1,234",150.00,2024-03-04\n'
    assert positions(read(tmp_path, us)) == [("ACME", "1234", "150")]


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_comma_before_three_digits_is_asked_for_where_nothing_shows_it(
    tmp_path: Path, separator: str
) -> None:
    text = f'{HEAD}\nACME,"1,250","3,812",2024-03-04\n'
    if separator == ";":
        text = "\n".join(";".join(cells) for cells in csv.reader(text.splitlines()))
    with pytest.raises(CliProblem, match="could part thousands") as refused:
        read(tmp_path, text)
    assert "--decimal comma" in refused.value.hint
    found = read(tmp_path, text, decimal_comma=True)
    assert positions(found) == [("ACME", "1.25", "3.812")]
    assert positions(read(tmp_path, text, decimal_comma=False)) == [("ACME", "1250", "3812")]


def test_an_amount_of_money_is_no_number_of_shares(tmp_path: Path) -> None:
    text = 'Symbol,Amount,Avg Cost\nACME,"$1,787.20",$150.00\n'
    (finding,) = read(tmp_path, text, **DAY).findings
    assert "'$1,787.20', an amount of money: write how many shares" in finding.message
    with pytest.raises(CliProblem, match="is an amount of money"):
        read(tmp_path, ROBINHOOD.replace('"Buy","10","$20.00"', '"Buy","$10","$20.00"'))


@pytest.mark.parametrize("head", ["Side", "Direction", "Long/Short"])
@pytest.mark.parametrize("side", ["short", "SELL"])
def test_a_short_position_is_refused_by_name(tmp_path: Path, head: str, side: str) -> None:
    text = f"Symbol,Qty,{head},Cost Basis\nACME,10,{side},1500\nOTHR,5,long,1500\n"
    found = read(tmp_path, text, **DAY)
    assert [it.ticker for it in found.lines] == ["OTHR"]
    assert "'ACME' is a short position" in found.findings[0].message


@pytest.mark.parametrize("label", ["Summe", "Gesamt", "Gesamtsumme", "Summe EUR"])
def test_a_german_sum_is_left_out(tmp_path: Path, label: str) -> None:
    found = read(tmp_path, f"ticker;quantity;cost\nACME;10;70,12\n{label};10;701,2\n", **DAY)
    assert [it.ticker for it in found.lines] == ["ACME"]
    assert f"left out: {label!r}, a sum (line 3)" in found.notes


def test_a_share_that_is_called_total_is_no_sum(tmp_path: Path) -> None:
    head = "Symbol,Description,Quantity,Cost Basis,Market Value\n"
    rows = (
        "ACME,Acme,1,100,110\n"
        ",TotalEnergies SE,10,600,700\n"
        ",Total Gabelli,10,100,90\n"
        ",TOTAL INTL STOCK INDEX,,100,90\n"
        "Total Stock Fund,,10,100,90\n"
        "Account Total,,,900,1080\n"
        "Total EUR,,--,--,1080\n"
        "Total,,31,900,1080\n"
        "Totals of all accounts,,,,1080\n"
    )
    found = read(tmp_path, head + rows, **DAY)
    assert [it.ticker for it in found.lines] == ["ACME"]
    assert {it.line for it in found.findings} == {3, 4, 5, 6}
    assert "ticker is missing" in found.findings[0].message
    sums = [note for note in found.notes if "a sum" in note]
    assert sums[0] == "left out: 'Account Total', a sum (line 7)"
    assert len(sums) == 4


DEGIRO_EN = """Date,Time,Product,ISIN,Venue,Quantity,Price,,Local value,,Order ID
{}04-03-2024,15:45,ACME CORP,US0000000001,XNAS,10,850.0000,USD,-8500.00,USD,aaa
"""


@pytest.mark.parametrize("isin", ["US0000000001", "US0000000002"])
def test_a_split_that_is_booked_as_two_trades_is_refused_by_name(tmp_path: Path, isin: str) -> None:
    trade = "10-06-2024,07:00,ACME CORP,{},XNAS,{},{},USD,,USD,{}\n"
    names = {"US0000000001": "ACME", "US0000000002": "NEWS"}
    rows = [("US0000000001", -10, "1208.8800"), (isin, 100, "120.8880")]
    split = "".join(trade.format(*row, "") for row in rows)
    with pytest.raises(
        CliProblem, match="10 shares of 'ACME CORP' were exchanged for 100"
    ) as refused:
        read(tmp_path, DEGIRO_EN.format(split), tickers=names)
    assert "a split" in refused.value.message
    ordered = "".join(trade.format(*row, "bbb") for row in rows)
    assert [it.quantity for it in read(tmp_path, DEGIRO_EN.format(ordered), tickers=names).lines]


def test_cash_counts_in_cents_and_is_not_read_where_it_is_not_asked_for(tmp_path: Path) -> None:
    text = IBKR.replace('"1,234.5"', "23456.789012")
    found = read(tmp_path, text, **DAY, is_shares_only=True)
    assert found.cash == Decimal("23456.79")
    notes = " | ".join(found.notes)
    assert "cash 23456.789012 counts as 23456.79: the books use cents" in notes
    assert "cash in 2 currencies" in notes
    found = read(tmp_path, text, **DAY, is_shares_only=True, is_without_cash=True)
    assert found.cash is None
    assert not any("cash" in note for note in found.notes)


TRADES = "Action,Time,Ticker,No. of shares,Price / share\n"


@pytest.mark.parametrize("sold", ["1.0000000014", "1.0000000021"])
def test_less_than_the_books_keep_is_no_position(tmp_path: Path, sold: str) -> None:
    rows = (
        "Market buy,2024-03-04 14:30:01,ACME,1.0000000017,170\n"
        f"Market sell,2024-04-04 14:30:01,ACME,{sold},180\n"
        "Market buy,2024-04-05 14:30:01,OTHR,1,300\n"
    )
    found = read(tmp_path, TRADES + rows)
    assert positions(found) == [("OTHR", "1", "300")]
    assert "shares are left out: the books use six decimals" in found.notes[-1]
    found = read(tmp_path, f"{HEAD}\nACME,0.0000003,1,2024-03-04\nOTHR,1,300,2024-03-04\n")
    assert positions(found) == [("OTHR", "1", "300")]
    assert found.notes == ["ACME: 0.0000003 shares are left out: the books use six decimals"]


@pytest.mark.parametrize(
    ("code", "text"),
    [("BTO", "ACME 1/19/2024 Call $1,200.00"), ("OEXP", "Option Expiration for ACME"), ("STC", "")],
)
def test_options_above_999_and_their_codes_are_options(
    tmp_path: Path, code: str, text: str
) -> None:
    option = f'"1/4/2024","","","ACME","{text}","{code}","1","$2.00","($200.00)"'
    trades = ROBINHOOD.replace('"1/2/2024"', f'{option}\n"1/2/2024"', 1)
    with pytest.raises(CliProblem, match="is an option"):
        read(tmp_path, trades)
    assert positions(read(tmp_path, trades, is_shares_only=True)) == [("ACME", "15", "25")]
    found = read(tmp_path, f'{HEAD}\n"ACME 1/19/2024 $1,200.00 C",1,2,2024-03-04\n')
    assert "is an option" in found.findings[0].message


def test_the_trades_of_one_day_may_stand_newest_first(tmp_path: Path) -> None:
    lines = ROBINHOOD.replace("2/1/2024", "3/15/2024").replace("1/3/2024", "3/15/2024")
    assert positions(read(tmp_path, lines)) == [("ACME", "15", "25")]


def test_a_history_whose_day_has_another_heading_asks_for_it(tmp_path: Path) -> None:
    text = '"Date","Action","Symbol","Quantity","Price"\n"06/20/2024","Buy","ACME","5","$190.00"\n'
    with pytest.raises(CliProblem, match="it lists trades, and has no column time") as refused:
        read(tmp_path, text)
    assert "--columns time=Date,cost=Price" in refused.value.hint
    named = {"time": "Date", "cost": "Price"}
    assert positions(read(tmp_path, text, columns=named)) == [("ACME", "5", "190")]


def test_a_debt_is_named_beside_the_other_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "holdings.csv"
    path.write_text('Symbol,Qty,Cost Basis,Market Value\nACME,-1,20,20\nCash,,,"($1,234.50)"\n')
    with pytest.raises(CliProblem, match="things to fix"):
        import_file(path, opened_on=datetime.fromisoformat("2024-03-15"))
    shown = " ".join(capsys.readouterr().err.split())
    assert "the file's cash is -1234.50, a debt, which the desk does not support" in shown
    assert "--cash 0" in shown
    assert "no short positions" in shown


def test_a_column_named_date_says_since_when_positions_are_held(tmp_path: Path) -> None:
    text = "Symbol,Shares,Avg Price,Date\nACME,10,95.5,2024-03-05\n"
    file = read(tmp_path, text)
    assert not file.findings
    assert file.lines[0].opened_on == date(2024, 3, 5)


@pytest.mark.parametrize(
    ("cost", "is_cash"), [("1", True), ("1.00", True), ("", True), ("60", False)]
)
def test_a_row_of_a_currency_is_cash_and_no_share_of_that_name(
    tmp_path: Path, cost: str, is_cash: bool
) -> None:
    head = "ClientAccountID,CurrencyPrimary,AssetClass,Symbol,Quantity,CostBasisPrice"
    text = f"{head}\nU1,USD,STK,BRK B,10,300.5\nU1,USD,CASH,USD,60.5,{cost}\n"
    file = read(tmp_path, text, opened_on=date(2024, 3, 15))
    assert [line.ticker for line in file.lines] == (["BRK.B"] if is_cash else ["BRK.B", "USD"])
    assert file.cash == (Decimal("60.5") if is_cash else None)
    assert not file.findings


def test_a_date_in_another_order_than_the_others_is_named(tmp_path: Path) -> None:
    days = ("03/04/2010", "03/25/2010", "03/26/2010", "27/03/2010")
    found = read(tmp_path, "\n".join([HEAD, *(f"T{day[:2]}A,1,1,{day}" for day in days)]))
    (finding,) = found.findings
    assert finding.line == 5
    assert "'27/03/2010', no date" in finding.message
    assert finding.message.endswith("write 2010-03-27")


@pytest.mark.parametrize(
    ("days", "says"),
    [
        (
            ("03/25/2010", "03/26/2010", "27/03/2010"),
            "line 4: the time '27/03/2010' cannot be read",
        ),
        (("03/04/2010",), "line 2: the time '03/04/2010' cannot be read"),
    ],
)
def test_the_date_of_a_trade_is_named_with_the_way_out(
    tmp_path: Path, days: Sequence[str], says: str
) -> None:
    with pytest.raises(CliProblem, match=says) as caught:
        read(tmp_path, TRADES + "".join(f"Market buy,{day},IBM,1,1\n" for day in days))
    way_out = "--dates day-first" if len(days) == 1 else "write 2010-03-27"
    assert way_out in str(caught.value.hint)
