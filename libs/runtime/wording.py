"""Refusals of a value, in plain words: where, what it takes, what was probably meant. The one home
of these words: every way into the desk refuses in them.

What was given is never quoted: it may be long, secret, or written to be read by a model.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from contracts.types import (
    NAME_PATTERN,
    TYPED_TICKER_PATTERN,
    Currency,
    IdDigits,
    Ticker,
    shortened,
)
from libs.runtime.errors import few
from libs.runtime.nearest import did_you_mean, nearest

ERRORS_MAX = 20
"""Errors told at once: who has more reads the first ones first."""
ERROR_CHARS_MAX = 2_000
FIELD_CHARS_MAX = 200
"""Of an unknown field's name, which a sender makes as long as it likes."""
WHOLE = "body"
"""The place of what is wrong with all of it."""

Words = Callable[[Mapping[str, Any]], str]


def describe(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """The problems, field by field. With the `model` that was to be read an unknown field is told
    with those that there are.
    """
    return problems_of(error.errors(include_url=False), model)[0]


def first_field(error: ValidationError) -> str | None:
    """The first field at fault."""
    return problems_of(error.errors(include_url=False))[1]


def problems_of(
    errors: Sequence[Mapping[str, Any]], model: type[BaseModel] | None = None
) -> tuple[str, str | None]:
    """Pydantic's errors as one sentence, and the first field at fault."""
    errors = [error for error in errors if not _follows(error, errors)]
    parts = [f"{place_of(error['loc'])}: {worded(error, model)}" for error in errors[:ERRORS_MAX]]
    if len(errors) > ERRORS_MAX:
        parts.append(f"and {len(errors) - ERRORS_MAX} more")
    return shortened("; ".join(parts), ERROR_CHARS_MAX), place_of(
        errors[0]["loc"]
    ) if errors else None


def _follows(error: Mapping[str, Any], errors: Sequence[Mapping[str, Any]]) -> bool:
    """A list that is too short because Pydantic left its faulty entries out: they are told."""
    loc = error["loc"]
    return error["type"] == "too_short" and any(
        len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc for other in errors
    )


def place_of(loc: object, whole: str = WHOLE) -> str:
    """A place as it is told: `universe.0`."""
    parts = loc if isinstance(loc, tuple) else ()
    # A name as the sender wrote it goes into headers, logs and terminals: nothing but plain text.
    place = "".join(c for c in ".".join(map(str, parts)) if c.isprintable())
    return place[:FIELD_CHARS_MAX] or whole


def worded(error: Mapping[str, Any], model: type[BaseModel] | None = None) -> str:
    """One of Pydantic's errors, without its place."""
    kind = str(error["type"])
    if kind == "extra_forbidden":
        return _unknown_field(error["loc"], model)
    if kind in WORDS:
        return WORDS[kind](error.get("ctx") or {})
    if kind in ("enum", "literal_error"):
        return _one_of(error)
    known = next((words for start, words in TAKES.items() if kind.startswith(start)), None)
    if known is not None:
        return f"takes {known}"
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return message.replace("Input should ", "must ")


TAKES: Mapping[str, str] = {
    "string_": "a text",
    "int_": "a whole number",
    "float_": "a number",
    "finite_": "a number that is finite",
    "bool_": "true or false",
    "date_from_datetime": "a day, as in 2012-06-29",
    "datetime_": "a moment, as in 2012-06-29T20:00:00Z",
    "timezone_": "a moment with its time zone, as in 2012-06-29T20:00:00Z",
    "date_": "a day, as in 2012-06-29",
    "uuid_": "an id, as in 1b4e28ba-2fa1-11d2-883f-0016d3cca427",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "path_": "a path",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "fields with values",
    "model_": "fields with values",
    "mapping_type": "fields with values",
    "is_instance": "a value of another type",
}
"""By how the kind of an error begins: what the place takes. The first that fits counts."""


def _patterns() -> Mapping[str, str]:
    words_by_kind = {
        Currency: "a currency of three letters, such as USD",
        IdDigits: "an id, or at least its first four characters",
        Ticker: "a ticker, such as AAPL or BRK.B",
    }
    patterns = {
        constraint.pattern: words
        for kind, words in words_by_kind.items()
        for constraint in _constraints(kind)
    }
    name = "a name: a letter, then up to 39 of a-z, 0-9, _ and -"
    return {**patterns, NAME_PATTERN: name, TYPED_TICKER_PATTERN: words_by_kind[Ticker]}


def _constraints(kind: Any) -> Iterator[Any]:
    return (constraint for constraint in kind.__metadata__ if getattr(constraint, "pattern", None))


PATTERNS = _patterns()


def _in_form(context: Mapping[str, Any]) -> str:
    pattern = str(context["pattern"])
    return f"takes {PATTERNS.get(pattern, f'a text of the form {pattern}')}"


def _at_least(context: Mapping[str, Any]) -> str:
    count = context["min_length"]
    return "must not be empty" if count == 1 else f"takes at least {count} entries"


def _long_enough(context: Mapping[str, Any]) -> str:
    count = context["min_length"]
    return "must not be empty" if count == 1 else f"takes at least {count} characters"


WORDS: Mapping[str, Words] = {
    "missing": lambda _: "is missing",
    "string_pattern_mismatch": _in_form,
    "string_too_short": _long_enough,
    "string_too_long": lambda bounds: f"takes at most {bounds['max_length']} characters",
    "too_short": _at_least,
    "too_long": lambda bounds: f"takes at most {bounds['max_length']} entries",
    "greater_than": lambda bounds: f"must be more than {bounds['gt']}",
    "greater_than_equal": lambda bounds: f"must be at least {bounds['ge']}",
    "less_than": lambda bounds: f"must be less than {bounds['lt']}",
    "less_than_equal": lambda bounds: f"must be at most {bounds['le']}",
    "int_from_float": lambda _: "takes a whole number",
    "decimal_max_digits": lambda bounds: f"takes a number of at most {bounds['max_digits']} digits",
    "decimal_max_places": lambda bounds: (
        f"takes at most {bounds['decimal_places']} digits after the point"
    ),
    "decimal_whole_digits": lambda bounds: (
        f"takes at most {bounds['whole_digits']} digits before the point"
    ),
    "json_invalid": lambda bounds: f"is not valid JSON: {bounds['error']}",
    "json_type": lambda _: "is not valid JSON",
    "union_tag_invalid": lambda bounds: _bare(
        f"{bounds['discriminator']} is one of {bounds['expected_tags']}"
    ),
    "union_tag_not_found": lambda bounds: _bare(f"{bounds['discriminator']} is missing"),
}
"""By the kind of an error: what is wrong, from its bounds."""


def _bare(text: str) -> str:
    return text.replace("'", "")


def _one_of(error: Mapping[str, Any]) -> str:
    """`'running', 'completed' or 'failed'` without its quotes, and the one that was meant."""
    expected = str(error["ctx"]["expected"])
    known = [name for name in expected.split("'")[1::2] if name]
    value = error.get("input")
    if not known:
        return f"takes {expected}"
    near = nearest(value, known) if isinstance(value, str) else None
    return f"takes {_bare(expected)}{did_you_mean(near)}"


def _unknown_field(loc: tuple[object, ...], model: type[BaseModel] | None) -> str:
    text = "unknown field"
    names = fields_at(model, loc[:-1])
    if not names:
        return text
    return f"{text}; the fields are {few(names)}{did_you_mean(nearest(str(loc[-1]), names))}"


def fields_at(model: type[BaseModel] | None, loc: Sequence[object]) -> Sequence[str]:
    """Names of the fields at a place of a model; none where several kinds of thing may stand."""
    here: Any = model
    for step in loc:
        if isinstance(step, int):
            continue  # an entry of a list has the kind of its list
        kinds = list(_models(here))
        if len(kinds) != 1:
            # What stands there is told by its tag, or by its key in a mapping.
            here = next((model for model in kinds if step in _tags(model)), here)
            continue
        field = kinds[0].model_fields.get(str(step))
        here = here if field is None else field.annotation
    models = list(_models(here))
    if len(models) != 1:
        return ()
    return [field.alias or name for name, field in models[0].model_fields.items()]


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        return
    for argument in get_args(kind):
        yield from _models(argument)


def _tags(model: type[BaseModel]) -> Sequence[str]:
    return [
        str(field.default)
        for field in model.model_fields.values()
        if isinstance(field.default, str) and get_args(field.annotation) == (field.default,)
    ]
