"""`deskbus study score-decisions`, as a person uses it: no desk, and nothing is started."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from libs.runtime import extras
from libs.runtime.extras import ExtraMissing
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.studies import score_decisions
from services.cli.studies.command import app
from tests.fakes.decided import FLAT, UP, folder

ROOT = Path(__file__).parents[5]
DECIDED = "time,ticker,weight\n2024-01-02,AAA,1\n2024-01-04,BBB,1\n2024-01-05,ZZZ,0.5\n"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty directory; whoever opens a connection fails the test."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a score asks nobody")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("COLUMNS", "80")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    folder(tmp_path / "p", {"AAA": UP, "BBB": FLAT})
    (here / "d.csv").write_text(DECIDED)
    return here


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["score-decisions", *words])


def test_the_choice_of_tickers_is_told_first_and_no_line_is_wider_than_80() -> None:
    result = run("d.csv", "--prices", "../p")

    assert result.exit_code == 0, result.exception
    lines = result.stdout.splitlines()
    assert lines[1].startswith("Only tickers of the file are compared. Whoever chose them may have")
    assert max(map(len, lines)) <= 80
    for words in ("coin", "holding", "equal parts", "10 basis points", "no prices", "--html FILE"):
        assert words in result.stdout


def test_the_packages_that_a_score_needs_are_named_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda _: False)
    error = run("nothing.csv", "--prices", "../p").exception
    assert isinstance(error, ExtraMissing)
    assert "pip install 'deskbus[strategies]'" in error.message


def test_nothing_is_left_behind_but_the_page_that_was_asked_for(alone: Path) -> None:
    result = run("d.csv", "--prices", "../p", "--html", "it.html")

    assert result.exit_code == 0
    assert sorted(path.name for path in alone.iterdir()) == ["d.csv", "it.html"]
    page = (alone / "it.html").read_text()
    assert "<title>Score of d.csv</title>" in page
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_name_or_a_heading_of_the_file_is_neither_markup_nor_an_escape_code(alone: Path) -> None:
    hostile = alone / "<img src=x>\x1b[2J.csv"
    hostile.write_text("time,ticker,weight,<script>\x1b[2J\n2024-01-02,AAA,1,x\n")

    result = run(hostile.name, "--prices", "../p", "--html", "it.html")

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    page = (alone / "it.html").read_text()
    assert "<img" not in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_json_has_the_paths_and_what_was_not_traded() -> None:
    result = run("d.csv", "--prices", "../p", "--json", "--cost-bps", "0")

    said = json.loads(result.stdout)
    assert [it["name"] for it in said["paths"]] == ["the file", "coin", "holding", "equal parts"]
    assert said["paths"][0]["money"] == pytest.approx(100_000 * 1.1**2)
    assert [it["line"] for it in said["untraded"]] == [4]


def test_the_costs_are_those_of_the_paper_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKBUS_BROKER_FEE_BPS", "20")

    assert json.loads(run("d.csv", "--prices", "../p", "--json").stdout)["cost_bps"] == 25


def test_the_example_in_the_docs_prints_what_stands_there() -> None:
    page = (ROOT / "docs/scoring.md").read_text()
    shown = page.partition("$ deskbus study score-decisions examples/decisions/trading_memory.md")
    lines = [line for line in shown[2].partition("```")[0].splitlines() if line not in {"", "..."}]

    printed = run(str(ROOT / "examples/decisions/trading_memory.md")).stdout.splitlines()

    assert len(lines) > 12
    assert [line for line in lines if line not in printed] == []


@pytest.mark.parametrize(
    ("words", "why", "code"),
    [
        (("absent.csv",), "cannot be read", ExitCode.USAGE),
        (("d.csv", "--prices", "../p", "--html", "."), "cannot be written", ExitCode.FAILED),
        (("d.csv", "--prices", "../p", "--html", "no/it.html"), "cannot be", ExitCode.FAILED),
        (("d.csv", "--prices", "nowhere"), "neither a folder nor a source", ExitCode.USAGE),
        (("d.csv", "--zone", "Mars/Base"), "not a time zone", ExitCode.USAGE),
        (("d.csv", "--zone", "../../etc/passwd"), "not a time zone", ExitCode.USAGE),
        (("d.csv", "--columns", "when=Date"), "not valid", ExitCode.USAGE),
        (("d.csv", "--prices", "../p", "--until", "2020-01-02"), "no decision", ExitCode.FAILED),
        (("d.csv", "--prices", "."), "no column date", ExitCode.FAILED),
    ],
)
def test_a_problem_is_a_sentence_and_a_code(
    words: tuple[str, ...], why: str, code: ExitCode
) -> None:
    problem = run(*words).exception

    assert isinstance(problem, CliProblem)
    assert why in problem.message
    assert problem.code is code


def test_a_bad_row_is_named_and_nothing_is_scored(alone: Path) -> None:
    (alone / "d.csv").write_text(DECIDED + "2024-01-05T10:00:00,AAA,-1\n")

    result = run("d.csv", "--prices", "../p")

    assert isinstance(result.exception, CliProblem)
    assert "nothing was scored" in result.exception.message
    assert "line 5" in result.stderr
    assert result.stdout == ""


def test_a_score_that_takes_long_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = run("d.csv", "--prices", "../p", "--json")
    monkeypatch.setattr(score_decisions, "ETA_FROM_S", 0.0)
    slow = run("d.csv", "--prices", "../p", "--json")

    assert "the coins at each" in slow.stderr
    assert (quick.stderr, slow.stdout) == ("", quick.stdout)
