"""From a model's text to a validated value, or to the few words that say what is wrong with it."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from libs.llm.provider import Evidence

ERRORS_MAX = 8
"""Errors quoted to a model at once: more of them hide the first ones."""
ERROR_CHARS_MAX = 240
OBJECTS_MAX = 50
"""JSON objects looked at in one text."""

T = TypeVar("T", bound=BaseModel)
AnswerCheck = Callable[[T, Sequence[Evidence]], Sequence[str]]
"""What is wrong with an answer beyond its schema, given the evidence it may stand on."""


def read_answer(
    text: str,
    output: type[T],
    check: AnswerCheck[T] | None = None,
    evidence: Sequence[Evidence] = (),
) -> tuple[T | None, tuple[str, ...]]:
    """The last JSON object in `text` that validates; else None and what is wrong with the last.

    Words around the objects and several objects in a row are accepted: models write both. `check`
    names what a schema cannot say, such as a ticker that nobody offered.
    """
    errors: tuple[str, ...] = ("no JSON object was found in the answer",)
    found: T | None = None
    for candidate in _objects(text):
        value, problems = _validate(candidate, output, check, evidence)
        if value is not None:
            found = value
        else:
            errors = problems
    return found, () if found is not None else errors


def _validate(
    candidate: dict[str, object],
    output: type[T],
    check: AnswerCheck[T] | None,
    evidence: Sequence[Evidence],
) -> tuple[T | None, tuple[str, ...]]:
    # Without this, the inside of a cut-off answer could pass for a whole one.
    unknown = sorted(set(candidate) - set(output.model_fields))
    if unknown:
        return None, tuple(_short(f"{name}: no such field") for name in unknown[:ERRORS_MAX])
    try:
        value = output.model_validate_json(json.dumps(candidate))
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
    raise ValueError(f"{name} is no JSON number")


def _short(text: str) -> str:
    clean = text.replace("\x00", "")
    return clean if len(clean) <= ERROR_CHARS_MAX else f"{clean[: ERROR_CHARS_MAX - 3]}..."
