"""The schema of what is asked over HTTP, as strict as a schema can be.

What fits it is taken, but for what only the desk can know: two pipelines of one name, a ticker that
nobody trades.

The contracts' own schemas say less, since a published one may not become stricter.
"""

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from contracts.indicator import INDICATORS
from contracts.strategy import STRATEGY_NAME_PATTERN

NO_NUL = r"^[^\u0000]*$"
MORE: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("StrategySpec", "name"): {"pattern": f"^{STRATEGY_NAME_PATTERN}$"},
    ("FeatureSpec", "indicator"): {"enum": sorted(INDICATORS)},
    ("Condition", "bars_ago"): {"minimum": 0},
}
"""What validators in code ask of single fields, by model and field."""


class Asked(GenerateJsonSchema):
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
        made = super().str_schema(schema)
        return made if "pattern" in made else {**made, "pattern": NO_NUL}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """No name has one either."""
        made = super().dict_schema(schema)
        return {**made, "additionalProperties": False} if "patternProperties" in made else made

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Unknown fields are refused however deep, and some fields take less than their type."""
        made = super().model_schema(schema)
        name = schema["cls"].__name__
        for (model, field), more in MORE.items():
            if model == name:
                made["properties"][field] |= more
        return {**made, "additionalProperties": False}
