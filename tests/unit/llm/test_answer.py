"""Reading answers: what models really send, and what must never pass for an answer."""

import pytest
from pydantic import BaseModel, ValidationError

from contracts.risk import ReviewDraft
from contracts.types import Confidence, Mood, Score10, Text
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
        '{"word": "yes"} {"other": 5}',
        '{"thoughts": {"deep": 1}} {"word": "yes"}',
        '{broken {"word": "yes"}',
    ],
)
def test_the_last_object_of_the_contract_is_the_answer(text):
    heard = read_answer(text, Answer)
    value, errors = heard.value, heard.errors
    assert value is not None
    assert (value.word, errors) == ("yes", ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no JSON object"),
        ("yes", "no JSON object"),
        ('["word"]', "no JSON object"),
        ('{"word": NaN}', "not a JSON number"),
        ("{" * 5_000, "no JSON object"),
        ('{"word": "yes"} no, rather {"word": 5}', "word: takes a text"),
        ('{"word": "yes"} no, rather {"word": "n', "it was cut off"),
        ('{"number": 1}', "word: is missing"),
        ('{"word": "a\\u0000b"}', "NUL"),
        ('{"word": "\\ud800"}', "not valid JSON"),
        ('{"extra": 1}', "the answer has none of its fields: word, number"),
        ('{"word": "yes", "word": "no"}', "a key stands twice with different values"),
        ('{"word": 1e999}', "too large"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text, told):
    heard = read_answer(text, Answer)
    value, errors = heard.value, heard.errors
    assert value is None
    assert told in "; ".join(errors)


def test_the_inside_of_a_cut_off_answer_does_not_pass_for_a_whole_one():
    inner = '{"ticker": "AAPL", "allocation_pct": 40, "reasoning": "r", "confidence": 0.5}'
    heard = read_answer('{"picks": [' + inner, ReviewDraft)
    value, errors = heard.value, heard.errors
    assert value is None
    assert "it was cut off" in errors[0]


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

    heard = read_answer('{"a": "' + "x" * 10_000 + '"}', Wide)
    value, errors = heard.value, heard.errors
    assert value is None
    assert len(errors) == ERRORS_MAX + 1
    assert all(len(error) <= ERROR_CHARS_MAX for error in errors)
    assert errors[-1] == "and 2 more"


class Scored(BaseModel):
    mood: Mood = 0.0
    confidence: Confidence = 0.0
    risk: Score10 = 0.0


def test_a_number_just_outside_its_scale_is_set_to_the_end_and_told() -> None:
    heard = read_answer('{"mood": -1.3, "confidence": 1.2, "risk": 10.5}', Scored)
    assert heard.value == Scored(mood=-1, confidence=1, risk=10)
    assert heard.notes == (
        "mood: -1.3 set to -1, the end of its scale",
        "confidence: 1.2 set to 1, the end of its scale",
        "risk: 10.5 set to 10, the end of its scale",
    )


@pytest.mark.parametrize(
    ("said", "bound"),
    [("85", "must be at most 1.0"), ("-0.5", "must be at least 0.0"), ('"much"', "takes a number")],
)
def test_a_number_that_means_something_else_is_asked_for_again_with_its_bound(
    said: str, bound: str
) -> None:
    heard = read_answer(f'{{"confidence": {said}}}', Scored)
    assert heard.value is None
    assert heard.errors[0] == f"confidence: {bound}"


def test_only_a_models_answer_is_read_so() -> None:
    with pytest.raises(ValidationError):
        Scored(confidence=1.2)


def test_a_field_that_there_is_not_is_left_out_and_noted() -> None:
    heard = read_answer('{"word": "yes", "extra": {"deep": 1}}', Answer)
    assert heard.value == Answer(word="yes")
    assert [note.split(":")[0] for note in heard.notes] == ["extra"]


def test_thoughts_are_read_where_the_text_holds_no_object_and_they_hold_one_answer() -> None:
    yes, no = '{"word": "yes"}', '{"word": "no"}'
    assert read_answer("", Answer, thoughts=[f"perhaps {yes}"]).value == Answer(word="yes")
    assert read_answer("", Answer, thoughts=[f"perhaps {yes}, or {no}"]).value is None
    assert read_answer(no, Answer, thoughts=[yes]).value == Answer(word="no")
