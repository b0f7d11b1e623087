"""Tool calls that a model wrote as text, by the dialects that models and their servers use. Pure.

A server without a parser for its model's dialect hands the model's own notation on as text. It is
read where it is unambiguous: in the notation's own tags, or as JSON or Python that is the whole
text or a whole fenced block, and names a tool that was offered. Words beside tags are passed over.

- tags around JSON, `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`: Hermes, Qwen
- tags around XML, `<function=NAME><parameter=KEY>VALUE</parameter></function>`: Qwen Coder, Llama
- invoke, `<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>`: Claude, MiniMax
- keys and values, `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>`:
  GLM
- behind a mark, `[TOOL_CALLS][{...}]`, `[TOOL_CALLS]NAME[ARGS]{...}`, `<|python_tag|>{...}`:
  Mistral, Llama
- sections, `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}`: Kimi, DeepSeek
- channels, `<|channel|>commentary to=functions.NAME <|message|>{...}`: gpt-oss
- bare or fenced JSON, `{"name": ..., "arguments": {...}}`, several, a list, `{"NAME": {...}}`: Qwen
  Coder and many small models
- Python, `[NAME(key="value")]`, `print(default_api.NAME(key="value"))`: Llama, Gemini, Gemma
- ReAct, `Action: NAME` and `Action Input: {...}`: older models
"""

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.types import ToolDef
from libs.llm.provider import ToolCall
from libs.llm.reading.json_text import JsonFound, object_of, objects_in

CALLS_MAX = 100
"""Calls read of one text."""
TEXT_CHARS_MAX = 100_000
PYTHON_CHARS_MAX = 20_000
PREFIXES = ("functions.", "default_api.", "tools.", "tool.", "functions::")
"""Words that models set before a tool's name."""
_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
_ARGUMENT_KEYS = (
    "arguments",
    "parameters",
    "args",
    "input",
    "tool_input",
    "action_input",
    "params",
    "kwargs",
    "tool_parameters",
)
_LIST_KEYS = ("tool_calls", "tool_uses", "calls", "function_calls")
_FENCED = re.compile(r"```[\w-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_TAGGED = re.compile(
    r"<(tool_calls?|function_calls?|tool_use|tools|functioncall)>(.*?)(?:</\1>|(?=<\1>)|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_MARKED = re.compile(
    r"(?:\[TOOL_CALLS\]|<\|python_tag\|>|<functools>|functools)\s*(.*?)"
    r"(?=\[TOOL_CALLS\]|<\|python_tag\|>|<\|eom_id\|>|<\|eot_id\|>|\Z)",
    re.DOTALL,
)
_FUNCTION_XML = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|(?=<function=)|\Z)", re.DOTALL)
_PARAMETER_XML = re.compile(
    r"<parameter=([^>\s]+)>(.*?)(?:</parameter>|(?=<parameter=)|(?=</function>)|\Z)", re.DOTALL
)
_INVOKE = re.compile(
    r"<(?:[\w-]+:)?invoke\s+name=[\"']([^\"']+)[\"']\s*>(.*?)(?:</(?:[\w-]+:)?invoke>|\Z)",
    re.DOTALL,
)
_INVOKE_PARAMETER = re.compile(
    r"<(?:[\w-]+:)?parameter\s+name=[\"']([^\"']+)[\"'][^>]*>(.*?)(?:</(?:[\w-]+:)?parameter>|\Z)",
    re.DOTALL,
)
_ARG_PAIR = re.compile(
    r"<arg_key>([^<]*)</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|\Z)", re.DOTALL
)
_ARGS_MARK = re.compile(r"\A\s*([\w.:-]+)\s*(?:\[CALL_ID\][^\[]*)?\[ARGS\]\s*(.*)\Z", re.DOTALL)
_SECTION = re.compile(
    r"<[|｜]tool[_▁]call[_▁]begin[|｜]>\s*(?:function\s*<[|｜]tool[_▁]sep[|｜]>)?\s*([\w.:-]+)\s*"
    r"(?:<[|｜]tool[_▁]call[_▁]argument[_▁]begin[|｜]>|<[|｜]tool[_▁]sep[|｜]>)?\s*"
    r"(.*?)(?:<[|｜]tool[_▁]call[_▁]end[|｜]>|(?=<[|｜]tool[_▁]call[_▁]begin)|\Z)",
    re.DOTALL,
)
_CHANNEL = re.compile(
    r"to=([\w.:-]+)[^{]{0,200}?<\|message\|>(.*?)(?:<\|call\|>|<\|end\|>|<\|channel\|>|\Z)",
    re.DOTALL,
)
_REACT = re.compile(
    r"^\s*Action\s*:\s*`?([\w.:-]+)`?\s*\n\s*Action[ _]Input\s*:\s*(.*?)"
    r"(?=^\s*(?:Action|Observation|Thought|Final Answer)\s*:|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_KEY_VALUE_TAG = re.compile(r"\A\s*<([\w.:-]+)>\s*(.*?)\s*</\1>\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Written:
    """A call as it was written: its name, and its arguments or what is wrong with them."""

    name: str
    arguments: Mapping[str, Any] | str


def calls_in_text(text: str, tools: Sequence[ToolDef]) -> tuple[ToolCall, ...]:
    """The calls that a text makes of the offered tools; none where it is words, or ambiguous.

    Arguments that cannot be read are the call's `error`, which the model is told. The same call
    written twice counts once.
    """
    text = text[:TEXT_CHARS_MAX]
    offered = {tool.name: tool for tool in tools}
    for read in _DIALECTS:
        written = [*_known(read(text, offered), offered)]
        if written:
            return _as_calls(written)
    return ()


def plain_name(name: str) -> str:
    """A tool's name without what models set around it: `functions.get_news:0` is `get_news`."""
    name = name.strip().strip("`'\"")
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return re.sub(r"(?::\d+|\(\))\Z", "", name)


def _known(written: Iterable[_Written], offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    for call in written:
        name = plain_name(call.name)
        if name in offered:
            yield _Written(name, call.arguments)


def _as_calls(written: Sequence[_Written]) -> tuple[ToolCall, ...]:
    once: dict[str, _Written] = {}
    for call in written[:CALLS_MAX]:
        once.setdefault(
            f"{call.name} {json.dumps(call.arguments, sort_keys=True, default=str)}", call
        )
    return tuple(
        ToolCall(id=f"text_{place}", name=call.name, error=f"the arguments: {call.arguments}")
        if isinstance(call.arguments, str)
        else ToolCall(id=f"text_{place}", name=call.name, arguments=dict(call.arguments))
        for place, call in enumerate(once.values())
    )


def _arguments(text: str) -> Mapping[str, Any] | str:
    return object_of(text) if text.strip() else {}


def _function_xml(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    del offered
    for name, body in _FUNCTION_XML.findall(text):
        pairs = _PARAMETER_XML.findall(body)
        yield _Written(name, _values(pairs) if pairs or not body.strip() else _arguments(body))


def _invoke(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    del offered
    for name, body in _INVOKE.findall(text):
        pairs = _INVOKE_PARAMETER.findall(body)
        yield _Written(name, _values(pairs) if pairs or not body.strip() else _arguments(body))


def _values(pairs: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    """Keys and their texts; a text that is a JSON list or object is what it holds."""
    return {key.strip(): _value(text.strip()) for key, text in pairs}


def _value(text: str) -> Any:
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _sections(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    del offered
    for name, body in _SECTION.findall(text):
        yield _Written(name, _arguments(body))


def _channels(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    del offered
    for name, body in _CHANNEL.findall(text):
        yield _Written(name, _arguments(body))


def _tagged(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    for _, body in _TAGGED.findall(text):
        pairs = _ARG_PAIR.findall(body)
        if pairs:
            yield _Written(body.partition("<arg_key>")[0], _values(pairs))
        else:
            yield from _body(body, offered)


def _marked(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    for body in _MARKED.findall(text):
        named = _ARGS_MARK.match(body)
        if named:
            yield _Written(named[1], _arguments(named[2]))
        else:
            yield from _body(body, offered)


def _body(body: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    """The calls between tags: JSON, a Python call, a tag of the tool's name, or the bare name."""
    calls = [*_json_calls(body, offered), *([] if "{" in body else _python_calls(body, offered))]
    if calls:
        yield from calls
        return
    tag = _KEY_VALUE_TAG.match(body[:PYTHON_CHARS_MAX])
    if tag and plain_name(tag[1]) in offered:
        pairs = re.findall(r"<([\w-]+)>(.*?)</\1>", tag[2], re.DOTALL)
        yield _Written(tag[1], _values(pairs) if pairs or not tag[2] else _arguments(tag[2]))
    name, _, rest = body.strip().partition("\n")
    if plain_name(name) in offered:
        yield _Written(name, _arguments(rest))


def _whole(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    """JSON or Python that is the whole text, or a whole fenced block."""
    blocks = [block for block in _FENCED.findall(text) if block.strip()]
    for block in blocks or [text]:
        if _is_only_json(block):
            yield from _json_calls(block, offered)
        else:
            yield from _python_calls(block, offered)


def _is_only_json(text: str) -> bool:
    bare = text.strip()
    return bare[:1] in ("{", '"') or (bare[:1] == "[" and bare[1:].lstrip()[:1] in ("{", "]"))


def _json_calls(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    for item in objects_in(text):
        if isinstance(item, JsonFound):
            yield from _call_objects(item.value, offered)
        else:
            name = re.search(r"[\"']?name[\"']?\s*:\s*[\"']([\w.:-]+)[\"']", text)
            if name:
                yield _Written(name[1], item.error)


def _call_objects(value: Mapping[str, Any], offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    for key in _LIST_KEYS:
        if isinstance(value.get(key), list):
            for item in value[key]:
                if isinstance(item, Mapping):
                    yield from _call_objects(item, offered)
            return
    if isinstance(value.get("function"), Mapping):
        yield from _call_objects(value["function"], offered)
        return
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    if name is not None:
        if plain_name(name) in offered:
            yield _Written(name, _arguments_of(value))
        return
    if len(value) == 1:
        [(key, inner)] = value.items()
        if plain_name(key) in offered and isinstance(inner, Mapping):
            yield _Written(key, inner)


def _arguments_of(value: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """The arguments of a call object; what stands beside its name where they have no key."""
    for key in _ARGUMENT_KEYS:
        if key in value:
            arguments = value[key]
            if arguments is None:
                return {}
            if isinstance(arguments, str):
                return _arguments(arguments)
            return arguments if isinstance(arguments, Mapping) else "they are not a JSON object"
    return {k: v for k, v in value.items() if k not in _NAME_KEYS and k not in ("type", "id")}


def _python_calls(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    """Calls with constants only: the text is parsed and never run."""
    bare = text.strip()
    if len(bare) > PYTHON_CHARS_MAX or not any(f"{name}(" in bare for name in offered):
        return
    try:
        tree = ast.parse(bare)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in tree.body:
        value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        for node in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
            call = _printed(node)
            if isinstance(call, ast.Call):
                yield _python_call(call, offered)


def _printed(node: ast.expr | None) -> ast.expr | None:
    """The call within `print(...)`, which some models write around it."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "print" and node.args:
        return node.args[0]
    return node


def _python_call(node: ast.Call, offered: Mapping[str, ToolDef]) -> _Written:
    name = ast.unparse(node.func)
    tool = offered.get(plain_name(name))
    parameters = [*tool.parameters.get("properties", {})] if tool else []
    try:
        values = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
        placed = [ast.literal_eval(argument) for argument in node.args]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _Written(name, "they are not constants")
    if len(placed) > len(parameters):
        return _Written(name, f"{len(placed)} without a name")
    return _Written(name, {**dict(zip(parameters, placed, strict=False)), **values})


def _react(text: str, offered: Mapping[str, ToolDef]) -> Iterator[_Written]:
    del offered
    for name, body in _REACT.findall(text):
        yield _Written(name, _arguments(body))


_DIALECTS: Sequence[Callable[[str, Mapping[str, ToolDef]], Iterator[_Written]]] = (
    _function_xml,
    _invoke,
    _sections,
    _channels,
    _tagged,
    _marked,
    _whole,
    _react,
)
"""The readers of the table above, those with tags of their own first."""
