"""A model's values in the shape that its contract asks for, where their meaning is plain. Pure.

Only the form changes: `BULLISH` for `bullish`, `10%` for 10 of 100 or 0.1 of 1, `7/10`, `$AAPL`,
`NASDAQ:AAPL`, `AAPL (Apple Inc.)`, null for an empty list, a list of one, JSON in a string. What
could mean two things stays as it is, and validation refuses it, or raises `Unclear`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from contracts.types import TYPED_TICKER_PATTERN

CALL_NAME = "name"
"""The key of a call's name."""
WRAPPERS_MAX = 5
"""Objects around an answer that are taken off."""
TICKER_PATTERN = r"^[A-Z0-9][A-Z0-9.^=/-]{0,14}$"
"""The pattern by which a schema shows that a text is a ticker (`contracts.types.Ticker`)."""
TICKER_PATTERNS = (TICKER_PATTERN, TYPED_TICKER_PATTERN)
_TICKER = re.compile(r"\A\(?\s*(?:[A-Za-z]{2,10}\s*:\s*)?\$?\s*([A-Za-z0-9.^=/-]+)\s*\)?\Z")
_NAMED_TICKER = re.compile(r"\A\$?([A-Z0-9.^=/-]+)\s*\(([^()]*[a-z][^()]*)\)\Z")
_TICKER_OF_NAME = re.compile(
    r"\A([^()]*[a-z][^()]*)\((?:[A-Z]{2,10}\s*:\s*)?\$?([A-Z0-9.^=/-]+)\)\Z"
)
_AROUND = " \t\r\n\"'`*\u200b\u200c\u200d\u2060\ufeff"
"""Quotes, stars and what nobody sees: no part of a word."""
_NUMBER = re.compile(r"\A\s*[-+]?[0-9]+(?:\.[0-9]+)?\s*\Z")
_PERCENTAGE = re.compile(
    r"\A\s*([-+]?[0-9]+(?:\.[0-9]+)?)\s*(?:%|percent|per cent)\s*\Z", re.IGNORECASE
)
_FRACTION = re.compile(r"\A\s*([0-9]+(?:\.[0-9]+)?)\s*(?:/|out of)\s*([0-9]+)\s*\Z", re.IGNORECASE)
_HUNDRED = Decimal(100)
SCALARS = ("string", "number", "integer", "boolean")

Schema = Mapping[str, Any]
Note = Callable[[str], None]


class Unclear(ValueError):
    """An answer whose fields could mean two things; the text names the field and the remedy."""


def unwrapped(value: Mapping[str, Any], schema: Schema) -> Mapping[str, Any]:
    """The answer without objects around it: `{"answer": {...}}`, the contract's name, a schema.

    An object counts as a wrapper where it has no field of the contract, or is a JSON Schema, and
    exactly one of its values holds some. So does the object of a call, whose `name` is a field of
    some contracts too: its arguments hold all that is needed.
    """
    properties, needed = schema.get("properties", {}), {*schema.get("required", ())}
    for _ in range(WRAPPERS_MAX):
        others = [item for key, item in value.items() if key not in properties]
        inner = [item for item in map(_single, others) if _holds(item, properties)]
        is_call = (
            len(inner) == 1
            and needed <= inner[0].keys()
            and properties.keys() & value.keys() == {CALL_NAME}
        )
        if not is_call and _filled(value, properties) and not _is_schema(value, properties):
            return value
        if not is_call:
            inner = [item for item in map(_single, value.values()) if _holds(item, properties)]
        if len(inner) != 1:
            return value
        value = inner[0]
    return value


def _filled(value: Mapping[str, Any], properties: Mapping[str, Schema]) -> bool:
    """Whether the object has a field of the contract: an object in a text's place is none."""
    return any(
        not (isinstance(_single(value[name]), Mapping) and properties[name].get("type") in SCALARS)
        for name in properties.keys() & value.keys()
    )


def _holds(value: Any, properties: Mapping[str, Schema], depth: int = WRAPPERS_MAX) -> bool:
    if not isinstance(value, Mapping) or depth == 0:
        return False
    if _filled(value, properties):
        return not _is_described(value, properties)
    return any(_holds(_single(item), properties, depth - 1) for item in value.values())


def _is_schema(value: Mapping[str, Any], properties: Mapping[str, Schema]) -> bool:
    named = {"properties", "type"}
    return named <= value.keys() and not named & properties.keys()


def _is_described(value: Mapping[str, Any], properties: Mapping[str, Schema]) -> bool:
    """Whether the fields are described instead of filled: the schema came back unanswered."""
    described = [value[name] for name in properties.keys() & value.keys()]
    return all(
        isinstance(item, Mapping) and {"type", "$ref", "anyOf"} & {*item} for item in described
    )


def _single(value: Any) -> Any:
    """An object that stands alone in a list, or as text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        return value[0]
    return value


def fitted(value: Any, schema: Schema, note: Note) -> Any:
    """The value in the schema's shape. `note` gets a sentence for each field that was dropped."""
    return _Fit(schema.get("$defs", {}), note).value(value, schema, "")


def unquoted(arguments: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Arguments whose lists and objects, at any depth, came as text, as what the text holds;
    nothing else of them changes: `universe: "[\"AAPL\"]"`, `"AAPL, MSFT"`, `"AAPL"` are lists."""
    fit, properties = _Fit(schema.get("$defs", {}), lambda _: None), schema.get("properties", {})
    return {name: fit.unquoted(item, properties.get(name, {})) for name, item in arguments.items()}


class _Fit:
    def __init__(self, parts: Mapping[str, Schema], note: Note) -> None:
        self._parts = parts
        self._note = note

    def unquoted(self, value: Any, schema: Schema) -> Any:
        """A value whose lists and objects may be texts."""
        part = self._meant([], schema)
        match part.get("type"):
            case "array":
                if isinstance(value, str) and value.strip():
                    items = _list_in(value, commas=True)
                    value = [*map(_stripped, items)] if isinstance(items, list) else value
                if isinstance(value, list):
                    return [self.unquoted(item, part.get("items", {})) for item in value]
            case "object":
                value = _single(value) if isinstance(value, str) else value
                if isinstance(value, Mapping):
                    inner = part.get("properties", {})
                    return {key: self.unquoted(it, inner.get(key, {})) for key, it in value.items()}
        return value

    def value(self, value: Any, schema: Schema, place: str) -> Any:
        """One value and all that is in it."""
        schema = self._meant(value, schema)
        kind = schema.get("type")
        if kind in SCALARS and isinstance(value, list) and len(value) == 1:
            value = value[0]
        if schema.get("pattern") in TICKER_PATTERNS:
            return _ticker(value)
        match kind:
            case "object" if "properties" in schema:
                return self._object(_single(value), schema, place)
            case "array":
                return self._array(value, schema, place)
            case "number" | "integer" if isinstance(value, str | bool):
                return _number(str(value), schema)
            case "string" if isinstance(value, str):
                return _text(value, schema)
            case _:
                return value

    def _meant(self, value: Any, schema: Schema) -> Schema:
        """The schema without references; of several the one that is meant, if that is plain."""
        if "$ref" in schema:
            return self._meant(value, self._parts.get(schema["$ref"].rpartition("/")[2], {}))
        options = schema.get("anyOf") or schema.get("oneOf")
        if not options:
            return schema
        named = schema.get("discriminator")
        if named and isinstance(value, Mapping):
            kinds = [item for key, item in value.items() if _alike(key, named["propertyName"])]
            mapping = named.get("mapping", {})
            chosen = [mapping[name] for name in mapping if any(_alike(name, k) for k in kinds)]
            return self._meant(value, {"$ref": chosen[0]}) if len(chosen) == 1 else {}
        real = [option for option in options if option.get("type") != "null"]
        if value is None and len(real) < len(options):
            return {}
        numbers = [option for option in real if option.get("type") in ("number", "integer")]
        # A decimal may be a number or a text of one.
        meant = numbers or real
        return self._meant(value, meant[0]) if len(meant) == 1 else {}

    def _object(self, value: Any, schema: Schema, place: str) -> Any:
        if not isinstance(value, Mapping):
            return value
        properties: Mapping[str, Schema] = schema["properties"]
        spelled = {spelling(name): name for name in properties}
        fields: dict[str, Any] = {}
        unknown: list[str] = []
        for key, item in value.items():
            name = key if key in properties else spelled.get(spelling(key))
            if name is None:
                self._note(f"{place}{key}"[:80] + ": no such field, left out")
                unknown.append(key)
                continue
            part = properties[name]
            if item is None and "default" in part and not self._takes_null(part):
                continue
            fitted_item = self.value(item, part, f"{place}{name}.")
            if fields.setdefault(name, fitted_item) != fitted_item:
                raise Unclear(f"{place}{name} stands twice with different values; give it once")
        for name, part in properties.items():
            is_there = name in value.keys() | fields.keys()
            if not is_there and (any(self._fits(value[key], part) for key in unknown)):
                raise Unclear(
                    f"{place}{name} is missing, and its items may stand under another name; give "
                    f"each list under its own name, an empty one where there is nothing"
                )
        return fields

    def _fits(self, value: Any, part: Schema) -> bool:
        """Whether a value may be this list under another name: it has items of its shape."""
        items = self._meant({}, self._meant([], part).get("items", {}))
        needs = {*items.get("required", ())} - {"ticker"}
        if items.get("pattern") in TICKER_PATTERNS and isinstance(value, list):
            return any(isinstance(item, str) and re.match(TICKER_PATTERN, item) for item in value)
        inner = [*value.values()] if isinstance(value, Mapping) else value
        return len(needs) > 1 and any(
            isinstance(item, Mapping) and needs <= item.keys()
            for item in (inner if isinstance(inner, list) else ())
        )

    def _takes_null(self, schema: Schema) -> bool:
        return any(option.get("type") == "null" for option in schema.get("anyOf", ()))

    def _array(self, value: Any, schema: Schema, place: str) -> Any:
        items = schema.get("items", {})
        if value is None:
            return []
        if isinstance(value, str):
            value = _list_in(value, commas=items.get("pattern") in TICKER_PATTERNS)
        if isinstance(value, Mapping):
            value = self._by_ticker(value, items)
        if isinstance(value, Mapping | str) and value:
            value = [value]
        if not isinstance(value, Sequence) or isinstance(value, str):
            return value
        fitted_items = [self.value(item, items, f"{place}{n}.") for n, item in enumerate(value)]
        return self._once(fitted_items, place, tickers=items.get("pattern") in TICKER_PATTERNS)

    def _by_ticker(self, value: Mapping[str, Any], items: Schema) -> Any:
        """The list that an object by ticker stands for: `{"AAPL": {...}}`; else the object."""
        fields = self._meant({}, items).get("properties", {})
        of_items = all(
            isinstance(item, Mapping) and "ticker" not in item for item in value.values()
        )
        if not of_items or "ticker" not in fields or fields.keys() & value.keys():
            return value
        return [{"ticker": ticker, **item} for ticker, item in value.items()]

    def _once(self, items: Sequence[Any], place: str, *, tickers: bool) -> list[Any]:
        """The items without one that says the same of a ticker as an earlier one."""
        kept: list[Any] = []
        for item in items:
            ticker = item.get("ticker") if isinstance(item, Mapping) else tickers and item
            if ticker and item in kept:
                self._note(f"{place}{str(ticker)[:20]}: stands twice, counted once")
            else:
                kept.append(item)
        return kept


def _list_in(text: str, *, commas: bool) -> Any:
    """The list that a text holds as JSON, or between `commas`; else the text."""
    if not text.lstrip().startswith("["):
        return [part for part in text.split(",") if part.strip()] if commas else text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, list) else text


def _stripped(item: Any) -> Any:
    return item.strip() if isinstance(item, str) else item


def spelling(name: str) -> str:
    """A name without case, blanks and underscores: `allocationPct` is `allocation_pct`."""
    return re.sub(r"[\W_]+", "", name).lower()


def _alike(name: Any, other: Any) -> bool:
    return spelling(str(name)) == spelling(str(other))


def _text(text: str, schema: Schema) -> str:
    """A text; one of several choices in its own case."""
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices and text not in choices:
        alike = [choice for choice in choices if _alike(choice, text)]
        return alike[0] if len(alike) == 1 else text
    return text


def _ticker(value: Any) -> Any:
    """A ticker without its exchange, its company's name and what else stands around it."""
    if isinstance(value, Mapping) and [*value] == ["ticker"]:
        value = value["ticker"]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return value
    bare = value.strip(_AROUND)
    if named := _NAMED_TICKER.match(bare):
        return named[1]
    if of_name := _TICKER_OF_NAME.match(bare):
        return of_name[2]
    ticker = _TICKER.match(bare)
    return value if ticker is None else ticker[1].upper()


def _number(text: str, schema: Schema) -> Any:
    """The number that a text means on this scale; where that is not plain, no number at all.

    Parsers take more than a person writes: `1_0` and digits of other scripts for 10, yes for 1.
    """
    low, high = schema.get("minimum"), schema.get("maximum")
    try:
        percentage, fraction = _PERCENTAGE.match(text), _FRACTION.match(text)
        if percentage and low == 0 and high in (1, 100):
            share = Decimal(percentage[1])
            return _plain(share if high == 100 else share / _HUNDRED)
        if fraction and low == 0 and high in (1, 10, 100):
            part, whole = Decimal(fraction[1]), Decimal(fraction[2])
            if whole == high:
                return _plain(part)
            if high == 1 and whole in (10, 100) and part <= whole:
                return _plain(part / whole)
    except InvalidOperation:
        return f"'{text}'"
    return text.strip() if _NUMBER.match(text) else f"'{text}'"


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)
