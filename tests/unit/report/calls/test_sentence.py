"""A call is one sentence, whoever shows it: what was asked, about what, and what came of it."""

from datetime import UTC, datetime
from uuid import UUID

import orjson
import pytest
from pydantic import JsonValue

from contracts.operation import CallKind, JournalEntry, OperationStatus, OperationView
from libs.report.calls import sentence


def entry(kind: CallKind, name: str, request: JsonValue, reply: JsonValue) -> JournalEntry:
    return JournalEntry(
        index=0, kind=kind, name=name, request_sha256="0" * 64, request=request, reply=reply
    )


def tool(name: str, reply: JsonValue, **arguments: JsonValue) -> JournalEntry:
    return entry(CallKind.TOOL, name, {"arguments": arguments, "unread": ""}, reply)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"ticker": "AAPL", "price": 584.0, "currency": "USD"}, "584.00 USD"),
        ({"ticker": "EEE.L", "price": 800.91, "currency": "GBX"}, "800.91 GBX"),
        ({"ticker": "PNY", "price": 0.000493, "currency": "USD"}, "0.000493 USD"),
        ({"account": "main", "currency": "USD", "equity": "100000"}, "100,000.00 USD"),
        ({"ticker": "AAPL", "rows": [[1], [2]], "columns": ["a"]}, "2 rows"),
        ({"ticker": "AAPL", "items": [{}]}, "1 item"),
        ({"ticker": "AAPL", "values": {"rsi_14": 1, "close": 2, "sma_200": None}}, "2 values"),
        ({"matches": [{}]}, "1 match"),
        ({"entries": [{}]}, "1 entry"),
        ({"upcoming": {"event": "r-1", "report_date": "2012-07-24"}}, "report on 2012-07-24"),
        ({"figures": {"pe_ratio": 13.4, "period_end": "2012-03-31"}}, "figures to 2012-03-31"),
        ({"price_targets": [1]}, "1 price target"),
        ({"analyses": [{}]}, "1 analysis"),
        ({"indices": [{}]}, "1 index"),
        ({"losses": [{}]}, "1 loss"),
        ({"news": [{}]}, "news: 1"),
        ({"time_series": [{}, {}]}, "time series: 2"),
        ({"data": [{}]}, "data: 1"),
        ({"ticker": "A", "upcoming": None, "last_reported": None}, "no report date"),
        (
            {"upcoming": None, "last_reported": {"report_date": "2012-04-24"}},
            "report on 2012-04-24",
        ),
        ({"ticker": "A", "figures": None, "note": "none"}, "no figures"),
        ([], "0 items"),
        ("as it is", "as it is"),
        (None, "null"),
        ({"error": {"code": "not_in_source", "message": "no news"}}, "not_in_source"),
    ],
)
def test_a_tools_call_says_what_it_gave(reply: JsonValue, said: str) -> None:
    called = tool("get_stock_price", reply, ticker="AAPL")
    assert sentence.of_entry(called) == f"get_stock_price(AAPL) = {said}"


@pytest.mark.parametrize("reply", [{}, {"found": True, "note": "x"}])
def test_the_fields_of_an_answer_are_not_counted_as_things(reply: JsonValue) -> None:
    assert sentence.of_entry(tool("get_x", reply, ticker="AAPL")) == "get_x(AAPL)"


def test_what_a_model_or_a_read_gave_is_no_value_but_a_fault_is_named() -> None:
    reply: JsonValue = {"text": "buy", "tool_calls": []}
    assert sentence.of_entry(entry(CallKind.MODEL, "claude:large", {}, reply)) == "claude:large"
    assert sentence.of_entry(entry(CallKind.READ, "bars", {}, {"rows": [1]})) == "bars"
    fault: JsonValue = {"fault": {"code": "provider_unavailable", "message": "429"}}
    failed = entry(CallKind.MODEL, "claude:large", {}, fault)
    assert sentence.of_entry(failed) == "claude:large = provider_unavailable"


def test_the_tree_says_the_same_though_it_has_no_bodies() -> None:
    reply: JsonValue = {"ticker": "AAPL", "price": 584.0}
    text = orjson.dumps(reply).decode()
    at = datetime(2026, 3, 5, tzinfo=UTC)
    node = OperationView(
        op_id=UUID(int=1),
        cycle_id=UUID(int=2),
        type="tool",
        name="get_stock_price",
        status=OperationStatus.COMPLETED,
        metadata={
            "arguments": {"ticker": "AAPL"},
            sentence.RESULT: sentence.gives_recorded(CallKind.TOOL, text, len(text)),
        },
        created_at=at,
    )
    called = tool("get_stock_price", reply, ticker="AAPL")
    assert sentence.of_node(node) == sentence.of_entry(called)


def test_of_a_reply_that_was_cut_the_size_is_said() -> None:
    assert sentence.gives_recorded(CallKind.TOOL, '{"rows": [[1, 2', 31_240) == "31.2k bytes"
    assert sentence.gives_recorded(CallKind.MODEL, None, 0) == ""


def test_what_strangers_write_moves_no_cursor_and_stays_on_one_line() -> None:
    said = sentence.of_entry(tool("get_news\x1b[2J", "a\nb\x1b[2J" + "c" * 500, q="x\u202ey"))
    assert said.isprintable()
    assert len(said) < 300
