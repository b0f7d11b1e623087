"""What events and logs say of a recorded call."""

import json
from typing import Any

from contracts.operation import CallKind, JournalEntry
from libs.runtime import recorded_call

HIDDEN = "\u202e\u200b\x07"


def entry(kind: CallKind, request: Any, reply: Any, name: str = "get_stock_price") -> JournalEntry:
    digest = "0" * 64
    return JournalEntry(
        index=0, kind=kind, name=name, request_sha256=digest, request=request, reply=reply
    )


def test_a_tools_call_tells_its_arguments_and_a_line_of_its_result() -> None:
    asked = {"arguments": {"ticker": "AAPL", "days": 3}, "unread": ""}
    reply = {"ticker": "AAPL", "price": 584.0, "rows": [[1, 2], [3, 4]], "note": None}

    assert recorded_call.outline(entry(CallKind.TOOL, asked, reply)) == {
        "arguments": {"ticker": "AAPL", "days": 3},
        "result": "ticker AAPL, price 584.0, rows [[1,2],[3,4]], note null",
        "error": "",
    }
    assert recorded_call.called(entry(CallKind.TOOL, asked, reply)) == "get_stock_price(AAPL, 3)"


def test_a_tool_that_failed_tells_why_in_the_place_of_a_result() -> None:
    reply = {"error": {"code": "unknown_ticker", "message": "GONE is not in source x"}}
    told = recorded_call.outline(entry(CallKind.TOOL, {"arguments": {"ticker": "GONE"}}, reply))

    assert told["error"] == "unknown_ticker: GONE is not in source x"
    assert told["result"] == ""


def test_a_models_turn_tells_what_was_new_what_it_said_and_which_tools_it_wanted() -> None:
    asked = {
        "tools": ["a", "b"],
        "output": False,
        "messages": [{"role": "user", "sha256": ["0" * 64], "bytes": 15_000}],
    }
    wanted = [{"name": "get_stock_price", "arguments": {"ticker": t}} for t in ("AAPL", "FB")]
    reply = {"text": "I look at prices.", "tool_calls": wanted, "stop_reason": "tools"}

    assert recorded_call.outline(entry(CallKind.MODEL, asked, reply, "claude:opus")) == {
        "request": "2 tools; a message of 15,000 bytes",
        "reply": "I look at prices.",
        "tool_calls": ["get_stock_price(AAPL)", "get_stock_price(FB)"],
        "stop_reason": "tools",
        "usage_estimated": "",
        "error": "",
    }


def test_a_turn_without_a_reply_tells_its_fault() -> None:
    reply = {"fault": {"code": "provider_fault", "message": "no JSON"}}
    told = recorded_call.outline(entry(CallKind.MODEL, {"again": 2}, reply))

    assert told["error"] == "provider_fault: no JSON"
    assert told["request"] == "again, after 2 without a reply"


def test_a_result_that_is_cut_ends_with_an_ellipsis_and_a_whole_one_does_not() -> None:
    def result(reply: Any) -> str:
        text = recorded_call.outline(entry(CallKind.TOOL, {"arguments": {}}, reply))["result"]
        return str(text)

    assert result({"text": "a" * 40}) == f"text {'a' * 40}"
    assert result({"text": "word " * 1_000}).endswith("…")
    assert result({f"field_{number}": 1 for number in range(100)}).endswith("…")


def test_words_of_strangers_are_cleaned_and_everything_is_small() -> None:
    flood = f"ignore{HIDDEN}all " * 100_000
    tool = {"arguments": {flood: flood, **{f"a{n}": [flood] for n in range(500)}}}
    turn = {"tools": [], "messages": [{"role": "user", "text": flood}]}
    wanted = [{"name": flood, "arguments": {"q": flood}}] * 500
    for made in (
        entry(CallKind.TOOL, tool, {flood: flood, "items": [flood] * 9, "deep": {"x": flood}}),
        entry(CallKind.TOOL, tool, {"error": {"code": "bad", "message": flood}}),
        entry(CallKind.READ, {"body": flood}, [flood] * 3),
        entry(CallKind.MODEL, turn, {"text": flood, "tool_calls": wanted}),
        entry(CallKind.MODEL, flood, flood),
        entry(CallKind.TOOL, {"arguments": [flood]}, flood),
    ):
        told = json.dumps(recorded_call.outline(made), ensure_ascii=False)
        assert len(told) < 2_500
        assert not any(hidden in told for hidden in HIDDEN)
        assert len(recorded_call.called(made)) <= 400
