"""Reading answers: what models really send, and what must never pass for an answer."""

import pytest
from pydantic import BaseModel

from contracts.risk import ReviewDraft
from contracts.types import Text
from libs.llm.answer import ERROR_CHARS_MAX, ERRORS_MAX, read_answer


class Answer(BaseModel):
    word: Text
    number: int = 0


@pytest.mark.parametrize(
    "text",
    [
        '{"word": "yes"}',
        'Here it is:\n```json\n{"word": "yes"}\n```\nI hope this helps {really}.',
        '{"word": "first"} and, corrected: {"word": "yes"}',
        '{"word": "yes"} {"word": 5}',
        '{"thoughts": {"deep": 1}} {"word": "yes"}',
        '{broken {"word": "yes"}',
    ],
)
def test_the_last_valid_object_is_the_answer(text):
    value, errors = read_answer(text, Answer)
    assert value is not None
    assert (value.word, errors) == ("yes", ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no JSON object"),
        ("yes", "no JSON object"),
        ('["word"]', "no JSON object"),
        ('{"word": NaN}', "no JSON object"),
        ("{" * 5_000, "no JSON object"),
        ('{"number": 1}', "word: Field required"),
        ('{"word": "a\\u0000b"}', "NUL"),
        ('{"word": "\\ud800"}', "Invalid JSON"),
        ('{"word": "yes", "extra": 1}', "extra: no such field"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text, told):
    value, errors = read_answer(text, Answer)
    assert value is None
    assert told in "; ".join(errors)


def test_the_inside_of_a_cut_off_answer_does_not_pass_for_a_whole_one():
    inner = '{"ticker": "AAPL", "allocation_pct": 40, "reasoning": "r", "confidence": 0.5}'
    value, errors = read_answer('{"picks": [' + inner, ReviewDraft)
    assert value is None
    assert "ticker: no such field" in errors


def test_many_long_errors_stay_short():
    class Wide(BaseModel):
        a: int
        b: int
        c: int
        d: int
        e: int
        f: int
        g: int
        h: int
        i: int
        j: int

    value, errors = read_answer('{"a": "' + "x" * 10_000 + '"}', Wide)
    assert value is None
    assert len(errors) == ERRORS_MAX + 1
    assert all(len(error) <= ERROR_CHARS_MAX for error in errors)
    assert errors[-1] == "and 2 more"
