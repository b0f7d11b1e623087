"""Tool calls that a model wrote as text, by the dialects that models and their servers use. Pure.

A server without a parser for its model's dialect hands the model's own notation on as text. It is
read where it is unambiguous; words beside a call are passed over. Every tool only reads, so a call
that was read by mistake costs one look.

- XML, `<function=NAME><parameter=KEY>VALUE</parameter></function>`: Qwen Coder, Llama, Seed;
  `<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>`: Claude, MiniMax;
  `NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`: GLM; `<NAME><KEY>VALUE</KEY></NAME>`
- JSON that names its tool, `{"name": ..., "arguments": {...}}`, `{"NAME": {...}}`, several, a list:
  bare, fenced, or behind a mark such as `<tool_call>`, `<|python_tag|>`, `[TOOL_CALLS]`, `Action:`:
  Hermes, Qwen, Llama, Mistral, Granite, Phi, Command, InternLM and many small models
- Python, `[NAME(key="value")]`, `print(default_api.NAME(key="value"))`, in the same places: Llama,
  Gemini, Gemma, LFM
- a name before JSON, `NAME {...}`, `[TOOL_CALLS]NAME[ARGS]{...}`, `to=functions.NAME ... {...}`,
  `Action: NAME` and `Action Input: {...}`: Mistral, Kimi, DeepSeek, gpt-oss, functionary, ReAct
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
from libs.llm.reading.values import spelling
from libs.runtime.parsing import parsed

CALLS_MAX = 100
"""Calls read of one text."""
TEXT_CHARS_MAX = 100_000
PYTHON_CHARS_MAX = 20_000
_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
ARGUMENT_KEYS = (
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
_SPECIAL = r"<[|｜][^<>\n]{1,60}[|｜]>"
"""A token of a model's own, such as `<|python_tag|>`."""
_MARK = re.compile(
    rf"{_SPECIAL}|</?[A-Za-z_][\w:.-]{{0,40}}>|\[/?(?:TOOL_CALLS?|INST)\]|```[\w-]*|\bfunctools\b"
    r"|^\W{0,5}(?:tool|function)?[ _-]?(?:calls?|action)\s*[:=]",
    re.MULTILINE | re.IGNORECASE,
)
"""What stands around calls: a token, a tag, a fence, a heading."""
_FILLER = (
    rf"(?:{_SPECIAL}|\[\w+\]|```\w*|[(:=,\"'`]|\b(?:with|the|following|arguments?|args"
    r"|action[ _]input|input|parameters|params|json|commentary)\b|\s)"
)
_JSON_LINE = re.compile(r"^[ \t]*(?:\{|\[\s*\{)", re.MULTILINE)
_FUNCTION_XML = re.compile(
    r"<function(?:=|\s+name=)[\"']?([^>\s\"']+)[\"']?>(.*?)(?:</function>|(?=<function\b)|\Z)",
    re.DOTALL,
)
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
_ARG_PAIRS = re.compile(
    r"([\w.:-]+)\s*((?:<arg_key>[^<]*</arg_key>\s*<arg_value>[^<]*(?:</arg_value>|\Z)\s*)+)"
)
_ARG_PAIR = re.compile(r"<arg_key>([^<]*)</arg_key>\s*<arg_value>([^<]*)")
_INNER_TAG = re.compile(r"<([\w-]+)>(.*?)</\1>", re.DOTALL)
_ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*[\"']([^\"']*)[\"']")
_ESCAPE = "<escape>"
"""FunctionGemma's quote."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A call as it was written: its name, and its arguments or what is wrong with them."""

    name: str
    arguments: Mapping[str, Any] | str


Offered = Mapping[str, ToolDef]


def calls_in_text(text: str, tools: Sequence[ToolDef]) -> tuple[ToolCall, ...]:
    """The calls that a text makes of the offered tools; none where it is words, or ambiguous.

    Arguments that cannot be read are the call's `error`, which the model is told. The same call
    written twice counts once.
    """
    text = text[:TEXT_CHARS_MAX].replace(_ESCAPE, '"')
    offered = {tool.name: tool for tool in tools}
    for read in _DIALECTS:
        written = [*_known(read(text, offered), offered)]
        if written:
            return _as_calls(written)
    return ()


def offered_name(name: str, offered: Iterable[str]) -> str:
    """The offered tool that a name means: `functions.get_news:0` and `getNews` are `get_news`.
    Empty where it means none."""
    bare = re.split(r"<[|｜]", name.strip().strip("`'\""))[0]
    bare = re.sub(r"(?::\d+|\(\))\Z", "", bare)
    for part in (bare, re.split(r"[.:/]|__", bare)[-1]):
        alike = [known for known in offered if spelling(known) == spelling(part)]
        if len(alike) == 1:
            return alike[0]
    return ""


def _known(written: Iterable[_Written], offered: Offered) -> Iterator[_Written]:
    for call in written:
        name = offered_name(call.name, offered)
        if name:
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


def _function_xml(text: str, offered: Offered) -> Iterator[_Written]:
    del offered
    for name, body in _FUNCTION_XML.findall(text):
        yield _of_pairs(name, _PARAMETER_XML.findall(body), body)


def _invoke(text: str, offered: Offered) -> Iterator[_Written]:
    del offered
    for name, body in _INVOKE.findall(text):
        yield _of_pairs(name, _INVOKE_PARAMETER.findall(body), body)


def _of_pairs(name: str, pairs: Sequence[tuple[str, str]], body: str) -> _Written:
    """A call with these arguments; with those of a body that is JSON where there are none."""
    return _Written(name, _values(pairs) if pairs or not body.strip() else _arguments(body))


def _pairs(text: str, offered: Offered) -> Iterator[_Written]:
    del offered
    if "<arg_key>" in text:
        for name, body in _ARG_PAIRS.findall(text):
            yield _Written(name, _values(_ARG_PAIR.findall(body)))


def _own_tags(text: str, offered: Offered) -> Iterator[_Written]:
    """Tags of the tool's own name, with its arguments as tags or as attributes."""
    names = "|".join(map(re.escape, offered))
    tags = re.compile(rf"<({names})(\s[^<>]*?)?(?:/>|>(.*?)(?:</\1>|\Z))", re.DOTALL)
    for name, attributes, body in tags.findall(text) if names else ():
        pairs = [*_ATTRIBUTE.findall(attributes), *_INNER_TAG.findall(body)]
        yield _of_pairs(name, pairs, body)


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


def _between_marks(text: str, offered: Offered) -> Iterator[_Written]:
    """JSON or Python that is all of the text, of what stands between two marks, or of its last
    lines."""
    parts = [text] if _is_only_json(text) else _MARK.split(text)
    for part in parts:
        name = offered_name(part, offered) if len(part) < len(max(offered, key=len)) + 20 else ""
        lines = _JSON_LINE.search(part)
        if name:
            yield _Written(name, {})
        elif _is_only_json(part):
            yield from _json_calls(part, offered)
        elif lines:
            yield from _json_calls(part[lines.start() :], offered)
        else:
            yield from _python_calls(part, offered)


def _named(text: str, offered: Offered) -> Iterator[_Written]:
    """A tool's name, and an object behind it of which a key is one of the tool's arguments."""
    names = "|".join(re.escape(name).replace("_", "[_-]?") for name in offered)
    begins = re.compile(
        rf"(?<![\w\"'.])(?:\w{{1,40}}[.:])?({names})(?::\d+)?{_FILLER}{{0,12}}(?=\{{)",
        re.IGNORECASE,
    )
    starts = [*begins.finditer(text)] if names else []
    for place, begin in enumerate(starts[:CALLS_MAX]):
        end = starts[place + 1].start() if place + 1 < len(starts) else len(text)
        arguments = _arguments(text[begin.end() : end])
        tool = offered[offered_name(begin[1], offered)]
        takes = {spelling(key) for key in (*tool.parameters.get("properties", {}), *ARGUMENT_KEYS)}
        fields = {} if isinstance(arguments, str) else arguments
        if {*_NAME_KEYS} & {*fields}:
            yield from _call_objects(fields, offered)
        elif not fields or takes & {*map(spelling, fields)}:
            yield _Written(tool.name, arguments)


def _is_only_json(text: str) -> bool:
    bare = text.strip()
    return bare[:1] in ("{", '"') or (bare[:1] == "[" and bare[1:].lstrip()[:1] in ("{", "]"))


def _json_calls(text: str, offered: Offered) -> Iterator[_Written]:
    for item in objects_in(text):
        if isinstance(item, JsonFound):
            yield from _call_objects(item.value, offered)
        else:
            name = re.search(r"[\"']?name[\"']?\s*:\s*[\"']([\w.:-]+)[\"']", text)
            if name:
                yield _Written(name[1], item.error)


def _call_objects(value: Mapping[str, Any], offered: Offered) -> Iterator[_Written]:
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
        yield _Written(name, _arguments_of(value))
    elif len(value) == 1:
        [(key, inner)] = value.items()
        if isinstance(inner, Mapping):
            yield _Written(key, inner)


def _arguments_of(value: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """The arguments of a call object; what stands beside its name where they have no key."""
    key = next((key for key in ARGUMENT_KEYS if key in value), None)
    if key is None:
        return {k: v for k, v in value.items() if k not in _NAME_KEYS and k not in ("type", "id")}
    return as_arguments(value[key])


def as_arguments(value: Any) -> Mapping[str, Any] | str:
    """The arguments that a value holds, also as text, or what is wrong with it."""
    if value is None:
        return {}
    if isinstance(value, str):
        return _arguments(value)
    return value if isinstance(value, Mapping) else "they are not a JSON object"


def _python_calls(text: str, offered: Offered) -> Iterator[_Written]:
    """Calls with constants only: the text is parsed and never run."""
    bare = text.strip()
    if len(bare) > PYTHON_CHARS_MAX or not any(f"{name}(" in bare for name in offered):
        return
    try:
        tree = parsed(bare)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in tree.body:
        value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        for node in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
            call = _inner(node)
            if isinstance(call, ast.Call):
                yield _python_call(call, offered)


def _inner(node: ast.expr | None) -> ast.expr | None:
    """The call within `print(...)` or behind `await`, which some models write around it."""
    if isinstance(node, ast.Await):
        return node.value
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "print" and node.args:
        return node.args[0]
    return node


def _python_call(node: ast.Call, offered: Offered) -> _Written:
    name = ast.unparse(node.func)
    tool = offered.get(offered_name(name, offered))
    parameters = [*tool.parameters.get("properties", {})] if tool else []
    try:
        values = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
        placed = [ast.literal_eval(argument) for argument in node.args]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _Written(name, "they are not constants")
    if len(placed) == 1 and isinstance(placed[0], dict) and not values:
        return _Written(name, placed[0])
    if len(placed) > len(parameters):
        return _Written(name, "some have no name; name each")
    return _Written(name, {**dict(zip(parameters, placed, strict=False)), **values})


_DIALECTS: Sequence[Callable[[str, Offered], Iterator[_Written]]] = (
    _function_xml,
    _invoke,
    _pairs,
    _own_tags,
    _named,
    _between_marks,
)
"""The readers of the table above, those with tags of their own first."""
