"""Files that people write: read within bounds, refused with the reason."""

from decimal import Decimal
from pathlib import Path

import pytest

from libs.market.errors import BadReplayData
from libs.market.exit_terms import BadExitTerms, terms_in
from libs.market.replay.layout import layout_of
from libs.report.strategies.files import spec_in
from libs.runtime.own_text import FILE_BYTES_MAX, UnreadableFile, text_in, toml_in, yaml_in
from services.cli.shell.problem import CliProblem
from services.cli.shell.running import load_settings
from services.cli.studies.file import read_study

DEEP = 50_000


def test_a_file_is_read_up_to_its_limit_and_not_beyond(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1_000)
    assert text_in(path, 1_000) == "x" * 1_000
    with pytest.raises(UnreadableFile, match="more than 999 bytes"):
        text_in(path, 999)
    with pytest.raises(UnreadableFile, match=f"more than {FILE_BYTES_MAX:,} bytes"):
        text_in(Path("/dev/zero"))


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1")
    assert toml_in(text_in(path)) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * DEEP,
        "a = " + "{a=" * DEEP,
        "a" + ".a" * DEEP + " = 1",
        "[a" + ".a" * DEEP + "]",
        '"a"' + '."a"' * DEEP + " = 1",
        "\n".join(["[a" + ".a" * 1_000 + "]", *(f"k{n} = 1" for n in range(1_000))]),
    ],
)
def test_toml_that_is_nested_too_deep_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(UnreadableFile, match="nested more than 32 levels deep"):
        toml_in(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = " + "9" * 5_000, "a number is too large"),
        ("a = 0x" + "f" * 5_000, "a number is too large"),
        ("a = 1e" + "9" * 30, "a number is too large"),
        ('a = "no end', "not valid TOML"),
    ],
)
def test_toml_that_python_cannot_hold_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnreadableFile, match=why):
        toml_in(text, parse_float=Decimal)


def test_brackets_and_dots_in_text_and_comments_are_no_nesting() -> None:
    many = "[{." * 100
    text = f'# {many}\na = "{many}\\""\nb = \'{many}\'\nc = \'\'\'\n{many}\'\'\'\nd = """{many}"""'
    assert set(toml_in(text)) == {"a", "b", "c", "d"}


@pytest.mark.parametrize("text", ["[" * DEEP, "{" * DEEP, "- " * DEEP, "? " * DEEP, "[a," * DEEP])
def test_yaml_that_is_nested_too_deep_is_refused_at_once(text: str) -> None:
    with pytest.raises(UnreadableFile, match="nested more than 32 levels deep"):
        yaml_in(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: " + "9" * 5_000, "more than 100 characters"),
        ("a: " + "1:" * 5_000 + "1", "more than 100 characters"),
        ("a: 2001-99-99", "month must be"),
        ("a: 0b_", "not valid YAML"),
        ("a: &x [1]\nb: *x", "aliases"),
    ],
)
def test_yaml_that_python_cannot_hold_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnreadableFile, match=why):
        yaml_in(text)


def test_every_reader_of_such_files_names_the_file_and_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    deep = tmp_path / "deep"
    deep.write_text("a: " + "[" * DEEP)
    why = "nested more than 32 levels deep"
    with pytest.raises(CliProblem, match=rf"deep: .*{why}"):
        read_study(deep)
    with pytest.raises(UnreadableFile, match=why):
        spec_in(deep)
    deep.write_text("a = " + "[" * DEEP)
    with pytest.raises(BadExitTerms, match=rf"deep cannot be used: .*{why}"):
        terms_in(deep)
    deep.rename("deskbus.toml")
    with pytest.raises(CliProblem, match=rf"deskbus.toml cannot be read: .*{why}"):
        load_settings()
    market = tmp_path / "market"
    market.mkdir()
    (market / "AAPL.csv").write_text("date,open,high,low,close,volume\n2012-01-03,1,1,1,1,1\n")
    (market / "source.toml").write_text("a = " + "{a=" * DEEP)
    with pytest.raises(BadReplayData, match=rf"source.toml: .*{why}"):
        layout_of(market)


@pytest.mark.parametrize(
    "text", ["name: a\nname: b\n", "name: a\nlimits:\n  - {x: 1, x: 2}\n", "{a: 1, 'a': 2}\n"]
)
def test_a_key_that_stands_twice_is_refused(text: str) -> None:
    with pytest.raises(UnreadableFile, match="stands twice"):
        yaml_in(text)
    with pytest.raises(UnreadableFile):
        toml_in("name = 'a'\nname = 'b'\n")


def test_a_variable_of_the_environment_that_is_nested_too_deep_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DESKBUS_PROVIDERS", "[" * DEEP)
    with pytest.raises(CliProblem, match="nested too deep"):
        load_settings()
    monkeypatch.setenv("DESKBUS_PROVIDERS", "{")
    with pytest.raises(CliProblem, match="DESKBUS_PROVIDERS in the environment is not JSON"):
        load_settings()


@pytest.mark.parametrize(
    ("ticker", "kind"),
    [
        ("ON", "truth value"),
        ("TRUE", "truth value"),
        ("no", "truth value"),
        ("Off", "truth value"),
        ("NULL", "missing value"),
        ("~", "missing value"),
        ("1810", "number"),
        ("0700", "number"),
        ("1.5", "number"),
        ("2024-01-02", "date"),
    ],
)
def test_a_ticker_that_yaml_reads_as_something_else_wants_quotes(ticker: str, kind: str) -> None:
    says = rf'line 2: universe: {ticker} is a {kind} to YAML, no text; quote it: "{ticker}"'
    with pytest.raises(UnreadableFile, match=says):
        yaml_in(f"name: a\nuniverse: [AAPL, {ticker}]\n")
    read = yaml_in(f'name: a\nuniverse: [AAPL, "{ticker}", NA, NAN, Y]\n')
    assert read["universe"] == ["AAPL", ticker, "NA", "NAN", "Y"]
