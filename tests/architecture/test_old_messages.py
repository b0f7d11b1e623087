"""What the version before has said is understood today, and what comes after is put up with."""

import json
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from contracts.event_data import EVENT_DATA
from contracts.message import Message, Request
from contracts.strategy import Part, StrategySpec
from contracts.strategy_cycle import StrategyDesign
from contracts.subjects.commands import COMMANDS
from contracts.subjects.subject import AnySubject
from libs.bus.codec import MessageInvalid, decode
from libs.bus.document import asyncapi
from libs.bus.document.build import models
from libs.report.strategies.files import spec_of
from tests.integration.upgrade.old_release import is_released, unpacked

ROOT = Path(__file__).parents[2]
MESSAGES = Path(__file__).parents[1] / "data" / "messages"
KINDS = sorted(path.stem for path in MESSAGES.glob("*.json"))
MODELS = {model.__name__: model for model, _ in models()}
LATER = {"said_by_a_later_version": 1}
WRITTEN_BY_PEOPLE = {StrategySpec.__name__, *(part.__name__ for part in Part.__subclasses__())}
"""A spec refuses what it does not know wherever a person gives it; on the bus it is read as all."""


def body_of(kind: str) -> bytes:
    return (MESSAGES / f"{kind}.json").read_bytes()


def model_of(kind: str) -> type[Message]:
    found = MODELS[kind.partition(".")[0]]
    assert issubclass(found, Message)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_of_the_version_before_is_understood(kind: str) -> None:
    read = decode(model_of(kind), body_of(kind))

    assert decode(type(read), read.model_dump_json().encode()) == read


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("Event.")])
def test_what_an_event_of_the_version_before_tells_is_understood(kind: str) -> None:
    event = json.loads(body_of(kind))

    EVENT_DATA[event["type"]].model_validate(event["data"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_puts_up_with_what_a_later_version_adds(kind: str) -> None:
    """Except in requests, where it may be a typing mistake."""
    model = model_of(kind)
    later = json.dumps({**json.loads(body_of(kind)), **LATER}).encode()

    if issubclass(model, Request):
        with pytest.raises(MessageInvalid, match="said_by_a_later_version"):
            decode(model, later)
    else:
        assert decode(model, later) == decode(model, body_of(kind))


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.durable)
def test_a_later_services_contract_is_understood_by_its_model_alone(row: AnySubject) -> None:
    """Not even other readers of the bus are told to refuse more, but in what people write."""
    schema = row.reply.model_json_schema()
    objects = {row.reply.__name__: schema, **schema.get("$defs", {})}
    strict = {name for name in objects if objects[name].get("additionalProperties") is False}

    assert strict <= WRITTEN_BY_PEOPLE


def test_the_orchestrator_puts_up_with_a_later_services_spec() -> None:
    spec = spec_of((ROOT / "services/cli/desk/folder/strategy.yaml").read_text())
    design = StrategyDesign(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=date(2013, 3, 1),
        spec=spec,
        spec_sha256="0" * 64,
        origin="given",
        path="strategies/trend-and-calm.yaml",
    ).model_dump(mode="json")
    design["spec"]["said_by_a_later_version"] = True
    design["spec"]["label"]["said_by_a_later_version"] = True

    assert StrategyDesign.model_validate(design, extra="ignore").spec == spec
    with pytest.raises(ValidationError):
        StrategyDesign.model_validate(design)


def test_every_kind_of_the_version_before_is_on_record() -> None:
    """A recording that had stopped half-way would prove half as much."""
    assert {"CycleRequest", "Result", "Record", "Memorize", "Event.decision"} < set(KINDS)
    commands = {row.message.__name__ for row in COMMANDS}
    assert len(commands & set(KINDS)) >= 11


def test_no_contract_of_a_release_is_broken(tmp_path: Path) -> None:
    """What is committed changes with the code; what was released does not."""
    tree = unpacked(tmp_path)
    if not is_released(tree):
        pytest.skip("history: the version before is no release, its contracts may still change")

    broken: Any = asyncapi.broken_contracts(tree / "contracts" / "schemas", asyncapi.generated())
    assert not broken, "\n".join(broken)
