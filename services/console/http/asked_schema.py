"""The schema of what is asked over HTTP, as strict as a schema can be.

What fits it is taken, but for what only the desk can know (a ticker that nobody trades), and for
what compares two places of one body: two pipelines or features of one name, a `main` that is no
pipeline, a condition on a feature that there is not, a period that ends before it begins, a cell of
a study that costs more than the whole.

The contracts' own schemas say less, since a published one may not become stricter.
"""

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from contracts.indicator import INDICATORS, Indicator
from contracts.strategy import STRATEGY_NAME_PATTERN

NO_NUL = r"^[^\u0000]*$"


def _set(field: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """That a field is there, and is as `schema` says: anything but null and an empty list."""
    return {"required": [field], "properties": {field: schema or {"not": {"type": "null"}}}}


def _opens_and_closes(side: str) -> dict[str, Any]:
    """Each side has a condition of its own, or the time held, that closes it."""
    exits = {"anyOf": [_set(side, SOME), _set("hold_bars_max")]}
    return {
        "if": _set("entry", {"type": "object", **_set(side, SOME)}),
        "then": {"properties": {"exit": exits}},
    }


def _parameters(name: str, indicator: Indicator) -> dict[str, Any]:
    """An indicator takes its own parameters, within their bounds."""
    properties = {
        key: {
            "type": "integer" if parameter.whole else "number",
            "minimum": parameter.least,
            "maximum": parameter.most,
        }
        for key, parameter in indicator.parameters.items()
    }
    taken = {"properties": properties, "additionalProperties": False}
    return {
        "if": {"properties": {"indicator": {"const": name}}},
        "then": {"properties": {"parameters": taken}},
    }


SOME: Mapping[str, Any] = {"type": "array", "minItems": 1}
FIELDS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("StrategySpec", "name"): {"pattern": f"^{STRATEGY_NAME_PATTERN}$"},
    ("StrategySpec", "universe"): {"uniqueItems": True},
    ("FeatureSpec", "indicator"): {"enum": sorted(INDICATORS)},
    ("Condition", "bars_ago"): {"minimum": 0},
    ("Study", "universe"): {"uniqueItems": True},
    ("Study", "horizons"): {"uniqueItems": True},
    ("StudyDates", "sessions"): {"uniqueItems": True},
}
"""What validators in code ask of single fields, by model and field."""
WHOLES: Mapping[str, Mapping[str, Any]] = {
    **{model: {"required": ["kind"]} for model in ("MlpSpec", "LogisticSpec", "BoostingSpec")},
    "Condition": {"anyOf": [_set("above"), _set("below")]},
    "EntryRules": {"anyOf": [_set("long", SOME), _set("short", SOME)]},
    "FeatureSpec": {"allOf": [_parameters(*indicator) for indicator in INDICATORS.items()]},
    "StrategySpec": {"allOf": [_opens_and_closes(side) for side in ("long", "short")]},
    "StudyDates": {
        "if": _set("sessions", SOME),
        "then": {"properties": {name: {"type": "null"} for name in ("first", "last", "count")}},
        "else": {"allOf": [_set("first"), _set("last")]},
    },
    **{
        model: {
            "if": _set("spec"),
            "then": {"properties": {"attempts": {"const": 1}}},
        }
        for model in ("Trigger", "StrategyWish")
    },
}
"""What they ask of a whole model."""


class RequestSchema(GenerateJsonSchema):
    """Says of decimals, texts and mappings what the desk refuses in them."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """A whole number, or a text with as many digits as there is room for: a fraction that is
        written as a number is no exact amount."""
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        if digits is None or places is None:
            return super().decimal_schema(schema)
        least = schema.get("ge", schema.get("gt"))
        sign = "" if least is not None and least >= 0 else "-?"
        whole = digits - places
        most = 10**whole - 1
        return {
            "anyOf": [
                {"type": "integer", "minimum": -most if sign else int(least or 0), "maximum": most},
                {
                    "type": "string",
                    "pattern": rf"^{sign}[0-9]{{1,{whole}}}(\.[0-9]{{1,{places}}})?$",
                },
            ]
        }

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        """No text on the bus has a NUL."""
        written = super().str_schema(schema)
        return written if "pattern" in written else {**written, "pattern": NO_NUL}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """No name has one either."""
        written = super().dict_schema(schema)
        return (
            {**written, "additionalProperties": False}
            if "patternProperties" in written
            else written
        )

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Unknown fields are refused however deep, and some fields take less than their type."""
        written = super().model_schema(schema)
        name = schema["cls"].__name__
        for (model, field), more in FIELDS.items():
            if model == name:
                written["properties"][field] |= more
        return {**written, **WHOLES.get(name, {}), "additionalProperties": False}
