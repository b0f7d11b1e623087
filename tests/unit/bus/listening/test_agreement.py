"""FastStream's own view of what may be heard, beside the desk's AsyncAPI document."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from contracts.audit import Event, EventType
from contracts.event_data import EVENT_DATA, EventOf
from libs.bus.listening.listener import Listener

Json = dict[str, Any]
DOCUMENT = Path(__file__).parents[4] / "contracts" / "schemas" / "asyncapi.json"
BOUNDS = (
    "type",
    "enum",
    "const",
    "format",
    "pattern",
    "additionalProperties",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
)


@pytest.fixture(scope="module")
def ours() -> Json:
    """The desk's document."""
    document: Json = json.loads(DOCUMENT.read_text())
    return document


def view(kind: EventType, model: Any) -> Json:
    """What FastStream says of a program that hears one type."""
    listener = Listener("nats://127.0.0.1:4222", "user", Path("nowhere"))

    async def on_event(event: Any) -> None:
        """Do something about it."""

    on_event.__annotations__ = {"event": model, "return": None}
    listener.hears(kind)(on_event)
    document: Json = json.loads(listener.program.schema.to_specification().to_json())
    return document


def at(document: Json, reference: str) -> Json:
    """What a reference points to."""
    found = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[unquote(part).replace("~1", "/")]
    return found


def resolved(document: Json, schema: Any) -> Any:
    """A schema behind its references."""
    while isinstance(schema, Mapping) and "$ref" in schema:
        schema = at(document, schema["$ref"])
    return schema


def message(document: Json, channel: Json) -> Json:
    """A channel's only message."""
    (reference,) = channel["messages"].values()
    found: Json = resolved(document, reference)
    return found


def facts(document: Json, schema: Any, path: str = "", seen: tuple[str, ...] = ()) -> Iterator[str]:
    """What a schema says of each field, a line each, whichever side it is described from.

    A reader takes a number for a decimal string, and may leave out what has a default; a writer
    does neither. Both are left out here.
    """
    reference = schema.get("$ref", "") if isinstance(schema, Mapping) else ""
    if reference and reference in seen:
        return
    schema = resolved(document, schema)
    seen = (*seen, reference)
    choices = [each for key in ("anyOf", "oneOf") for each in schema.get(key, ())]
    is_decimal = {"number", "string"} <= {each.get("type") for each in choices}
    for choice in choices:
        if not (is_decimal and choice.get("type") == "number"):
            yield from facts(document, choice, path, seen)
    for part in schema.get("allOf", ()):
        yield from facts(document, part, path, seen)
    for key in BOUNDS:
        if key in schema and not isinstance(schema[key], Mapping):
            yield f"{path}: {key} {schema[key]}"
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from facts(document, field, f"{path}.{name}", seen)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from facts(document, schema[key], f"{path}[]", seen)
    for number, item in enumerate(schema.get("prefixItems", ())):
        yield from facts(document, item, f"{path}[{number}]", seen)


def without_free_form(lines: set[str]) -> set[str]:
    """Leaves out what Event says of `data` before its type is known: any JSON."""
    return {line for line in lines if line not in {".data: type object", ".data[]"}}


@pytest.mark.parametrize("kind", EventType)
def test_both_describe_the_same_channel_and_message(kind: EventType, ours: Json) -> None:
    theirs = view(kind, EventOf.__class_getitem__(EVENT_DATA[kind]))
    (channel,) = theirs["channels"].values()
    (operation,) = theirs["operations"].values()
    (key,) = (
        key for key, each in ours["channels"].items() if each["address"] == channel["address"]
    )

    assert key.startswith("evt.")
    assert key.endswith(f".{kind}")
    # The desk sends what the program receives.
    assert (ours["operations"][key]["action"], operation["action"]) == ("send", "receive")
    assert "reply" not in operation

    says = set(facts(ours, message(ours, ours["channels"][key])["payload"]))
    hears = set(facts(theirs, message(theirs, channel)["payload"]))
    assert len(hears) > 20
    const = f".type: const {kind}"
    assert const in says
    assert without_free_form(hears) == without_free_form(says - {const})


def test_a_plain_handler_is_described_by_the_event_alone(ours: Json) -> None:
    theirs = view(EventType.DECISION, Event)
    (channel,) = theirs["channels"].values()
    event = ours["components"]["schemas"]["Event"]
    assert set(facts(theirs, message(theirs, channel)["payload"])) == set(facts(ours, event))


def test_the_program_connects_as_the_document_says(ours: Json) -> None:
    (server,) = view(EventType.DECISION, Event)["servers"].values()
    assert server["protocol"] == ours["servers"]["desk"]["protocol"] == "nats"


def test_a_difference_would_be_seen(ours: Json) -> None:
    placed, filled = (
        set(facts(ours, message(ours, ours["channels"][f"evt.execution.{kind}"])["payload"]))
        for kind in (EventType.ORDER_PLACED, EventType.ORDER_FILLED)
    )
    assert {".data.price", ".data.fee", ".data.session"} <= filled - placed
