"""The published AsyncAPI document and schemas: valid, complete, and what the contracts say."""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from contracts.audit import EventType
from contracts.event_data import EVENT_DATA
from contracts.memory import MemoryDraft
from contracts.research import PlanDraft, QuantDraft, ResearchDraft
from contracts.risk import DecisionValidation, ReviewDraft
from contracts.sentiment import SentimentDraft
from contracts.strategy import StrategyDraft
from contracts.subjects.commands import COMMANDS
from contracts.subjects.subject import PREFIX, Class
from contracts.trader import PicksDraft
from libs.bus.document import asyncapi
from libs.bus.document.build import ROWS, models
from services.orchestrator.machine.workflows import WORKFLOWS


@pytest.fixture(scope="module")
def directory(root: Path) -> Path:
    return root / "contracts" / "schemas"


@pytest.fixture(scope="module")
def document(directory: Path) -> dict[str, Any]:
    return json.loads((directory / asyncapi.DOCUMENT).read_text())


@pytest.fixture(scope="module")
def asyncapi_schema(root: Path) -> Any:
    schema = json.loads((root / "tests/data/json_schemas/asyncapi-3.0.0.json").read_text())
    return jsonschema.Draft7Validator(schema)


@pytest.fixture(scope="module")
def generated() -> str:
    """What the contracts say, made once: it takes more than a second."""
    return asyncapi.generated()


@pytest.fixture
def made_once(monkeypatch: pytest.MonkeyPatch, generated: str) -> None:
    """The command writes what was made already."""
    monkeypatch.setattr(asyncapi, "generated", lambda: generated)


def test_what_is_committed_is_what_the_contracts_say(directory: Path, generated: str) -> None:
    is_current = (directory / asyncapi.DOCUMENT).read_text() == generated
    assert is_current, "run `make contracts` and commit"


def test_the_document_is_valid_asyncapi_3(document: Any, asyncapi_schema: Any) -> None:
    errors = [
        f"{list(e.absolute_path)}: {e.message}" for e in asyncapi_schema.iter_errors(document)
    ]
    assert not errors


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.update(asyncapi="9"),
        lambda d: d["info"].pop("title"),
        lambda d: next(iter(d["operations"].values())).update(action="shout"),
        lambda d: next(iter(d["channels"].values())).update(adress="desk"),
        lambda d: d["servers"]["desk"].pop("protocol"),
    ],
)
def test_the_validation_sees_damage(damage: Any, document: Any, asyncapi_schema: Any) -> None:
    damaged = copy.deepcopy(document)
    damage(damaged)
    assert not asyncapi_schema.is_valid(damaged)


def test_every_reference_leads_somewhere(document: Any) -> None:
    def references(node: Any) -> Any:
        if isinstance(node, dict):
            yield from ([node["$ref"]] if "$ref" in node else [])
            node = list(node.values())
        if isinstance(node, list):
            for each in node:
                yield from references(each)

    for reference in set(references(document)):
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def test_every_row_of_the_subject_table_is_described(document: Any) -> None:
    addresses = {channel["address"] for channel in document["channels"].values()}
    for row in ROWS:
        variable = {
            Class.EVENT: ".{cycle_id}",
            Class.NOTICE: ".{cycle_id}",
            Class.COMMAND: "",
        }.get(row.kind, ".{caller}")
        address = f"{PREFIX}.ctl.{{service}}.cancel" if row.kind is Class.CONTROL else None
        assert (address or row.address + variable) in addresses
    assert f"{PREFIX}.dlq.{{owner}}.{{what}}" in addresses
    assert {row.kind for row in ROWS} | {Class.DEAD_LETTER} == set(Class)


def test_every_question_names_its_answer(document: Any) -> None:
    for operation in document["operations"].values():
        asked = operation["action"] == "receive"
        assert asked == ("reply" in operation)
    for row in COMMANDS:
        operation = document["operations"][f"cmd.{row.owner}.{row.what}"]
        assert operation["x-result-contract"] in {model.__name__ for model, _ in models()}


@pytest.mark.slow
def test_every_schema_is_a_valid_json_schema(document: Any) -> None:
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.slow
def test_a_list_is_limited_by_its_items_and_by_nothing_that_schemas_have_for_texts() -> None:
    """A validator before a limit makes `maxItems` to `maxLength`, which says nothing of a list."""

    def lists(schema: Any) -> Iterator[Mapping[str, Any]]:
        parts = schema.values() if isinstance(schema, dict) else schema
        if isinstance(schema, dict) and schema.get("type") == "array":
            yield schema
        for part in parts if isinstance(schema, (dict, list)) else ():
            yield from lists(part)

    drafts = (SentimentDraft, PlanDraft, QuantDraft, ResearchDraft, PicksDraft, ReviewDraft)
    described = [model for model, _ in models()]
    found = [
        (model.__name__, each)
        for model in (*drafts, MemoryDraft, StrategyDraft, *described)
        for each in lists(model.model_json_schema())
        if {"minLength", "maxLength"} & set(each)
    ]
    assert found == []


def test_every_event_type_says_what_its_data_holds() -> None:
    assert set(EVENT_DATA) == set(EventType)


def test_what_a_workflow_announces_is_what_the_document_says() -> None:
    for workflow in WORKFLOWS:
        for state in (*workflow.shared, *workflow.states):
            for step in state.steps:
                if step.announces is not None:
                    assert step.serves.reply is EVENT_DATA[step.announces]
    assert EVENT_DATA[EventType.DECISION] is DecisionValidation


@pytest.mark.slow
def test_generating_twice_gives_the_same_bytes(generated: str) -> None:
    assert asyncapi.generated() == generated


def _published(directory: Path) -> tuple[Path, dict[str, Any]]:
    asyncapi.main([str(directory)])
    path = directory / asyncapi.DOCUMENT
    return path, json.loads(path.read_text())


@pytest.mark.usefixtures("made_once")
def test_writing_refuses_to_break_a_contract(tmp_path: Path) -> None:
    published, body = _published(tmp_path)
    request = body["components"]["schemas"]["CycleRequest"]
    request["properties"]["once_promised"] = {"type": "string"}
    published.write_text(json.dumps(body))

    with pytest.raises(SystemExit, match="CycleRequest: once_promised was removed"):
        asyncapi.main([str(tmp_path)])
    assert "once_promised" in published.read_text()
    asyncapi.main([str(tmp_path), "--replace"])
    assert "once_promised" not in published.read_text()


@pytest.mark.usefixtures("made_once")
def test_checking_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="run `make contracts`"):
        asyncapi.main([str(tmp_path), "--check"])
    assert not (tmp_path / asyncapi.DOCUMENT).exists()


@pytest.mark.usefixtures("made_once")
def test_a_subject_that_is_gone_is_a_break(tmp_path: Path, generated: str) -> None:
    _, body = _published(tmp_path)
    body["channels"]["evt.orchestrator.told_once"] = {"address": "desk.v1.x", "messages": {}}
    assert asyncapi.broken_contracts(body, json.loads(generated)) == [
        "channel evt.orchestrator.told_once was removed or carries something else"
    ]
