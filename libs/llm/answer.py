"""From a model's text to a validated value, or to the few words that say what is wrong with it.

These words say what is right, such as the choices or a limit, and never quote the answer: a small
model copies a quoted mistake into its next answer.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from contracts.types import NOTES
from libs.llm.provider import ToolEvidence
from libs.llm.reading.json_text import JsonBroken, objects_in
from libs.llm.reading.values import Unclear, fitted, unwrapped
from libs.runtime.wording import worded

ERRORS_MAX = 8
"""Errors that a model is sent at once: more of them hide the first ones."""
ERROR_CHARS_MAX = 240
NO_OBJECT = "no JSON object was found in the answer"
CLOSED = "the last brace was missing and was added"
"""The note of an answer that was closed."""

T = TypeVar("T", bound=BaseModel)
AnswerCheck = Callable[[T, Sequence[ToolEvidence]], Sequence[str]]
"""The problems of an answer beyond its schema, given the evidence it may stand on. They quote
nothing of the answer: `picks.0` names a place in it."""


@dataclass(frozen=True)
class ReadAnswer(Generic[T]):
    """The value that was read of an answer, or its problems.

    `notes` say what was left out of it or set to the end of its scale. `repaired` is the JSON after
    a repair of its punctuation, empty where none was needed. `is_other` is True of an object that
    has no field of the contract.
    """

    value: T | None
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    repaired: str = ""
    is_other: bool = False


def read_answer(
    text: str,
    output: type[T],
    check: AnswerCheck[T] | None = None,
    evidence: Sequence[ToolEvidence] = (),
    *,
    thoughts: Sequence[str] = (),
    closes: bool = False,
) -> ReadAnswer[T]:
    """The last JSON object in `text` that is about this contract, or what is wrong with it: one
    before it was a draft.

    Words around the objects and several objects in a row are accepted: models write both. `check`
    names what a schema cannot say, such as a ticker that nobody offered. Where the text holds no
    object, `thoughts` are read; there an answer counts only where one valid object is in all.
    `closes` adds last braces that alone are missing, where the answer is valid then.
    """
    answers = [*_answers(text, output, check, evidence, closes=closes)]
    if not answers:
        thought = [
            answer
            for words in thoughts
            for answer in _answers(words, output, check, evidence)
            if answer.value is not None
        ]
        alike = bool(thought) and all(answer.value == thought[0].value for answer in thought)
        return thought[0] if alike else ReadAnswer(None, (NO_OBJECT,))
    own = [answer for answer in answers if not answer.is_other]
    return (own or answers)[-1]


def _answers(
    text: str,
    output: type[T],
    check: AnswerCheck[T] | None,
    evidence: Sequence[ToolEvidence],
    *,
    closes: bool = False,
) -> Iterator[ReadAnswer[T]]:
    for item in objects_in(text, closes=closes):
        if isinstance(item, JsonBroken):
            yield ReadAnswer(None, (_short(item.error),))
            continue
        answer = _validated(item.value, item.repaired, output, check, evidence)
        if item.cut_off and answer.value is None:
            yield ReadAnswer(None, (_short(item.cut_off),))
        elif item.cut_off:
            yield replace(answer, notes=(*answer.notes, CLOSED))
        else:
            yield answer


def _validated(
    candidate: Mapping[str, Any],
    repaired: str,
    output: type[T],
    check: AnswerCheck[T] | None,
    evidence: Sequence[ToolEvidence],
) -> ReadAnswer[T]:
    schema, notes = schema_of(output), list[str]()
    try:
        fields = fitted(unwrapped(candidate, schema), schema, notes.append)
    except Unclear as error:
        return ReadAnswer(None, (_short(str(error)),))
    if candidate and not fields:
        names = ", ".join(output.model_fields)
        problem = _short(f"the answer has none of its fields: {names}")
        return ReadAnswer(None, (problem,), is_other=True)
    try:
        value = output.model_validate_json(json.dumps(fields), context={NOTES: notes})
    except ValidationError as error:
        return ReadAnswer(None, describe(error, output))
    problems = tuple(_short(problem) for problem in check(value, evidence)) if check else ()
    if problems:
        return ReadAnswer(None, problems[:ERRORS_MAX])
    return ReadAnswer(value, (), tuple(map(_short, notes[:ERRORS_MAX])), repaired)


@cache
def schema_of(output: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a contract, made once: nobody changes it."""
    return output.model_json_schema()


def describe(error: ValidationError, output: type[BaseModel]) -> tuple[str, ...]:
    """Pydantic's errors as `place: what is right there`, without the input and its own keys."""
    parts = error.errors(include_url=False)
    names = _field_names(output)
    lines = [
        _short(f"{_place(part['loc'], names)}: {worded(part, output)}")
        for part in parts[:ERRORS_MAX]
    ]
    if len(parts) > ERRORS_MAX:
        lines.append(f"and {len(parts) - ERRORS_MAX} more")
    return tuple(lines)


def _place(loc: Sequence[int | str], names: Set[str]) -> str:
    steps = [str(step) for step in loc if isinstance(step, int) or step in names]
    return ".".join(steps) or "answer"


@cache
def _field_names(output: type[BaseModel]) -> Set[str]:
    """The names of all fields in a contract and its parts."""
    schema = schema_of(output)
    parts = (schema, *schema.get("$defs", {}).values())
    return {name for part in parts for name in part.get("properties", ())}


def _short(text: str) -> str:
    clean = text.replace("\x00", "")
    return clean if len(clean) <= ERROR_CHARS_MAX else f"{clean[: ERROR_CHARS_MAX - 3]}..."
