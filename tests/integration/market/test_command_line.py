"""`deskbus market`: the sources told, a ticker shown with what is absent, a directory recorded."""

import asyncio
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import orjson
import pytest
import typer

from libs.market.choice import SourceName
from services.cli.operating import doctor, market
from services.cli.operating.source_words import WORDS
from services.cli.shell.problem import CliProblem, ExitCode
from tests.fakes.yahoo_live import AS_OF, FIXTURE, Live, live_fixture

SINCE = datetime(2023, 1, 3)  # noqa: DTZ001 - as typer gives it


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Live]:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DESKBUS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(market, "asking", asyncio.run)  # without setting up the process' log
    with live_fixture(monkeypatch, tmp_path) as found:
        yield found


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_sources_say_which_is_chosen_and_ask_nobody(
    live: Live, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBUS_MARKET_SOURCE", "yahoo")
    market.sources(json=True)
    replay, yahoo, alpaca, edgar = lines(capsys)
    assert (replay["name"], replay["chosen"], replay["tickers"]) == ("replay", False, 5)
    assert (yahoo["name"], yahoo["chosen"], yahoo["usable"]) == ("yahoo", True, True)
    assert yahoo["latest_session"] == AS_OF.isoformat()
    assert yahoo["used_for"] == ["prices", "fundamentals", "headlines", "calendar"]
    assert (alpaca["name"], alpaca["used_for"], alpaca["usable"]) == ("alpaca", [], False)
    assert "DESKBUS_ALPACA_DATA_KEY_FILE" in str(alpaca["said"])
    assert (edgar["name"], edgar["used_for"], edgar["usable"]) == ("edgar", [], False)
    assert "DESKBUS_EDGAR_CONTACT" in str(edgar["said"])
    market.sources()
    assert "yahoo (chosen)" in capsys.readouterr().out
    assert live.server.asked == []


def test_a_broken_directory_is_told_and_the_other_source_still_shown(
    live: Live, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBUS_MARKET_REPLAY_DIR", "nowhere")
    market.sources(json=True)
    replay, yahoo, *_ = lines(capsys)
    assert (replay["usable"], yahoo["usable"]) == (False, True)
    assert "not a directory" in str(replay["said"])


def test_doctor_names_the_live_source_without_asking_it(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBUS_MARKET_SOURCE", "yahoo")
    monkeypatch.setenv("DESKBUS_YAHOO_TICKERS", "AAPL, msft")
    from services.cli.shell.running import load_settings  # noqa: PLC0415 - reads the environment

    said = WORDS[SourceName.YAHOO](load_settings())
    assert "yahoo, live through yfinance" in said
    assert "2 tickers" in said
    assert live.server.asked == []


def test_a_kind_with_a_source_of_its_own_is_told_and_the_contact_only_masked(
    live: Live, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBUS_MARKET_SOURCE", "yahoo")
    monkeypatch.setenv("DESKBUS_MARKET_FUNDAMENTALS", "edgar")
    from services.cli.shell.running import load_settings  # noqa: PLC0415 - reads the environment

    without = {check.name: check for check in doctor._kinds(load_settings())}
    assert (without["fundamentals"].verdict, without["events"].verdict) == ("problem", "off")
    assert "DESKBUS_EDGAR_CONTACT" in without["fundamentals"].said
    assert "set DESKBUS_MARKET_EVENTS to replay or edgar" in without["events"].said
    monkeypatch.setenv("DESKBUS_EDGAR_CONTACT", "Ada L margaret@desk.example.org")
    monkeypatch.setenv("DESKBUS_MARKET_EVENTS", "edgar")
    told = {check.name: check for check in doctor._kinds(load_settings())}
    assert {check.verdict for check in told.values()} == {"ok"}
    assert "contact m...@desk.example.org, at most 8 requests/s" in told["fundamentals"].said
    market.sources(json=True)
    market.sources()
    shown = capsys.readouterr().out
    edgar = orjson.loads(shown.splitlines()[3])
    assert (edgar["used_for"], edgar["usable"]) == (["fundamentals", "events"], True)
    assert "margaret" not in shown
    assert "Ada" not in shown


def test_show_tells_what_is_there_and_what_is_not(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    market.show("golf.de", source=SourceName.YAHOO)
    text = " ".join(capsys.readouterr().out.split())
    assert "GOLF.DE at the close of 2024-03-15, from yahoo" in text
    assert "Golf Maschinenbau meldet starken Auftragseingang" in text
    assert "not_in_source" in text  # it has no page of reports
    market.show("ALFA", source=SourceName.YAHOO, json=True)
    answers = {row["tool"]: row for row in lines(capsys)}
    assert answers["get_stock_price"]["result"]["as_of"] == "2024-03-15"  # type: ignore[index]


READING = Path(__file__).parents[3] / "docs" / "reading.md"
COMMAND = re.compile(
    r"^\$ deskbus market show AAPL --as-of (\S+) --json \| grep -o '(.+)'\n(.+)$", re.MULTILINE
)


def test_the_restatement_in_the_docs_is_what_the_command_prints(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = COMMAND.findall(READING.read_text(encoding="utf-8"))
    for day, pattern, told in examples:
        market.show("AAPL", datetime.fromisoformat(day), json=True)
        assert re.findall(pattern, capsys.readouterr().out) == [told]
    assert [told for *_, told in examples] == ['"eps_fiscal_year":6.29', '"eps_fiscal_year":9.08']


def test_show_tells_figures_with_unit_and_age_and_what_the_sample_lacks(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    market.show("AAPL", datetime(2010, 1, 26))  # noqa: DTZ001 - as typer gives it
    market.show("MSFT", datetime(2010, 5, 6))  # noqa: DTZ001 - as typer gives it
    shown = " ".join(capsys.readouterr().out.split())
    for told in (
        "period to 2009-12-31, 26 days old; 10-Q filed 2010-01-25 (0001193125-10-012085)",
        "earnings per share (12 months) 10.25 USD",
        # The label gives way where the line is short; the figure does not.
        "earnings per share (fiscal year) to",
        "2009-09-30 (118 days old)",
        "9.08 USD",
        "market value 186.64 billion USD",
        "profit growth on the year +49.8%",
        "the newest known filing is the 10-K/A of 2010-01-25, 1 day old",
        "10-K/A: amended annual report on the period to 2009-09-30 (1 day ago)",
        "earnings per share (12 months): none; no trailing year: no earnings per share for",
        "the 10-K on the period to 2009-06-30, due by 2009-09-28, is not here",
    ):
        assert told in shown


def test_show_names_figures_and_days_as_the_other_commands_do(
    live: Live, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBUS_MARKET_REPLAY_DIR", str(FIXTURE))
    market.show("ALFA", datetime(2024, 3, 15))  # noqa: DTZ001 - as typer gives it
    shown = capsys.readouterr().out.partition("ALFA at the close")[2]
    words = " ".join(shown.split())
    for told in (
        "shares traded",
        "200-day average 61.264 USD",
        "3 months +33.5%",
        "2024-02-20 0.97 a share, period to 2023-12-31; 0.88 a share expected",
        "2024-03-15 19:59 UTC Alfa Chips wins a large order minutes before the close",
    ):
        assert told in words
    assert re.findall(r"\w+_\w+", shown) == []


def test_show_says_who_answered_where_that_is_not_the_prices_source(
    live: Live, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBUS_MARKET_FUNDAMENTALS", "yahoo")
    monkeypatch.setenv("DESKBUS_MARKET_REPLAY_DIR", str(FIXTURE))
    market.show("ALFA", datetime(2024, 3, 15))  # noqa: DTZ001 - as typer gives it
    shown = capsys.readouterr().out
    assert shown.count("from yahoo (fundamentals), fixture (synthetic) (prices)") == 1
    assert shown.count("from ") == 2, "and once for the prices"


def test_show_of_an_unknown_ticker_fails(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CliProblem, match=r"^NOPE .* \[unknown_ticker\]$") as caught:
        market.show("NOPE", source=SourceName.YAHOO)
    assert caught.value.code == ExitCode.FAILED
    assert capsys.readouterr().out == ""
    with pytest.raises(typer.Exit) as ended:
        market.show("NOPE", source=SourceName.YAHOO, json=True)
    assert ended.value.exit_code == ExitCode.FAILED
    assert lines(capsys)[0]["code"] == "unknown_ticker"


@pytest.mark.parametrize(
    ("ticker", "day", "said"),
    [
        ("APPL", "2012-06-29", "did you mean AAPL?"),
        ("AAPL", "2012-06-30", "did you mean 2012-06-29?"),
    ],
)
def test_show_of_what_there_is_not_is_refused_once_with_what_there_is(
    live: Live, ticker: str, day: str, said: str
) -> None:
    as_of = datetime.strptime(day, "%Y-%m-%d")  # noqa: DTZ007 - as typer gives it
    with pytest.raises(CliProblem, match=re.escape(said)):
        market.show(ticker, as_of, SourceName.REPLAY)


def test_a_recording_can_be_replayed_and_says_what_came_of_each_ticker(
    live: Live, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "recorded"
    market.record(folder, universe=["alfa,DLTA"], since=SINCE, json=True)
    captured = capsys.readouterr()
    rows = [orjson.loads(line) for line in captured.out.splitlines()]
    assert [(row["ticker"], row["failure"]) for row in rows] == [("ALFA", None), ("DLTA", None)]
    assert "for your own use only" in captured.err
    market.record(folder, universe=["ALFA", "DLTA"], since=SINCE)
    assert "recorded already" in capsys.readouterr().out
    monkeypatch.setenv("DESKBUS_MARKET_REPLAY_DIR", str(folder))
    market.sources(json=True)
    replay, *_ = lines(capsys)
    assert (replay["chosen"], replay["tickers"]) == (True, 2)
    market.show("DLTA")
    assert "from yahoo-recorded" in capsys.readouterr().out


def test_a_ticker_that_was_not_recorded_fails_the_command(
    live: Live, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(CliProblem, match="1 of 2 were not recorded, or only in part: NOPE"):
        market.record(tmp_path / "r", universe=["ALFA", "NOPE"], since=SINCE)
    text = capsys.readouterr().out
    assert "✗ NOPE       unknown_ticker" in text
    assert "✓ ALFA       302 sessions 2023-01-03 to 2024-03-15" in text
