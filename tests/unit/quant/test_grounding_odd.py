"""Odd input to the grounding checker: zeros, days that are none, several tickers for one name."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from libs.quant.grounding.check import check_text
from libs.quant.grounding.facts import Facts, Given, read
from tests.data.grounding.labelled import evidence, statements
from tests.unit.quant.test_grounding import HISTORY, NEWS, PRICE, RESULTS, ungrounded

REPOSITORY = Path(__file__).parents[3]
EVIDENCE = ("analyst_2024", "trader_2010")


@pytest.fixture(scope="module")
def facts() -> Facts:
    return read([Given(f"E{n}", "tool", result) for n, result in enumerate(RESULTS)])


def numbers(value: JsonValue) -> Iterator[str]:
    """The names of all fields of a result that hold a number."""
    match value:
        case dict():
            for key, item in value.items():
                if isinstance(item, int | float) and not isinstance(item, bool):
                    yield key
                yield from numbers(item)
        case list():
            for item in value:
                yield from numbers(item)


def zeroed(value: JsonValue, name: str) -> JsonValue:
    """A result in which one field is 0 wherever it stands."""
    match value:
        case dict():
            return {k: 0 if k == name else zeroed(item, name) for k, item in value.items()}
        case list():
            return [zeroed(item, name) for item in value]
        case _:
            return value


@pytest.mark.parametrize("name", EVIDENCE)
def test_a_quantity_of_nothing_is_no_base_and_no_fault(name: str) -> None:
    results = [(each.id, each.tool, each.result) for each in evidence(name)]
    texts = [each for each in statements("held_out_3") if each.evidence == name]
    assert texts
    for field in sorted({each for _, _, result in results for each in numbers(result)}):
        facts = read([Given(i, tool, zeroed(result, field)) for i, tool, result in results])
        for each in texts:
            check_text(each.text, facts, each.about)


def test_zeros_of_a_headline_are_no_fault() -> None:
    title = "Alfa ships 0 units against 12 a year ago, orders 0 of 40 and sales of $0 million"
    news = {**NEWS, "items": [{"known_at": "2024-03-14T08:15:00+00:00", "title": title}]}
    facts = read([Given(f"E{n}", "tool", each) for n, each in enumerate((PRICE, news))])
    check_text("Orders of 40 are twice the 0 units.", facts, "ALFA")
    check_text("Alfa sales of $0 million, 5% of the 12 units, half of the 40.", facts, "ALFA")


def test_an_empty_row_is_no_session() -> None:
    facts = read([Given("E0", "tool", {"ticker": "ALFA", "columns": [], "rows": [[]]})])
    assert facts.rows["ALFA"] == []


@pytest.mark.parametrize("day", ["the 0th", "the 00th", "the 32nd", "31 February", "2024-13-41"])
def test_a_day_that_is_none_is_no_fault(day: str, facts: Facts) -> None:
    assert ungrounded(f"On {day} it closed at $81.27.", facts) != []


def test_a_verb_is_no_month(facts: Facts) -> None:
    assert ungrounded("Bulls may disagree, yet on the 13th it closed at $81.27.", facts) == []
    assert ungrounded("Bulls may disagree, yet on the 12th it closed at $81.27.", facts) != []


@pytest.mark.parametrize(
    "text",
    [
        "Alfa is up, adding 25% on the day.",
        "Alfa moved sharply, rose 0.93.",
        "It fell. Rose 0.9.",
        "The mega-cap stock gained 25% on the day.",
        "The position is at least 90% of equity.",
        "Nine of the four headlines are bad.",
    ],
)
def test_what_only_looks_like_an_order_a_grade_a_limit_or_a_part_is_marked(
    text: str, facts: Facts
) -> None:
    assert ungrounded(text, facts) != []


def test_marks_do_not_depend_on_the_order_that_a_process_gives_its_sets() -> None:
    ask = (
        "from libs.quant.grounding.check import check_text\n"
        "from libs.quant.grounding.facts import Given, read\n"
        "from tests.data.grounding.labelled import statements\n"
        "from tests.data.grounding.measure import checked\n"
        f"price, history = {PRICE!r}, {HISTORY!r}\n"
        "two = [price | {'ticker': 'GOOG'}, price | {'ticker': 'GOOGL', 'price': 80.75}]\n"
        "facts = read([Given(str(n), 'tool', each) for n, each in enumerate(two)])\n"
        "print(check_text('Google closed at $80.75.', facts))\n"
        "print([checked(each) for each in statements('held_out_7')])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", ask],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
