"""`deskbus market import`: a preview, questions, and nothing written before a yes."""

import errno
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from libs.market.imports.folder import Change
from libs.market.replay.files import read_bars
from libs.market.replay.store import ReplayStore
from services.cli.operating import market_import
from services.cli.operating.market import app
from services.cli.shell import questions
from services.cli.shell.problem import CliProblem
from tests.fakes.vendor_files import bars, download


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DESKBUS_DATA_DIR", str(tmp_path / "desk"))
    return tmp_path


def run(typed: str, answers: str | None = None) -> Result:
    return CliRunner().invoke(app, ["import", *typed.split()], input=answers)


def refused(typed: str) -> CliProblem:
    problem = run(typed).exception
    assert isinstance(problem, CliProblem), problem
    return problem


def test_nothing_is_written_before_yes_and_then_all_of_it_is(folder: Path) -> None:
    download({"ACME": bars(), "SAP.DE": bars(2, exchange="XETR")}).to_csv("prices.csv")
    shown = run("prices.csv")

    assert (shown.exit_code, (folder / "data").exists()) == (0, False)
    for words in ("ACME", "XETR", "EUR", "adjusted", "a decision in the past sees", "--yes"):
        assert words in shown.output
    assert "assumed for tickers without a suffix: XNYS, USD" in shown.output
    done = run("prices.csv --yes")
    assert (done.exit_code, "next: deskbus up --detach" in done.output) == (0, True)
    assert 'replay_dir = "data"' in (folder / "deskbus.toml").read_text()
    store = ReplayStore(folder / "data")
    assert (store.tickers, store.exchange, store.currency) == (("ACME", "SAP.DE"), "XNYS", "USD")
    assert "nothing new" in run("prices.csv").output, "asked for nothing"


def test_prices_are_written_after_what_says_their_currency(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars().to_csv("ACME.csv")
    bars(2).to_csv("SAPX.csv")
    imported = "SAPX.csv --adjusted none --exchange XETR --currency EUR --yes"

    def fails(change: Change) -> None:
        raise OSError(errno.ENOSPC, "no space left on device", str(change.path))

    for typed in ("ACME.csv --adjusted none --yes", imported):
        with monkeypatch.context() as patched:
            patched.setattr(market_import, "write_prices", fails)
            assert "run the same command to continue" in str(refused(typed).hint)
        if typed == imported:
            assert "SAPX,unknown,XETR,EUR" in (folder / "data" / "sectors.csv").read_text()
        else:
            assert not (folder / "deskbus.toml").exists(), "no other command reads half a folder"
        assert run(typed).exit_code == 0
    assert ReplayStore(folder / "data").tickers == ("ACME", "SAPX")


def test_all_that_is_not_known_is_asked_for_at_once(folder: Path) -> None:
    bars().to_csv("prices.csv")
    problem = refused("prices.csv --yes")

    assert "which ticker does prices.csv hold?" in problem.message
    assert "adjusted for? none: as traded" in problem.message
    assert problem.hint.endswith("--ticker TICKER --adjusted none|splits|all")
    assert run("prices.csv --ticker acme --adjusted none --yes").exit_code == 0
    assert (folder / "data" / "ACME.csv").exists()


def test_a_ticker_is_of_the_file_without_one_and_never_of_another(folder: Path) -> None:
    bars().to_csv("ACME.csv")
    bars(2).to_csv("prices.csv")
    assert run("ACME.csv prices.csv --ticker NEW --adjusted none --yes").exit_code == 0
    assert ReplayStore(folder / "data").tickers == ("ACME", "NEW")
    written = (folder / "data" / "NEW.csv").read_text()
    assert written.splitlines()[1:] != (folder / "data" / "ACME.csv").read_text().splitlines()[1:]
    assert run("ACME.csv --ticker BETA --adjusted none --yes").exit_code == 0
    assert ReplayStore(folder / "data").tickers == ("ACME", "BETA", "NEW")


def test_one_option_never_names_the_tickers_of_two_files(folder: Path) -> None:
    for name in ("prices.csv", "more.csv", "ACME.csv", "BETA.csv"):
        bars().to_csv(name)
    for typed in (
        "prices.csv more.csv",
        "prices.csv more.csv --ticker NEW",
        "ACME.csv BETA.csv --ticker NEW",
    ):
        problem = refused(f"{typed} --adjusted none --yes")
        first, second = typed.split()[:2]
        assert f"which ticker does each of {first}, {second} hold?" in problem.message
        assert problem.hint.endswith(f"deskbus market import {first} --ticker TICKER")
    assert not (folder / "data").exists()


def test_a_person_is_asked_in_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "is_terminal", lambda: True)
    bars().to_csv("VOD.L.csv")
    assert run("VOD.L.csv", "maybe\nnone\nGBX\nn\n").exit_code == 0
    assert not (folder / "data").exists()
    assert run("VOD.L.csv", "none\nGBX\ny\n").exit_code == 0
    assert ReplayStore(folder / "data").currency == "GBX"
    bars().to_csv("BP.L.csv")
    assert run("BP.L.csv", "").exit_code == 130, "the input ended"


def test_another_folder_is_named_in_the_next_command(folder: Path) -> None:
    download({"ACME": bars()}).to_csv("prices.csv")
    done = run("prices.csv --out other --yes")
    assert "next: DESKBUS_MARKET_REPLAY_DIR=other deskbus up --detach" in done.output
    assert not (folder / "deskbus.toml").exists()


def test_a_row_of_the_past_is_replaced_only_after_yes(folder: Path) -> None:
    frame = bars()
    frame.to_csv("ACME.csv")
    run("ACME.csv --adjusted none --yes")
    written = (folder / "data" / "ACME.csv").read_text()
    frame.iloc[0, 4] = 7
    frame.to_csv("ACME.csv")
    shown = run("ACME.csv --adjusted none")
    assert "2024-01-02: volume 1000 becomes 7" in shown.output
    assert (folder / "data" / "ACME.csv").read_text() == written
    run("ACME.csv --adjusted none --yes")
    assert (folder / "data" / "ACME.csv").read_text() != written


def test_a_bad_file_costs_itself_and_is_named(folder: Path) -> None:
    download({"ACME": bars()}).to_csv("prices.csv")
    (folder / "book.csv").write_bytes(b"\xd0\xcf\x11\xe0")
    (folder / "BTC-USD.csv").write_text("x\n")
    problem = refused("prices.csv book.csv --yes")
    assert "1 file or ticker left out: book.csv: an Excel workbook" in problem.message
    assert (folder / "data" / "ACME.csv").exists()
    download({"BTC-USD": bars()}).to_csv("crypto.csv")
    assert "BTC-USD is not a share" in refused("crypto.csv --yes").message


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("a.csv --columns when=Date", "--columns 'when=Date' is not valid"),
        ("a.csv --currency PENCE", "no currency of ISO 4217"),
        ("a.csv --ticker ACME --exchange NOPE --adjusted none", "NOPE"),
        ("a.csv --ticker A --columns close=Last", "no column last"),
        ("b.csv --from nasdaq --ticker A", "its headings are from Yahoo's CSV"),
        ("none.csv", "it cannot be read"),
        ("empty", "a folder without files of prices"),
        ("a.csv --from lean", "as Lean's daily prices are"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    folder: Path, typed: str, why: str
) -> None:
    bars().to_csv("a.csv")
    bars().assign(**{"Adj Close": 1.0}).to_csv("b.csv")
    (folder / "empty").mkdir()
    error = run(f"{typed} --yes").exception
    assert why in str(error)
    assert not (folder / "data").exists()


STOOQ_HEAD = "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>"


def test_the_currency_of_pence_is_for_tickers_of_london_alone(folder: Path) -> None:
    (folder / "bulk").mkdir()
    for name in ("aapl.us", "brk-b.us", "vod.uk"):
        row = f"{name.upper()},D,20240102,000000,1,1,1,1,5,0"
        (folder / "bulk" / f"{name}.txt").write_text(f"{STOOQ_HEAD}\n{row}\n")
    problem = refused("bulk --yes")
    assert (problem.message.count("in which currency"), "VOD.L" in problem.message) == (1, True)
    for typed in ("bulk --currency GBX --yes", "bulk --currency GBX --yes"):
        assert run(typed).exit_code == 0
        store = ReplayStore(folder / "data")
        assert (store.exchange, store.currency) == ("XNYS", "USD")
        assert "VOD.L,unknown,XLON,GBX" in (folder / "data" / "sectors.csv").read_text()


HEAD = "Date;Open;High;Low;Close;Volume\n"


@pytest.mark.parametrize(
    ("name", "sign", "options", "is_fine"),
    [
        ("AIR", "€", "", False),
        ("TSCO", "£", "", False),
        ("TSCO", "$", "", True),
        ("AIR", "$", "--exchange XPAR --currency EUR", False),
        ("AIR", "€", "--exchange XPAR --currency EUR", True),
        ("AIR.PA", "€", "", True),
        ("SONY", "¥", "", False),
        ("VOD.L", "£", "--currency GBX", False),
        ("VOD.L", "£", "--currency GBP", True),
    ],
)
def test_the_sign_of_another_currency_is_refused(
    folder: Path, name: str, sign: str, options: str, *, is_fine: bool
) -> None:
    row = f"02.01.2024;{sign}1,5;{sign}1,6;{sign}1,4;{sign}1,5;100\n"
    (folder / f"{name}.csv").write_text(HEAD + row)
    typed = f"{name}.csv --adjusted none --yes {options}"
    if is_fine:
        assert run(typed).exit_code == 0
    else:
        assert f"its prices have the sign {sign}, which is not" in refused(typed).message
        assert not (folder / "data").exists()


def test_the_order_of_dates_and_the_absence_of_actions_and_volumes_are_noted(folder: Path) -> None:
    head = "Date,Price,Open,High,Low,Vol.,Change %\n"
    rows = '"03/05/2024",1,1,1,1,-,0%\n"02/05/2024",1,1,1,1,,0%\n"01/05/2024",1,1,1,1,5M,0%\n'
    (folder / "ACME.csv").write_text(head + rows)
    assert "use --dates day-first or month-first" in refused("ACME.csv --yes").message
    shown = run("ACME.csv --dates day-first --adjusted none").output
    for words in (
        "2024-05-01",
        "dates such as 03/05/2024 are read day first",
        "ACME: 2 rows without a volume: read as 0",
        "ACME: no dividends and no splits are available",
    ):
        assert words in shown
    (folder / "NASD.csv").write_text(
        "Date,Close/Last,Volume,Open,High,Low\n05/03/2024,$1,N/A,$1,$1,$1\n05/02/2024,$1,N/A,$1,$1,$1\n"
    )
    shown = run("NASD.csv --yes").output
    assert "are read month first" in shown
    assert "no dividends" not in shown, "its prices are adjusted"
    assert "2024-05-03,1.0,1.0,1.0,1.0,0.0" in (folder / "data" / "NASD.csv").read_text()


def test_the_next_command_has_the_answers_that_were_typed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "is_terminal", lambda: True)
    monkeypatch.setattr("sys.argv", ["deskbus", "market", "import", "prices.csv"])
    bars().to_csv("prices.csv")
    shown = run("prices.csv", "vod.l\nsplits\nGBX\nn\n").output
    options = "--ticker vod.l --adjusted splits --currency GBX"
    assert f"deskbus market import prices.csv {options} --yes" in shown
    assert run(f"prices.csv {options} --yes").exit_code == 0
    bars().to_csv("ACME.ZZZ.csv")
    shown = run("ACME.ZZZ.csv --out other", "none\nXETR\nEUR\ny\n").output
    assert "ACME.ZZZ" in shown
    assert ReplayStore(folder / "other").currency == "EUR"


def test_the_decimal_mark_is_asked_for_and_answered(folder: Path) -> None:
    row = '"1,234","1,235","1,233","1,234","1,000"'
    (folder / "ACME.csv").write_text(f"date,open,high,low,close,volume\n2024-03-14,{row}\n")
    assert "--decimal comma or --decimal point" in refused("ACME.csv --adjusted none").message
    for mark, close in (("comma", 1.234), ("point", 1234.0)):
        out = folder / mark
        done = run(f"ACME.csv --adjusted none --decimal {mark} --out {out} --yes")
        assert done.exit_code == 0, done.output
        assert read_bars(out / "ACME.csv")["close"].to_list() == [close]


@pytest.mark.slow
def test_a_download_of_many_tickers_side_by_side_is_read(folder: Path) -> None:
    download({f"T{n:03d}": bars() for n in range(150)}).to_csv("prices.csv")
    done = run("prices.csv --yes")
    assert done.exit_code == 0, done.output
    assert len(ReplayStore(folder / "data").tickers) == 150


def test_notes_that_are_the_same_of_many_tickers_are_one_line(folder: Path) -> None:
    names = [f"T{n:03d}.csv" for n in range(30)]
    for name in names:
        bars().to_csv(name, columns=["Open", "High", "Low", "Close", "Volume"])
    done = run(f"{' '.join(names)} --adjusted none --yes")
    assert done.exit_code == 0, done.output
    assert len([line for line in done.output.splitlines() if line.startswith("- ")]) < 8
    assert "T000, T001, T002, T003, T004 and 25 more: no dividends" in done.output
