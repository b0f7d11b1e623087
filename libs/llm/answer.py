"""From a model's text to a validated value, or to the few words that say what is wrong with it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from contracts.types import CLAMPED
from libs.llm.provider import Evidence

ERRORS_MAX = 8
"""Errors quoted to a model at once: more of them hide the first ones."""
ERROR_CHARS_MAX = 240
OBJECTS_MAX = 50
"""JSON objects looked at in one text."""

T = TypeVar("T", bound=BaseModel)
AnswerCheck = Callable[[T, Sequence[Evidence]], Sequence[str]]
"""The problems of an answer beyond its schema, given the evidence it may stand on."""


@dataclass(frozen=True)
class ReadAnswer(Generic[T]):
    """The value that was read of an answer, or its problems. `clamped` tells of numbers just
    outside their scale that were set to its end.
    """

    value: T | None
    errors: tuple[str, ...] = ()
    clamped: tuple[str, ...] = ()


def read_answer(
    text: str,
    output: type[T],
    check: AnswerCheck[T] | None = None,
    evidence: Sequence[Evidence] = (),
) -> ReadAnswer[T]:
    """The last JSON object in `text` that validates; else None and what is wrong with the last.

    Words around the objects and several objects in a row are accepted: models write both. `check`
    names what a schema cannot say, such as a ticker that nobody offered.
    """
    errors: tuple[str, ...] = ("no JSON object was found in the answer",)
    valid: ReadAnswer[T] | None = None
    for candidate in _objects(text):
        clamped: list[str] = []
        value, problems = _validate(candidate, output, check, evidence, clamped)
        if value is not None:
            valid = ReadAnswer(value, clamped=tuple(map(_short, clamped[:ERRORS_MAX])))
        else:
            errors = problems
    return valid or ReadAnswer(None, errors)


def _validate(
    candidate: dict[str, object],
    output: type[T],
    check: AnswerCheck[T] | None,
    evidence: Sequence[Evidence],
    clamped: list[str],
) -> tuple[T | None, tuple[str, ...]]:
    # Without this, the inside of a cut-off answer could pass for a whole one.
    unknown = sorted(set(candidate) - set(output.model_fields))
    if unknown:
        return None, tuple(_short(f"{name}: no such field") for name in unknown[:ERRORS_MAX])
    try:
        value = output.model_validate_json(json.dumps(candidate), context={CLAMPED: clamped})
    except ValidationError as error:
        return None, describe(error)
    problems = tuple(_short(problem) for problem in check(value, evidence)) if check else ()
    return (None, problems[:ERRORS_MAX]) if problems else (value, ())


def describe(error: ValidationError) -> tuple[str, ...]:
    """Pydantic's errors as `place: what is wrong`, without the input that they would echo."""
    parts = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        _short(f"{'.'.join(str(step) for step in part['loc']) or 'answer'}: {part['msg']}")
        for part in parts[:ERRORS_MAX]
    ]
    if len(parts) > ERRORS_MAX:
        lines.append(f"and {len(parts) - ERRORS_MAX} more")
    return tuple(lines)


def _objects(text: str) -> Iterator[dict[str, object]]:
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    place = text.find("{")
    for _ in range(OBJECTS_MAX):
        if place < 0:
            return
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield value
        place = text.find("{", end)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _short(text: str) -> str:
    clean = text.replace("\x00", "")
    return clean if len(clean) <= ERROR_CHARS_MAX else f"{clean[: ERROR_CHARS_MAX - 3]}..."
