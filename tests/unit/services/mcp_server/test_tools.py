"""The tools as a client sees them before and while it calls one."""

import json
from collections.abc import Iterator
from datetime import date
from typing import Any
from uuid import uuid4

import pytest
from mcp.types import CallToolResult

from contracts.cycle import CycleRequest, CycleStatus, RequestAnswer
from contracts.exit_signal import ExitFormat
from libs.llm.reading.values import unquoted
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from services.exit_signal.report import error_of, shaped
from services.mcp_server import exit_shapes
from services.mcp_server.server import DeskServer
from services.mcp_server.shapes import fitting
from services.mcp_server.tools import tools_of
from tests.fakes.log_lines import log_lines
from tests.unit.services.exit_signal.conftest import CRASHING, NAMED, result


class Asked:
    """A desk that accepts every request, and fails at all other questions with `error`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.messages: list[Any] = []

    async def ask(self, _: object, message: Any, timeout_s: float = 0) -> RequestAnswer:
        self.messages.append(message)
        if self.error is not None:
            raise self.error
        return RequestAnswer(outcome="accepted", cycle_id=uuid4(), status=CycleStatus.RUNNING)


async def no_session() -> date:
    pytest.fail("nothing is asked")


class Forwarding:
    """Asks the desk of the test that runs."""

    desk: Asked

    async def ask(self, *question: Any, **options: Any) -> RequestAnswer:
        return await self.desk.ask(*question, **options)


@pytest.fixture
def desk() -> Asked:
    return Asked()


@pytest.fixture(scope="module")
def forwarding() -> Forwarding:
    return Forwarding()


@pytest.fixture(scope="module")
def made(forwarding: Forwarding) -> DeskServer:
    """Made once: the schemas of all tools are."""
    market = ReplayMarket(ReplayStore(None))
    return DeskServer(tools_of(forwarding, market, no_session, Settings(), may_request=True))


@pytest.fixture
def server(made: DeskServer, forwarding: Forwarding, desk: Asked) -> DeskServer:
    forwarding.desk = desk
    return made


async def text_of(server: DeskServer, name: str, arguments: dict[str, Any]) -> str:
    answer = await server.call_tool(name, arguments)
    assert isinstance(answer, CallToolResult)
    (content,) = answer.content
    assert content.type == "text"
    return content.text


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in it."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from objects(each)


async def test_schemas_are_in_one_piece_without_references(server: DeskServer) -> None:
    tools = {tool.name: tool for tool in await server.list_tools()}
    for tool in tools.values():
        for schema in (tool.input_schema, tool.output_schema):
            assert not [each for each in objects(schema) if DANGLING & each.keys()]
    status = tools["list_operations"].input_schema["properties"]["status"]
    assert "completed" in status["anyOf"][0]["enum"]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("get_stock_price", "price"),
        ("get_stock_history", "rows"),
        ("get_news", "items"),
        ("get_portfolio", "positions"),
        ("check_exit_signals", "snapshot"),
        ("check_exit_signals", "stop_price"),
        ("list_decisions", "decisions"),
        ("get_operation", "calls"),
        ("performance", "trips"),
        ("why_not", "pipelines"),
        ("list_strategies", "strategies"),
        ("plan_study", "horizons"),
        ("study_score", "sections"),
    ],
)
async def test_an_output_schema_names_the_fields(server: DeskServer, name: str, field: str) -> None:
    tools = {tool.name: tool for tool in await server.list_tools()}
    assert field in (tools[name].output_schema or {})["properties"]


@pytest.mark.parametrize("shape", ExitFormat)
@pytest.mark.parametrize("failed", [False, True])
def test_the_shape_of_a_check_names_every_field_of_every_format(
    shape: ExitFormat, failed: bool
) -> None:
    error = error_of(NAMED, "not_held", "nothing of it is held")
    answer = shaped(error if failed else result(CRASHING, stop_pct=8), shape)

    forbidding: Any = type("Whole", (exit_shapes.ExitShape,), {}, extra="forbid")
    forbidding.model_validate(answer)
    inner = answer.get("snapshot", answer)
    for row, names in (
        ("signals", exit_shapes.SignalShape.model_fields),
        ("recommended_actions", exit_shapes.ActionShape.model_fields),
    ):
        assert all(set(each) <= set(names) for each in inner.get(row, ()))


async def test_a_check_that_saves_a_file_each_time_is_not_repeatable(server: DeskServer) -> None:
    hints = {tool.name: tool.annotations for tool in await server.list_tools()}
    repeatable = {name: hint.idempotent_hint for name, hint in hints.items() if hint is not None}
    assert repeatable["check_exit_signals"] is False
    assert repeatable["get_portfolio"] is True


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"cycle_id": "4f3a", "contracts": 5}, "bad_arguments: contracts: takes a list; "),
        ({"cycle_id": "4f3a", "contract": []}, "bad_arguments: contract: unknown field; the "),
        ({}, "bad_arguments: cycle_id: is missing; "),
        ({"cycle_id": "ignore all"}, "bad_arguments: cycle_id: takes "),
    ],
)
async def test_wrong_arguments_are_refused_before_the_desk_is_asked(
    server: DeskServer, desk: Asked, arguments: dict[str, Any], text: str
) -> None:
    answer = await text_of(server, "get_cycle", arguments)
    assert answer.startswith(text)
    assert "ignore all" not in answer
    assert not desk.messages


@pytest.mark.parametrize(
    ("error", "text", "logged"),
    [
        (DeskError("no"), "desk_error: no", []),
        (
            ValueError("a secret"),
            "fault: list_cycles failed by a fault of the desk; ",
            ["mcp.failed"],
        ),
    ],
)
async def test_an_error_of_the_desk_is_an_answer_and_a_fault_says_nothing_of_its_cause(
    server: DeskServer, desk: Asked, error: Exception, text: str, logged: list[str]
) -> None:
    desk.error = error
    with log_lines() as lines:
        answer = await text_of(server, "list_cycles", {})
    assert [line["event"] for line in lines] == logged
    assert answer.startswith(text)
    assert "secret" not in answer


DANGLING = {"$ref", "$defs", "discriminator"}
LISTS = ['["ACME", "BETA"]', "ACME, BETA", '[\n  "ACME",\n  "BETA"\n]']


@pytest.mark.parametrize("text", LISTS)
async def test_lists_and_objects_that_a_client_sent_as_text_are_read(
    server: DeskServer, desk: Asked, text: str
) -> None:
    sent = {"universe": text, "constraints": '{"max_positions": 3}'}
    assert '"status":"running"' in await text_of(server, "request_cycle", sent)
    (request,) = desk.messages
    assert isinstance(request, CycleRequest)
    assert request.universe == ("ACME", "BETA")
    assert request.constraints == {"max_positions": "3"}


STUDY = {
    "name": "it",
    "dates": {"sessions": ["2012-06-29"]},
    "universe": ["AAPL", "IBM"],
    "arms": [{"name": "rules"}, {"name": "m", "provider": "claude", "without": ["risk", "trader"]}],
    "horizons": [5, 20],
}


def written(value: Any) -> str:
    """A value as a client writes it that sends every list and object as text."""
    if isinstance(value, dict):
        return json.dumps({key: as_text(each) for key, each in value.items()})
    return json.dumps([as_text(each) for each in value])


def as_text(value: Any) -> Any:
    return written(value) if isinstance(value, dict | list) else value


async def test_every_list_and_object_of_every_tool_is_read_from_text_at_any_depth(
    server: DeskServer,
) -> None:
    tools = {tool.name: tool.input_schema for tool in await server.list_tools()}
    found = 0
    for schema in tools.values():
        for name, part in schema["properties"].items():
            kinds = {each.get("type") for each in (part, *part.get("anyOf", ()))}
            if "array" in kinds:
                assert unquoted({name: '["a", "b"]'}, schema) == {name: ["a", "b"]}
                found += 1
    assert found == 4, "universe, contracts, names, sections"
    assert unquoted({"study": written(STUDY)}, tools["run_study"]) == {"study": STUDY}
    spec = {"universe": ["AAPL"], "features": [{"indicator": "rsi"}], "entry": {"long": [{}]}}
    assert unquoted({"spec": written(spec)}, tools["run_backtest"]) == {"spec": spec}


def test_texts_that_have_no_room_are_named_and_the_first_is_always_shown() -> None:
    texts = {"a": "x" * 10, "b": "y" * 10, "c": "z"}
    assert fitting(texts, 30) == (texts, ())
    assert fitting(texts, 22) == ({"a": "x" * 10, "b": "y" * 10}, ("c",))
    assert fitting(texts, 5) == ({"a": "xxxx…"}, ("b", "c"))


@pytest.mark.parametrize("text", ['["ACME"', "", "  "])
async def test_a_broken_list_stays_a_text(server: DeskServer, text: str) -> None:
    tools = {tool.name: tool for tool in await server.list_tools()}
    assert unquoted({"universe": text}, tools["request_cycle"].input_schema) == {"universe": text}
    assert (await text_of(server, "request_cycle", {"universe": text})).startswith("bad_arguments")
