"""JSON in a model's text: what a repair may change, and what it may never change."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.llm.reading.json_text import JsonBroken, JsonFound, object_of, objects_in

ANSWER = {"ticker": "AAPL", "share": 0.3, "tags": ["a", "b"], "why": "it's up"}
PLAIN = json.dumps(ANSWER)
BROKEN_PUNCTUATION = {
    "single quotes": PLAIN.replace('"', "'"),
    "curly quotes": "{“ticker”: “AAPL”, “share”: 0.3, “tags”: [“a”, “b”], “why”: “it's up”}",
    "trailing commas": '{"ticker": "AAPL", "share": 0.3, "tags": ["a", "b",], "why": "it\'s up",}',
    "doubled comma": '{"ticker": "AAPL",, "share": 0.3, "tags": ["a", "b"], "why": "it\'s up"}',
    "missing comma": PLAIN.replace('0.3, "tags"', '0.3 "tags"'),
    "missing comma after a text": PLAIN.replace('"AAPL", ', '"AAPL" '),
    "line comment": PLAIN.replace('"share"', '// of the budget\n"share"'),
    "block comment": PLAIN.replace('"share"', '/* of the budget */ "share"'),
    "hash comment": PLAIN.replace('"share"', '# of the budget\n"share"'),
    "no-break spaces": PLAIN.replace(" ", "\u00a0").replace("it's\u00a0up", "it's up"),
    "full-width": '｛"ticker"："AAPL"，"share"：0.3，"tags"：［"a"，"b"］，"why"："it\'s up"｝',
    "bare keys": '{ticker: "AAPL", share: 0.30, tags: ["a", "b"], why: "it\'s up"}',
    "a leading point": PLAIN.replace("0.3", ".3"),
    "a plus": PLAIN.replace("0.3", "+0.3"),
}
WRAPPED = {
    "fenced": f"Here it is:\n```json\n{PLAIN}\n```\nI hope this {{helps}}.",
    "a string of JSON": json.dumps(PLAIN),
    "a string of a string": json.dumps(json.dumps(PLAIN)),
    "a closing tag": f"{PLAIN}</answer>",
    "one brace too many": f"{PLAIN}}}",
    "raw line breaks": PLAIN.replace("{", "{\n").replace(", ", ",\n  "),
}


@pytest.mark.parametrize("text", BROKEN_PUNCTUATION.values(), ids=BROKEN_PUNCTUATION)
def test_broken_punctuation_is_repaired_and_the_repair_is_kept(text: str) -> None:
    [found] = objects_in(text)
    assert isinstance(found, JsonFound)
    assert found.value == ANSWER
    assert json.loads(found.repaired) == ANSWER


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED)
def test_what_stands_around_an_object_needs_no_repair(text: str) -> None:
    [found] = objects_in(text)
    assert found == JsonFound(ANSWER)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"share": 1_000,}', "breaks at line 1, column 12"),
        ('{"share": 1,000, "a": }', "breaks at"),
        ('{"share": 007,}', "breaks at"),
        ('{"share": 0x1F, "b": [1, 2}', "it was cut off"),
        ('{"share": NaN}', "not a JSON number"),
        ('{"share": 1e400}', "too large"),
        ('{"a": "x", "a": "y"}', "stands twice"),
        ('{"tags": [1,000],}', "breaks at"),
        ('{"tags": ["a" "b"]}', "breaks at"),
        ('{"tags": ["" ""],}', "breaks at"),
        ('{"arguments": {"a": 1}{"a": 2}}', "breaks at"),
        ('{"ticker": "AAPL", "tags": ["a"', "it was cut off"),
        ('{"picks": [{"ticker": "AAPL"}', "it was cut off"),
        ('{"picks": [{"ticker": "A"}, {"ticker": "B"]}', "it was cut off"),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "nested deeper"),
    ],
)
def test_digits_items_and_what_was_cut_off_are_never_guessed(text: str, told: str) -> None:
    [found] = objects_in(text)
    assert isinstance(found, JsonBroken)
    assert told in found.error


def test_the_inside_of_a_broken_object_is_not_an_object_and_a_second_try_below_it_is() -> None:
    found = [*objects_in('{"picks": [{"ticker": "A"}, oops\n\n{"picks": []}')]
    assert isinstance(found[0], JsonBroken)
    assert found[1:] == [JsonFound({"picks": []})]


def test_the_arguments_of_a_call_are_one_object() -> None:
    assert object_of('{"a": 1} {"a": 1}</tool_call>') == {"a": 1}
    assert object_of('{"a": 1}{"a": 2}') == "2 different JSON objects; give one"
    assert object_of("AAPL") == "no JSON object was found"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": {"b": 1}', {"a": {"b": 1}}),
        ('{"a": [1, 2], "b": true', {"a": [1, 2], "b": True}),
        ('```json\n{"a": "x"\n```', {"a": "x"}),
        ("{'a': 'x', 'b': 10%", {"a": "x", "b": "10%"}),
        ('{"x": {"y": {"a": 1.5', {"x": {"y": {"a": 1.5}}}),
        ('{"a": "first"}\n{"a": "second"', {"a": "second"}),
    ],
)
def test_missing_last_braces_are_added_on_demand_alone(text: str, value: object) -> None:
    *_, closed = objects_in(text, closes=True)
    assert isinstance(closed, JsonFound)
    assert closed.value == value
    assert json.loads(closed.repaired) == value
    assert "cut off" in closed.cut_off
    *_, kept = objects_in(text)
    assert isinstance(kept, JsonBroken)
    assert kept.error == closed.cut_off


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2',
        '{"a": [{"b": 1}, {"b": 2}',
        '{"a": "x',
        '{"a": "x", "b"',
        '{"a": "x", "b":',
        '{"a": "x",',
        '{"a": 12.',
        '{"a": tru',
        '{"a": {"b": {"c": {"d": {"e": "x"',
        '{"a": 1}\n{"a": [2',
    ],
)
def test_where_more_than_the_last_braces_is_missing_nothing_is_added(text: str) -> None:
    *_, last = objects_in(text, closes=True)
    assert isinstance(last, JsonBroken)
    assert "it was cut off" in last.error


_KEYS = st.text(alphabet="abcdefgh", min_size=1, max_size=6)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.decimals(-1000, 1000, places=3).map(float)
    | st.text(alphabet="abc XYZ,.:'-0123", max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_BREAKS = {
    "trailing": lambda text: text[:-1] + ",}",
    "curly": lambda text: text.replace('"', "”"),
    "none": lambda text: text,
    "spaced": lambda text: text.replace(": ", " :\u00a0"),
    "cut": lambda text: text[:-2],
    "uncommaed": lambda text: text.replace(", ", " "),
}


@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=5), st.sampled_from([*_BREAKS]))
def test_whatever_breaks_what_is_read_is_what_was_meant_or_nothing(
    value: dict[str, object], how: str
) -> None:
    for found in objects_in(_BREAKS[how](json.dumps(value))):
        assert isinstance(found, JsonBroken) or _flat(found.value) == _flat(value)


def _flat(value: object) -> list[str]:
    """Words and numbers in their order: all that a repair may not touch."""
    if isinstance(value, dict):
        return [part for key, item in value.items() for part in (key, *_flat(item))]
    if isinstance(value, list):
        return [part for item in value for part in _flat(item)]
    return ["".join(filter(str.isalnum, str(value)))]


@pytest.mark.parametrize(
    "text", ["{" * 100_000, '{"a":[' * 20_000, '{"a": "' * 20_000, "{'" * 50_000, "{a:{" * 30_000]
)
def test_hostile_text_ends_in_bounded_time(text: str) -> None:
    began = time.process_time()
    [*objects_in(text)]
    assert time.process_time() - began < 30


def _is_part(part: object, whole: object) -> bool:
    """Whether a value is another without some last fields of its objects."""
    if isinstance(part, dict) and isinstance(whole, dict):
        names = [*part]
        return names == [*whole][: len(names)] and all(
            _is_part(part[name], whole[name]) for name in names
        )
    return part == whole


@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=4), st.integers(1, 200))
def test_of_an_answer_that_was_cut_off_no_list_is_shortened(
    value: dict[str, object], missing: int
) -> None:
    """A last number is the one value whose end cannot be seen."""
    text = json.dumps(value)[:-missing]
    found = [*objects_in(text, closes=True)]
    if found and isinstance(found[-1], JsonFound) and not text[-1:].isdigit():
        assert _is_part(found[-1].value, value)
