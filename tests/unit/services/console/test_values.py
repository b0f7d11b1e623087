"""A recorded value as a tree: bounded whatever it is, and whole as JSON."""

from typing import Any

import orjson
import pytest
from pydantic import JsonValue

from services.console.pages.trace.values import DEPTH_MAX, NODES_MAX, passages, recorded


def test_a_value_is_shown_by_its_fields() -> None:
    made = recorded({"ticker": "AAPL", "price": 584.0, "odd": [], "note": None, "rows": [1, "a"]})
    assert made is not None
    assert [(each.name, each.kind, each.text) for each in made.values] == [
        ("ticker", "text", "AAPL"),
        ("price", "number", "584.0"),
        ("odd", "none", "no items"),
        ("note", "none", "none"),
        ("rows", "list", ""),
    ]
    rows = made.values[-1]
    assert (rows.held, [each.text for each in rows.inner]) == ("2 items", ["1", "a"])
    assert rows.is_open
    assert recorded(None) is None


def test_a_single_value_and_an_empty_one_are_shown_too() -> None:
    assert [each.text for each in (recorded("words") or _none()).values] == ["words"]
    assert [each.text for each in (recorded({}) or _none()).values] == ["no fields"]


def _none() -> Any:
    raise AssertionError


def test_a_text_of_lines_stands_by_itself_and_moves_no_cursor() -> None:
    made = recorded({"text": "a\nb\x1b[2J", "long": "x" * 500})
    assert made is not None
    assert [each.kind for each in made.values] == ["long", "long"]
    assert "\x1b" not in made.values[0].text


def test_what_is_left_out_is_counted_and_the_json_has_it() -> None:
    many = {"rows": list(range(NODES_MAX * 2))}
    made = recorded(many)
    assert made is not None
    assert counted(made.values) <= NODES_MAX
    (rows,) = made.values
    assert rows.more == NODES_MAX * 2 - len(rows.inner) > 0
    assert orjson.loads(made.json) == many


def test_a_value_however_deep_is_bounded() -> None:
    deep: Any = "bottom"
    for _ in range(200):
        deep = {"in": deep}
    made = recorded(deep)
    assert made is not None
    assert counted(made.values) <= DEPTH_MAX + 1


def counted(values: Any) -> int:
    return sum(1 + counted(each.inner) for each in values)


def test_json_in_a_text_is_a_tree_and_all_else_is_words() -> None:
    text = '<task>\n{"as_of": "2012-06-29", "assets": ["AAPL"]}\n</task>\n{not json}\n[]'
    parts = passages(text)
    assert [part.text for part in parts] == [
        "<task>",
        "JSON, 2 fields",
        "</task>\n{not json}\n[]",
    ]
    assert [each.name for each in parts[1].values] == ["as_of", "assets"]
    assert passages("") == []


def test_the_trees_in_a_text_are_bounded_together() -> None:
    line = orjson.dumps(list(range(NODES_MAX))).decode()
    parts = passages("\n".join([line] * 5))
    assert sum(counted(part.values) for part in parts) <= NODES_MAX
    assert parts[-1].values == ()


@pytest.mark.parametrize(
    ("value", "is_open"),
    [
        ({"values": {f"indicator_{n}": n for n in range(17)}}, True),
        ({"values": {f"field_{n}": n for n in range(41)}}, False),
        ({"rows": list(range(60))}, False),
    ],
)
def test_the_fields_of_a_call_are_on_the_screen(value: JsonValue, is_open: bool) -> None:
    shown = recorded(value)
    assert shown is not None
    assert shown.values[0].is_open is is_open
