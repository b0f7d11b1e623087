"""Calls that come in pieces, as servers number and name them."""

import json
from typing import Any

import pytest

from libs.llm.endpoints.openai import reply_of
from libs.llm.endpoints.streams import OpenAIAssembly

A, B = '{"ticker": "A"}', '{"ticker": "B"}'


def piece(name: str | None = None, arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    given = {"name": name, "arguments": arguments}
    return {**fields, "function": {k: v for k, v in given.items() if v is not None}}


SAME = {
    "an index each": [piece("get", A, index=0, id="x"), piece("get", B, index=1, id="y")],
    "ids, one index": [piece("get", A, index=0, id="x"), piece("get", B, index=0, id="y")],
    "one index, no ids": [piece("get", A, index=0), piece("get", B, index=0)],
    "no index, no ids": [piece("get", A), piece("get", B)],
    "no index, in pieces": [piece("get", A[:5]), piece(None, A[5:]), piece("get", B)],
    "one index, in pieces": [
        piece("get", "", index=0),
        piece(None, A[:5], index=0),
        piece(None, A[5:], index=0),
        piece("get", B[:5], index=0),
        piece(None, B[5:], index=0),
    ],
    "name in every piece": [
        piece("get", A[:5], index=0),
        piece("get", A[5:], index=0),
        piece("get", B[:5], index=0),
        piece("get", B[5:], index=0),
    ],
    "name in parts": [
        piece("g", "", index=0, id="x"),
        piece("et", A, index=0),
        piece("get", B, index=1, id="y"),
    ],
    "name that grows": [
        piece("g", "", index=0),
        piece("get", A, index=0),
        piece("get", B, index=1),
    ],
    "name once more at the end": [
        piece("get", A, index=0),
        piece("get", "", index=0),
        piece("get", B, index=1),
    ],
}


def assembled(pieces: list[dict[str, Any]], **message: Any) -> bytes:
    assembly = OpenAIAssembly()
    for one in pieces:
        assembly.add({"choices": [{"index": 0, "delta": {"tool_calls": [one]}}]})
    for name, value in message.items():
        assembly.add({"choices": [{"index": 0, "delta": {name: value}}]})
    assembly.add({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return json.dumps(assembly.body()).encode()


@pytest.mark.parametrize("pieces", SAME.values(), ids=SAME)
def test_calls_in_pieces_are_put_together_as_they_were_sent(pieces: list[dict[str, Any]]) -> None:
    calls = reply_of("it", assembled(pieces)).tool_calls
    assert [(call.name, call.arguments) for call in calls] == [
        ("get", {"ticker": "A"}),
        ("get", {"ticker": "B"}),
    ]
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        A,
        json.dumps(A),
        f"{A}{A}",
        f"{A}</tool_call>",
        "{'ticker': 'A'}",
        '{"ticker": "A",}',
        f"```json\n{A}\n```",
    ],
)
def test_arguments_are_read_however_they_are_written(arguments: str) -> None:
    [call] = reply_of("it", assembled([piece("get", arguments, index=0)])).tool_calls
    assert (call.arguments, call.error) == ({"ticker": "A"}, "")


@pytest.mark.parametrize("arguments", ["", "null", '""', "{}"])
def test_no_arguments_in_any_form(arguments: str) -> None:
    [call] = reply_of("it", assembled([piece("get", arguments, index=0)])).tool_calls
    assert (call.arguments, call.error) == ({}, "")


@pytest.mark.parametrize("arguments", [f"{A}{B}", "AAPL", '{"ticker": "A"', "[1]"])
def test_arguments_that_are_not_plain_are_the_calls_error(arguments: str) -> None:
    [call] = reply_of("it", assembled([piece("get", arguments, index=0)])).tool_calls
    assert call.error.startswith("the arguments")
    assert call.arguments == {}


def test_the_older_form_of_a_call_is_one() -> None:
    body = assembled([], function_call={"name": "get", "arguments": A})
    [call] = reply_of("it", body).tool_calls
    assert (call.name, call.arguments) == ("get", {"ticker": "A"})
