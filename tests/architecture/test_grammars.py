"""Every contract that a model's answer is bound to stays within what the vendors publish.

A schema beyond these limits is refused before the first token. The desk then asks in words, but an
answer that is bound is right more often.
"""

import ast
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from contracts.reasons import NAME_CHARS_MAX
from libs.llm.asking import gives_reasons, offered_schema
from libs.llm.schema import has_maps
from libs.runtime.model_settings import FACTS_MAX

SERVICES = Path(__file__).parents[2] / "services"
ASKING = {"generate", "generate_with_tools", "sample_with_tools"}
"""Functions of the loop whose third argument is the contract."""

# Anthropic: "Structured outputs", limits of one request.
OPTIONAL_MAX = 24
UNIONS_MAX = 16
# OpenAI: "Structured outputs", supported schemas.
PROPERTIES_MAX = 5_000
LEVELS_MAX = 10
ENUM_VALUES_MAX = 1_000
NAMES_CHARS_MAX = 120_000


def bound_contracts() -> Iterator[type[BaseModel]]:
    for path in sorted(SERVICES.glob("*/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ASKING
            ):
                module = importlib.import_module(f"services.{path.parent.name}.{path.stem}")
                assert isinstance(node.args[2], ast.Name), f"{path}: the contract has no name"
                yield getattr(module, node.args[2].id)


CONTRACTS = sorted(set(bound_contracts()), key=lambda each: each.__name__)


@dataclass
class Size:
    """What of a schema counts. References count at each place where they stand."""

    optional: int = 0
    unions: int = 0
    properties: int = 0
    levels: int = 0
    enum_values: int = 0
    chars: int = 0


def size_of(schema: Mapping[str, Any]) -> Size:
    size = Size()
    _add(schema, schema.get("$defs", {}), size, 0)
    return size


def _add(part: Any, defs: Mapping[str, Any], size: Size, level: int) -> None:
    if isinstance(part, list):
        for each in part:
            _add(each, defs, size, level)
    if not isinstance(part, dict):
        return
    if "$ref" in part:
        _add(defs[part["$ref"].rpartition("/")[2]], defs, size, level)
    fields = part.get("properties", {})
    size.properties += len(fields)
    size.optional += len(set(fields) - set(part.get("required", ())))
    size.unions += "anyOf" in part or "oneOf" in part or isinstance(part.get("type"), list)
    values = part.get("enum", [])
    size.enum_values += len(values)
    size.chars += sum(len(str(each)) for each in (*fields, *values, part.get("const", "")))
    below = level + bool(fields)
    size.levels = max(size.levels, below)
    for field in fields.values():
        _add(field, defs, size, below)
    for name in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"):
        _add(part.get(name), defs, size, below)


def test_the_contracts_of_all_agents_are_found() -> None:
    names = {each.__name__ for each in CONTRACTS}
    assert {"SentimentDraft", "PlanDraft", "ResearchDraft", "PicksDraft", "ReviewDraft"} <= names
    assert len(names) >= 8


# The others hold maps and are asked for in words: no grammar is compiled.
COMPILED = [each for each in CONTRACTS if not has_maps(each.model_json_schema())]


@pytest.mark.parametrize("contract", COMPILED, ids=lambda each: each.__name__)
def test_a_contract_that_is_bound_on_claude_is_within_anthropics_limits(
    contract: type[BaseModel],
) -> None:
    # Loaded here: collecting the tests takes a second less.
    anthropic = importlib.import_module("anthropic")
    size = size_of(anthropic.transform_schema(contract.model_json_schema()))
    assert size.optional <= OPTIONAL_MAX
    assert size.unions <= UNIONS_MAX


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda each: each.__name__)
def test_a_contract_is_within_openais_limits(contract: type[BaseModel]) -> None:
    size = size_of(contract.model_json_schema())
    assert size.properties <= PROPERTIES_MAX
    assert size.levels <= LEVELS_MAX
    assert size.enum_values <= ENUM_VALUES_MAX
    assert size.chars <= NAMES_CHARS_MAX


REASONED = [each for each in CONTRACTS if gives_reasons(each)]
NAMES = tuple(f"{n:x>{NAME_CHARS_MAX}}" for n in range(FACTS_MAX))


@pytest.mark.parametrize("contract", REASONED, ids=lambda each: each.__name__)
def test_it_is_within_them_with_the_names_of_facts_bound_in(contract: type[BaseModel]) -> None:
    size = size_of(offered_schema(contract, NAMES))
    assert size.enum_values <= ENUM_VALUES_MAX
    assert size.chars <= NAMES_CHARS_MAX


def test_what_counts_is_counted() -> None:
    class Inner(BaseModel):
        a: int
        b: str = ""

    class Outer(BaseModel):
        one: Inner
        two: Inner | None = None
        kind: list[str] | int = 0

    size = size_of(Outer.model_json_schema())
    assert (size.optional, size.unions, size.properties, size.levels) == (4, 2, 7, 2)
