"""Numbers as people and programs write them, and those that nobody can be sure of."""

from decimal import Decimal
from pathlib import Path

import pytest

from libs.files import numbers as reading
from libs.files.finding import BadFile
from libs.files.numbers import NoNumber, has_decimal_comma, number_of, numbers
from libs.files.table import read_table


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12.5", "12.5"),
        ("$178.74", "178.74"),
        ("-$5.00", "-5.00"),
        ("$-5.00", "-5.00"),
        ("($1,234.50)", "-1234.50"),
        ("(2.50)", "-2.50"),
        ("1,234,567", "1234567"),
        ("1 234 567", "1234567"),
        ("1'234.5", "1234.5"),
        ("1.2B", "1200000000"),
        ("3.4 M", "3400000"),
        ("12K", "12000"),
        ("1e3", "1000"),
        (".5", "0.5"),
        ("\u22127", "-7"),
        ("5 \u20ac", "5"),
    ],
)
def test_how_a_number_is_written_costs_nothing(text: str, number: str) -> None:
    assert number_of(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "-", "N/A", "null", "NaN", "--", "None"])
def test_a_word_for_nothing_is_none(text: str) -> None:
    assert number_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "1_000",
        "\uff11\uff12",
        "1,23",
        "12,34,567",
        "1.2.3",
        "10 1.61",
        "(5",
        "5)",
        "--5",
        "1.5X",
        "ten",
        "0x10",
        "12.5%",
        "inf",
        "1..5",
        "(-5)",
    ],
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(NoNumber):
        number_of(text)


def test_a_percent_sign_is_read_where_percents_are_asked_for() -> None:
    assert number_of("12.5%", percent=True) == Decimal("12.5")
    assert number_of("12.5", percent=True) == Decimal("12.5")


def test_a_decimal_comma_is_known_by_the_numbers_of_the_file() -> None:
    assert has_decimal_comma(["101,61", "1.000.000"])
    assert not has_decimal_comma(["1,234", "99.50"])
    assert has_decimal_comma(["1,234", "1234,567"])
    assert has_decimal_comma(["1,234"], ["-381,20", "05.03.2024", "ACME", "64M"])
    assert not has_decimal_comma(["1,234"], ["(381.20)", "0,50 or so"])
    for beside in [], ["12.50", "0,50%"], ["05.03.2024", "10:15"]:
        with pytest.raises(NoNumber, match="could part thousands"):
            has_decimal_comma(["1,234"], beside)
    with pytest.raises(NoNumber, match="points and commas"):
        has_decimal_comma(["1,5", "2.25"])
    assert not has_decimal_comma(["1,5", "2.25", "2.5"])


@pytest.mark.parametrize("text", ["0,123", "000,123", "01,234"])
def test_a_zero_before_a_mark_begins_no_thousands(text: str) -> None:
    with pytest.raises(NoNumber):
        number_of(text)


def test_another_column_shows_that_prices_have_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('day,close,change\n28.06.2024,"11,442","0,50%"\n')
    assert numbers(read_table(path), ["close"])["close"].to_list() == [11.442]
    path.write_text('day,close\n28.06.2024,"11,442"\n')
    with pytest.raises(BadFile, match="could part thousands or be a decimal mark"):
        numbers(read_table(path), ["close"])


def test_a_cell_that_is_no_number_is_named_by_line_column_and_value(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('name,eps\n"two\nlines",1\nx,"(2.50)"\ny,a lot\n')
    table = read_table(path)
    with pytest.raises(BadFile, match=r"a\.csv, line 5: eps is 'a lot': not a number; correct it"):
        numbers(table, ["eps"])


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ("1.234,50|-5,25|+0,5|17", [1234.5, -5.25, 0.5, 17.0]),
        ("1,234.50|-1,000,000.25|17", [1234.5, -1000000.25, 17.0]),
        ("$1,234.50|-$5.25|$17", [1234.5, -5.25, 17.0]),
        ("1.5K|2m|3B|0.07k", [1500.0, 2e6, 3e9, 70.0]),
    ],
)
def test_a_column_in_one_odd_form_is_read_at_once(
    cells: str, values: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of 46 MB with decimal commas took 36 s, a call for each of its cells."""
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(["price;volume", *(f"{cell};1" for cell in cells.split("|"))]))
    table = read_table(path)
    calls: list[str] = []
    monkeypatch.setattr(reading, "number_of", lambda text, **_: calls.append(text))
    assert numbers(table, ["price"])["price"].to_list() == values
    assert calls == []


def test_the_first_of_several_faults_is_named(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("price;volume\n$1.50;1\n-;1\n2.50;1\nten;1\n")
    with pytest.raises(BadFile, match=r"line 4: price is '2.50': a currency's sign stands"):
        numbers(read_table(path), ["price"])
    path.write_text("price;volume\n$1.50;1\n-;1\nten;1\n2.50;1\n")
    with pytest.raises(BadFile, match=r"line 4: price is 'ten': not a number"):
        numbers(read_table(path), ["price"])


def test_two_currencies_signs_in_one_column_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ACME.csv"
    path.write_text("close\n$1.50\n€1.60\n")
    with pytest.raises(BadFile, match=r"line 3.*another than in most rows"):
        numbers(read_table(path), ["close"])
