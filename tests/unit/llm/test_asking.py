"""Requests to a model: schemas that name facts, and JSON that is carried as it came."""

import hashlib

import orjson
import pytest

from contracts.reasons import ReasonDraft
from contracts.types import Value
from libs.llm.asking import offered_schema
from libs.llm.provider import ModelRequest, ToolEvidence, UserMessage
from libs.runtime.settings import Settings


class _Draft(Value):
    why: tuple[ReasonDraft, ...] = ()


class _Plain(Value):
    word: str


def test_the_names_of_facts_are_those_of_this_answer_alone() -> None:
    first = offered_schema(_Draft, ["AAPL.close"])
    second = offered_schema(_Draft, ["IBM.close"])
    assert first["$defs"]["FactName"]["enum"] == ["", "AAPL.close"]
    assert second["$defs"]["FactName"]["enum"] == ["", "IBM.close"]
    for schema in (first, second):
        fields = schema["$defs"]["ReasonDraft"]["properties"]
        assert fields["fact"] == fields["beside"] == {"$ref": "#/$defs/FactName"}
    assert offered_schema(_Draft, []) == _Draft.model_json_schema()
    assert offered_schema(_Plain, []) == _Plain.model_json_schema()


def test_a_request_is_hashed_as_the_json_that_it_holds() -> None:
    result = {"close": 1.5, "rows": [{"at": None, "up": True}], "text": "\u2028"}
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    request = ModelRequest(
        agent="analyst",
        model="rules",
        system="",
        system_sha256="0" * 64,
        messages=(UserMessage(text="task"),),
        output_schema=schema,
        task={"as_of": "2012-06-29", "held": [{"quantity": "1"}]},
        evidence=(ToolEvidence(id="E0", tool="price", result=result),),
    )
    dumped = request.model_dump(mode="json")
    assert dumped["evidence"] == [{"id": "E0", "tool": "price", "result": result}]
    assert dumped["output_schema"] == schema
    assert dumped["task"] == {"as_of": "2012-06-29", "held": [{"quantity": "1"}]}
    assert ModelRequest.model_validate_json(request.model_dump_json()) == request
    canonical = orjson.dumps(dumped, option=orjson.OPT_SORT_KEYS)
    assert hashlib.sha256(canonical).hexdigest() == (
        "d26c3620798183a50387c9f42bc2fd9180371d5f21595e8f26bdfd8d740ee225"
    )


@pytest.mark.parametrize("name", ["rules", "coin", "scripted"])
def test_no_endpoint_may_pass_for_a_provider_that_reads_no_message(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is built in"):
        Settings.model_validate({"providers": {name: {"base_url": "http://127.0.0.1:1/v1"}}})
