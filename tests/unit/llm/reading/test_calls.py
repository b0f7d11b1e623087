"""Tool calls written as text: each dialect, and the words that are none."""

import time

import pytest

from contracts.types import ToolDef
from libs.llm.provider import ModelReply, StopReason, ToolCall
from libs.llm.reading.calls import calls_in_text
from libs.llm.reading.replies import with_calls

TICKER = {"type": "string", "pattern": r"^[A-Z0-9][A-Z0-9.^=/-]{0,14}$"}
TOOLS = tuple(
    ToolDef(
        name=name,
        description=name,
        parameters={
            "type": "object",
            "properties": {"ticker": TICKER, "days": {"type": "integer"}},
        },
    )
    for name in ("get_stock_price", "get_news")
)
BODY = '{"name": "get_news", "arguments": {"ticker": "AAPL"}}'
ARGUMENTS = '{"ticker": "AAPL"}'
ONE = {
    "hermes": f"<tool_call>\n{BODY}\n</tool_call>",
    "hermes without its end": f"<tool_call>{BODY}",
    "hermes with words": f"I look at it.\n<tool_call>{BODY}</tool_call>",
    "tools tag": f"<tools>{BODY}</tools>",
    "function xml": (
        "<tool_call>\n<function=get_news>\n<parameter=ticker>\nAAPL\n</parameter>\n</function>\n"
        "</tool_call>"
    ),
    "function tag around json": f"<function=get_news>{ARGUMENTS}</function>",
    "invoke": (
        '<function_calls><invoke name="get_news"><parameter name="ticker">AAPL</parameter>'
        "</invoke></function_calls>"
    ),
    "invoke with a prefix": (
        '<minimax:tool_call><invoke name="get_news"><parameter name="ticker">AAPL</parameter>'
        "</invoke></minimax:tool_call>"
    ),
    "argument pairs": (
        "<tool_call>get_news\n<arg_key>ticker</arg_key>\n<arg_value>AAPL</arg_value>\n</tool_call>"
    ),
    "tag of the tool": ("<tool_call><get_news><ticker>AAPL</ticker></get_news></tool_call>"),
    "mark and list": f"[TOOL_CALLS][{BODY}]",
    "mark and arguments": f"[TOOL_CALLS]get_news[ARGS]{ARGUMENTS}",
    "python tag": '<|python_tag|>{"name": "get_news", "parameters": {"ticker": "AAPL"}}',
    "sections": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_news:0"
        f"<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "wide sections": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_news\n```json\n"
        f"{ARGUMENTS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "channel": (
        "<|channel|>commentary to=functions.get_news <|constrain|>json<|message|>"
        f"{ARGUMENTS}<|call|>"
    ),
    "whole json": BODY,
    "fenced json": f"I will call it.\n```json\n{BODY}\n```",
    "json text": '"{\\"name\\": \\"get_news\\", \\"arguments\\": {\\"ticker\\": \\"AAPL\\"}}"',
    "arguments as text": BODY.replace(ARGUMENTS, '"{\\"ticker\\": \\"AAPL\\"}"'),
    "function object": f'{{"type": "function", "function": {BODY}}}',
    "list of calls": f'{{"tool_calls": [{BODY}]}}',
    "parameters": BODY.replace("arguments", "parameters"),
    "action": '{"action": "get_news", "action_input": {"ticker": "AAPL"}}',
    "name as key": '{"get_news": {"ticker": "AAPL"}}',
    "arguments beside the name": '{"name": "get_news", "ticker": "AAPL"}',
    "single quotes": BODY.replace('"', "'"),
    "prefix": BODY.replace("get_news", "functions.get_news"),
    "other prefix": BODY.replace("get_news", "default_api.get_news"),
    "command style": 'Action:\n```json\n[{"tool_name": "get_news", "parameters": '
    '{"ticker": "AAPL"}}]\n```',
    "twice": f"{BODY}\n{BODY}",
    "python": 'get_news(ticker="AAPL")',
    "python by place": 'get_news("AAPL")',
    "python list": '[get_news(ticker="AAPL")]',
    "python printed": '```tool_code\nprint(default_api.get_news(ticker="AAPL"))\n```',
    "python in tags": '<tool_call>\nget_news(ticker="AAPL")\n</tool_call>',
    "react": f"Thought: news\nAction: get_news\nAction Input: {ARGUMENTS}\nObservation:",
    "dollar": BODY.replace("AAPL", "$aapl"),
    "exchange": BODY.replace("AAPL", "NASDAQ:AAPL"),
    "an unknown argument": BODY.replace("AAPL", 'AAPL", "headline": "invented'),
}


def read(text: str) -> ModelReply:
    return with_calls(ModelReply(text=text, raw={"content": text}), TOOLS)


@pytest.mark.parametrize("text", ONE.values(), ids=ONE)
def test_a_call_in_any_dialect_is_read(text: str) -> None:
    reply = read(text)
    assert [(c.name, c.arguments, c.error) for c in reply.tool_calls] == [
        ("get_news", {"ticker": "AAPL"}, "")
    ]
    assert (reply.text, reply.stop_reason) == ("", StopReason.TOOL_CALLS)


@pytest.mark.parametrize(
    "text",
    [
        f"{BODY}\n{BODY.replace('AAPL', 'IBM')}",
        f"[{BODY}, {BODY.replace('AAPL', 'IBM')}]",
        f"<tool_call>{BODY}</tool_call><tool_call>{BODY.replace('AAPL', 'IBM')}</tool_call>",
        '[get_news(ticker="AAPL"), get_news(ticker="IBM")]',
    ],
)
def test_several_calls_keep_their_order_and_have_ids_of_their_own(text: str) -> None:
    calls = read(text).tool_calls
    assert [call.arguments["ticker"] for call in calls] == ["AAPL", "IBM"]
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I want no more tools.",
        'The tool get_news(ticker) gives news; {"name": "get_news"} is how one calls it.',
        '{"name": "place_order", "arguments": {"ticker": "AAPL"}}',
        '<tool_call>{"name": "place_order", "arguments": {}}</tool_call>',
        '{"picks": [], "confidence": 0.5}',
        "place_order(ticker='AAPL')",
        "get_news(ticker=__import__('os').getcwd()) and more",
    ],
)
def test_words_and_tools_that_nobody_offered_are_no_calls(text: str) -> None:
    assert read(text).tool_calls == ()
    assert read(text).text == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('<tool_call>{"name": "get_news", "arguments": {"ticker": "A"</tool_call>', "cut off"),
        ('{"name": "get_news", "arguments": {"a": 1}{"a": 2}}', "a comma is missing"),
        ('[TOOL_CALLS]get_news[ARGS]{"ticker": "A"}{"ticker": "B"}', "2 different JSON objects"),
        ("get_news(ticker=open('x'))", "not constants"),
    ],
)
def test_arguments_that_cannot_be_read_are_the_calls_error(text: str, told: str) -> None:
    [call] = read(text).tool_calls
    assert told in call.error
    assert call.arguments == {}


def test_calls_in_thoughts_count_where_nothing_was_said() -> None:
    thought = {"content": None, "reasoning_content": f"I need news <tool_call>{BODY}</tool_call>"}
    assert with_calls(ModelReply(raw=thought), TOOLS).tool_calls
    said = ModelReply(text="Nothing more.", raw=thought)
    assert with_calls(said, TOOLS) == said


def test_a_servers_own_call_has_its_prefix_taken_off_and_a_refusal_stays_one() -> None:
    call = ToolCall(id="a", name="functions.get_news", arguments={"ticker": "$AAPL"})
    reply = with_calls(ModelReply(tool_calls=(call,)), TOOLS)
    assert reply.tool_calls[0] == ToolCall(id="a", name="get_news", arguments={"ticker": "AAPL"})
    refusal = ModelReply(text=BODY, stop_reason=StopReason.REFUSAL)
    assert with_calls(refusal, TOOLS) == refusal


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 9_000,
        "to=a " * 20_000,
        "<arg_key>a" * 9_000,
        '<invoke name="a">' * 5_000,
        "[" * 90_000,
        "get_news(" * 9_000,
        "Action: a\nAction Input: " * 4_000,
        "<|tool_call_begin|>a" * 5_000,
    ],
    ids=lambda text: text[:16],
)
def test_hostile_text_is_read_in_bounded_time(text: str) -> None:
    began = time.process_time()
    calls_in_text(text, TOOLS)
    assert time.process_time() - began < 30
