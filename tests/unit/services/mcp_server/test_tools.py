"""What a client is told of the tools before it calls one."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from contracts.exit_signal import ExitFormat
from libs.llm.reading.values import unquoted
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.runtime.wording import describe
from services.exit_signal.report import error_of, shaped
from services.mcp_server import exit_shapes
from services.mcp_server.arguments import CycleArguments, DecisionsArguments
from services.mcp_server.desk import DeskLink
from services.mcp_server.handler import called
from services.mcp_server.tools import Tool, tools_of
from tests.unit.services.exit_signal.conftest import CRASHING, NAMED, result


def no_desk() -> Any:
    pytest.fail("nothing is asked")


async def no_session() -> date:
    pytest.fail("nothing is asked")


@pytest.fixture
def tools() -> dict[str, Tool]:
    market = ReplayMarket(ReplayStore(None))
    made = tools_of(DeskLink(no_desk, "mcp"), market, no_session, may_request=True)
    return {tool.name: tool for tool in made}


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in it."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from objects(each)


def test_schemas_are_in_one_piece_without_references(tools: dict[str, Tool]) -> None:
    for tool in tools.values():
        for schema in (tool.takes, tool.gives):
            assert not [each for each in objects(dict(schema)) if "$ref" in each or "$defs" in each]
    status = tools["list_operations"].takes["properties"]["status"]
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
    ],
)
def test_an_output_schema_names_the_fields(tools: dict[str, Tool], name: str, field: str) -> None:
    assert field in tools[name].gives["properties"]


@pytest.mark.parametrize("shape", ExitFormat)
@pytest.mark.parametrize("failed", [False, True])
def test_the_shape_of_a_check_names_every_field_of_every_format(
    shape: ExitFormat, failed: bool
) -> None:
    error = error_of(NAMED, "not_held", "nothing of it is held")
    answer = shaped(error if failed else result(CRASHING, stop_pct=8), shape)

    forbidding = type("Whole", (exit_shapes.ExitShape,), {}, extra="forbid")
    forbidding.model_validate(answer)
    inner = answer.get("snapshot", answer)
    for row, names in (
        ("signals", exit_shapes.SignalShape.model_fields),
        ("recommended_actions", exit_shapes.ActionShape.model_fields),
    ):
        assert all(set(each) <= set(names) for each in inner.get(row, ()))


def test_a_check_that_saves_a_file_each_time_is_not_said_to_be_repeatable(
    tools: dict[str, Tool],
) -> None:
    assert tools["check_exit_signals"].repeatable is False
    assert tools["get_portfolio"].repeatable is True


def test_ids_are_taken_by_their_first_digits() -> None:
    assert DecisionsArguments.model_validate({"cycle_id": "4f3a"}).cycle_id == "4f3a"


def test_a_list_that_was_expected_is_called_one() -> None:
    with pytest.raises(ValueError, match="valid tuple") as caught:
        CycleArguments.model_validate({"cycle_id": "4f3a", "contracts": "plan"})
    assert describe(caught.value) == "contracts: takes a list"  # type: ignore[arg-type]


LISTS = ['["ACME", "BETA"]', "ACME, BETA", '[\n  "ACME",\n  "BETA"\n]']


@pytest.mark.parametrize("text", LISTS)
async def test_lists_and_objects_that_a_client_sent_as_text_are_read_in_every_tool(
    tools: dict[str, Tool], text: str
) -> None:
    count = 0
    for tool in tools.values():
        arguments: dict[str, Mapping[str, Any]] = {}

        async def heard(given: Mapping[str, Any], name: str = tool.name) -> Mapping[str, Any]:
            arguments[name] = given  # noqa: B023 - it is called within this turn
            return {}

        sent = {name: text for name, part in tool.takes["properties"].items() if _is_list(part)}
        await called({tool.name: replace(tool, run=heard)}, tool.name, sent)
        assert arguments[tool.name] == {name: ["ACME", "BETA"] for name in sent}
        count += len(sent)
    assert count >= 2
    sent = {"universe": "ACME", "constraints": '{"max_positions": 3}', "kind": "[1]"}
    body = unquoted(sent, tools["request_cycle"].takes)
    assert body == {"universe": ["ACME"], "constraints": {"max_positions": 3}, "kind": "[1]"}
    for broken in ('["ACME"', "", "  "):
        assert unquoted({"universe": broken}, tools["request_cycle"].takes) == {"universe": broken}


def _is_list(schema: Mapping[str, Any]) -> bool:
    return "array" in [part.get("type") for part in (schema, *schema.get("anyOf", ()))]
