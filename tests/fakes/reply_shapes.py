# ruff: noqa: RUF001 - odd quotes, digits and bars are what this is about
"""Shapes in which models and their servers reply, and the end that each must come to.

An answer's shape changes the JSON of a plain answer, a call's the calls of a plain tool round. A
new shape is one more line of `ANSWERS` or `CALLS`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from tests.fakes.model_server import Error
from tests.fakes.wire_formats import Call, Says

Answer = dict[str, Any]


class End(Enum):
    """What a shape comes to.

    `READ`: the desk trades as with the plain reply, and makes no call more. `ASKED`: the model is
    told once; a model that repeats itself ends typed. `BY_CODE`: code makes the standard reads in
    the model's place, and the decision says so. `TYPED`: the pipeline ends with a reason.
    """

    READ = "read"
    ASKED = "asked"
    BY_CODE = "by code"
    TYPED = "typed"


@dataclass(frozen=True)
class Shape:
    """One shape. `change` makes the reply of a plain answer, or of plain calls, None where it
    changes nothing of it. `agents` are those that it is tried on, all where there are none;
    `says` is part of the reason of a typed end."""

    name: str
    change: Callable[[Any], str | Says | Error | None]
    end: End = End.READ
    agents: Sequence[str] = ()
    says: str = ""
    wires: Sequence[str] = ("openai", "claude")


OPENAI = ("openai",)
TRADES = ("trader", "risk_review")
READERS = ("planner", "quant", "analyst", "sentiment", "memory")
TICKERS = ("ticker", "assets", "sector_peers", "vetoed_tickers", "universe")
SHARES = ("confidence",)


# --- ways to change a plain answer ---------------------------------------------------------------


def around(before: str, after: str = "") -> Callable[[Answer], str]:
    """The plain JSON between words."""
    return lambda answer: f"{before}{json.dumps(answer)}{after}"


def written(change: Callable[[str], str], **how: Any) -> Callable[[Answer], str]:
    """The JSON's text, changed."""
    return lambda answer: change(json.dumps(answer, **how))


def formed(change: Callable[[Answer], Any]) -> Callable[[Answer], str]:
    """The JSON of a changed answer."""
    return lambda answer: json.dumps(change(answer))


def each(names: Sequence[str], change: Callable[[Any], Any], kinds: Any) -> Callable[[Any], Any]:
    """The answer with each value of these fields changed, where it is of one of these kinds; in
    lists each item."""

    def walk(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: walk(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, name) for item in value]
        suits = name in names and isinstance(value, kinds) and not isinstance(value, bool)
        return change(value) if suits else value

    return walk


def values(names: Sequence[str], change: Callable[[Any], Any], kinds: Any) -> Callable[[Any], Any]:
    """The JSON of an answer with such values changed; None where it has none of them."""

    def change_answer(answer: Answer) -> str | None:
        changed = each(names, change, kinds)(answer)
        return None if changed == answer else json.dumps(changed)

    return change_answer


def tickers(change: Callable[[str], Any]) -> Callable[[Any], Any]:
    """With each ticker written in another way."""
    return values(TICKERS, change, str)


def shares(change: Callable[[Decimal], Any]) -> Callable[[Any], Any]:
    """With each confidence written in another way."""
    return values(SHARES, lambda value: change(Decimal(str(value))), (int, float))


def lists(change: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    """With each list at the answer's top written in another way."""

    def change_answer(answer: Answer) -> str | None:
        changed = {k: change(v) if isinstance(v, list) else v for k, v in answer.items()}
        return None if changed == answer else json.dumps(changed)

    return change_answer


def keys(change: Callable[[str], str]) -> Callable[[Any], Any]:
    """With each key written in another way."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {change(key): walk(item) for key, item in value.items()}
        return [walk(item) for item in value] if isinstance(value, list) else value

    return formed(walk)


def bare_number(text: str, change: Callable[[str], str]) -> str:
    """The JSON's text with its first share of one, and nothing else, changed."""
    return re.sub(r'("confidence": )(0\.\d+)', lambda m: m[1] + change(m[2]), text)


def numbers(change: Callable[[str], str]) -> Callable[[Answer], str | None]:
    """The JSON's text with each confidence, as it stands there, changed."""

    def change_answer(answer: Answer) -> str | None:
        text = json.dumps(answer)
        changed = bare_number(text, change)
        return None if changed == text else changed

    return change_answer


def thinking(before: str, after: str) -> Callable[[Answer], str]:
    """A draft of the answer in thoughts, the answer behind them."""
    return lambda answer: (
        f"{before}Perhaps {json.dumps(drafted(answer))}?{after}{json.dumps(answer)}"
    )


def drafted(answer: Answer) -> Answer:
    """An answer that would end differently: nothing of it may be read."""
    empty = {name: [] for name in ("picks", "sell_recommendations", "tickers") if name in answer}
    return {**each(("confidence",), lambda _: 0.11, float)(answer), **empty}


def unspoken(**fields: Callable[[str], Any]) -> Callable[[Answer], Says]:
    """The answer in fields of the message beside its content."""
    return lambda answer: Says(extra={k: make(json.dumps(answer)) for k, make in fields.items()})


def camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part.title() for part in rest)


def by_ticker(items: list[Any]) -> Any:
    """A list of objects as one object by ticker."""
    if not items or not all(isinstance(item, dict) and "ticker" in item for item in items):
        return items
    return {item["ticker"]: {k: v for k, v in item.items() if k != "ticker"} for item in items}


def first_list(answer: Answer) -> str:
    return next(name for name, value in answer.items() if isinstance(value, list))


def renamed_list(name: str) -> Callable[[Answer], str | None]:
    """The answer's first list under another name."""

    def change(answer: Answer) -> str:
        known = first_list(answer)
        return json.dumps({(name if k == known else k): v for k, v in answer.items()})

    return change


def doubled(change: Callable[[Answer], Answer]) -> Callable[[Answer], str | None]:
    """The first item of the answer's first list of objects once more, changed."""

    def change_answer(answer: Answer) -> str | None:
        name = first_list(answer)
        items = answer[name]
        if not items or not isinstance(items[0], dict):
            return None
        return json.dumps({**answer, name: [*items, change(items[0])]})

    return change_answer


def cut(part: float) -> Callable[[Answer], Says]:
    """So much of the JSON's text, without its end."""
    return lambda answer: Says(json.dumps(answer)[: int(len(json.dumps(answer)) * part)])


def without_last_brace(answer: Answer) -> str:
    return json.dumps(answer)[:-1]


def python_dict(answer: Answer) -> str:
    return repr(answer)


def json5(answer: Answer) -> str:
    body = "".join(f"  {key}: {json.dumps(value)}, // {key}\n" for key, value in answer.items())
    return f"{{\n{body}}}"


def as_call(name: str, key: str) -> Callable[[Answer], str]:
    return lambda answer: json.dumps({"name": name, key: answer})


def echoed_schema(answer: Answer) -> str:
    types = {name: {"type": "string", "title": name} for name in answer}
    return json.dumps({"type": "object", "properties": types, "required": [*answer], **answer})


def in_parts(answer: Answer) -> Says:
    text = json.dumps(answer)
    half = len(text) // 2
    parts = [{"type": "text", "text": piece} for piece in (text[:half], text[half:])]
    return Says(extra={"content": parts})


PLAIN = Shape("plain", formed(lambda answer: answer))

ANSWERS: Sequence[Shape] = (
    # Words and fences around it.
    Shape("words before", around("Here is my answer:\n")),
    Shape("words behind", around("", "\n\nI hope this {helps}. Let me know: more?")),
    Shape("fenced", around("```json\n", "\n```")),
    Shape("fenced without a language", around("Sure!\n```\n", "\n```\nDone.")),
    Shape("fence never closed", around("```json\n")),
    Shape("tildes", around("~~~json\n", "\n~~~")),
    Shape(
        "two fenced, the last counts",
        lambda a: (
            f"Draft:\n```json\n{json.dumps(drafted(a))}\n```\nFinal:\n```json\n{json.dumps(a)}\n```"
        ),
    ),
    Shape("the same twice", lambda a: f"{json.dumps(a)}\n{json.dumps(a)}"),
    Shape("behind an example", around('The form is {"field": "value"}, so:\n')),
    Shape("behind a JSON word", around("json\n")),
    Shape("behind a heading", around("## Final Answer\n\n**JSON:** ")),
    Shape("assigned", around("const answer = ", ";\nexport default answer;")),
    Shape("assigned in Python", lambda a: f"answer = {a!r}\nprint(answer)"),
    Shape("printed", around("print(json.dumps(", "))")),
    Shape("in a tag", around("<answer>", "</answer>")),
    Shape("in a CDATA", around("<output><![CDATA[", "]]></output>")),
    Shape("boxed", around("\\boxed{", "}")),
    Shape("behind a role", around("<|im_start|>assistant\n", "<|im_end|>")),
    Shape("end tokens", around("", "</s><|eot_id|><|endoftext|>")),
    Shape("byte order mark", around("\ufeff")),
    Shape("zero-width characters", around("\u200b\u2060", "\u200b")),
    Shape("a table before", around("| ticker | view |\n|---|---|\n| ALFA | up |\n\n")),
    Shape("indented by tabs", written(str, indent="\t")),
    Shape("windows lines", written(lambda t: t.replace("\n", "\r\n"), indent=2)),
    Shape("one brace too many", around("", "}")),
    Shape("a list bracket behind", around("", "]")),
    # Punctuation.
    Shape("single quotes", lambda a: json.dumps(a).replace("'", "’").replace('"', "'")),
    Shape("curly quotes", lambda a: re.sub(r'"([^"]*)"', "“\\1”", json.dumps(a))),
    Shape("low quotes", lambda a: re.sub(r'"([^"]*)"', "„\\1“", json.dumps(a))),
    Shape("backticks", lambda a: re.sub(r'"([^"]*)"', "`\\1`", json.dumps(a))),
    Shape("trailing commas", written(lambda t: re.sub(r"(?<=[\]}\"0-9])([\]}])", r",\1", t))),
    Shape("doubled commas", written(lambda t: t.replace('", "', '",, "', 1))),
    Shape("no comma between lines", written(lambda t: t.replace(",\n", "\n", 1), indent=1)),
    Shape("line comments", written(lambda t: t.replace("{\n", "{ // it's so\n"), indent=1)),
    Shape("hash comments", written(lambda t: t.replace("{\n", '{ # "so"\n'), indent=1)),
    Shape("block comments", written(lambda t: t.replace('": ', '" /* why */ : '))),
    Shape("no-break spaces", written(lambda t: t.replace('": ', '":\u00a0'))),
    Shape("thin spaces", written(lambda t: t.replace('": ', '":\u2009'))),
    Shape(
        "full-width punctuation", written(lambda t: t.replace('": ', '"：').replace('", "', '"，"'))
    ),
    Shape("bare keys", written(lambda t: re.sub(r'"(\w+)": ', r"\1: ", t))),
    Shape("semicolons", written(lambda t: t.replace(",\n", ";\n"), indent=1)),
    Shape("equals signs", written(lambda t: t.replace('": ', '" = '))),
    Shape("arrows", written(lambda t: t.replace('": ', '" => '))),
    Shape("Python", python_dict),
    Shape("json5", json5),
    Shape("doubled braces", written(lambda t: t.replace("{", "{{").replace("}", "}}"))),
    Shape("escaped underscores", written(lambda t: t.replace("_", "\\_"))),
    Shape(
        "escaped single quotes",
        lambda a: json.dumps({**a, "note": "it"}).replace('"it"', '"it\\\'s"'),
    ),
    Shape(
        "raw line breaks in a text",
        lambda a: json.dumps({**a, "note": "a b"}).replace("a b", "a\n\tb"),
    ),
    Shape("escaped line breaks", written(lambda t: t.replace("\n", "\\n"), indent=1)),
    Shape("escaped quotes", written(lambda t: t.replace('"', '\\"'))),
    Shape("escaped quotes and line breaks", written(lambda t: json.dumps(t)[1:-1], indent=1)),
    # Wrapped.
    *(
        Shape(f"under {name}", formed(lambda a, name=name: {name: a}))
        for name in ("answer", "final_answer", "output", "result", "response", "data", "PicksDraft")
    ),
    Shape("under two names", formed(lambda a: {"response": {"output": a}})),
    Shape("under four names", formed(lambda a: {"a": {"b": {"c": {"d": a}}}})),
    Shape(
        "under a name, with a status", formed(lambda a: {"status": "ok", "code": 200, "data": a})
    ),
    Shape("under a name, with thoughts", formed(lambda a: {"thinking": "I look", "answer": a})),
    Shape("thoughts beside it", formed(lambda a: {"thoughts": "I look at it.", **a})),
    Shape("a list of one", formed(lambda a: [a])),
    Shape("a JSON string", formed(json.dumps)),
    Shape("a JSON string of a string", formed(lambda a: json.dumps(json.dumps(a)))),
    Shape("under a name, as a string", formed(lambda a: {"answer": json.dumps(a)})),
    Shape("in properties", formed(lambda a: {"type": "object", "properties": a})),
    Shape("behind the schema", echoed_schema),
    Shape("as a message", formed(lambda a: {"role": "assistant", "content": json.dumps(a)})),
    Shape("as a call", as_call("PicksDraft", "arguments")),
    Shape("as a call with parameters", as_call("json", "parameters")),
    Shape(
        "as a call in tags", lambda a: f"<tool_call>{as_call('answer', 'arguments')(a)}</tool_call>"
    ),
    Shape("as a call of the server's", lambda a: Says(calls=[Call("answer", a)]), wires=OPENAI),
    # Thoughts.
    Shape("think tags", thinking("<think>", "</think>")),
    Shape("think tags, unopened", thinking("", "</think>\n")),
    Shape("think tags, never closed", around("<think>\nI look at it.\n")),
    Shape("thinking tags", thinking("<thinking>", "</thinking>")),
    Shape("reasoning tags", thinking("<reasoning>", "</reasoning>\n")),
    Shape("thought tags", thinking("<thought>", "</thought>\n")),
    Shape("bracketed thoughts", thinking("[THINK]", "[/THINK]")),
    Shape("answer within think tags", around("<think>", "</think>")),
    Shape(
        "channels",
        thinking(
            "<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"
        ),
    ),
    Shape(
        "Cohere's thoughts", thinking("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>")
    ),
    Shape("content null, in reasoning_content", unspoken(reasoning_content=str), wires=OPENAI),
    Shape("content null, in reasoning", unspoken(reasoning=str), wires=OPENAI),
    Shape(
        "content null, thoughts around it",
        unspoken(reasoning_content=lambda t: f"Let me see. So it is {t}"),
        wires=OPENAI,
    ),
    Shape(
        "other reasoning_content",
        lambda a: Says(json.dumps(a), extra={"reasoning_content": json.dumps(drafted(a))}),
        wires=OPENAI,
    ),
    Shape("content in parts", in_parts, wires=OPENAI),
    Shape("content as an object", lambda a: Says(extra={"content": a}), wires=OPENAI),
    # Lists and keys.
    Shape("null for an empty list", lists(lambda items: items or None)),
    Shape(
        "no empty lists", formed(lambda a: {k: v for k, v in a.items() if v != [] or k == "picks"})
    ),
    Shape(
        "one object for a list of one", lists(lambda items: items[0] if len(items) == 1 else items)
    ),
    Shape("lists as text", lists(json.dumps)),
    Shape("lists by ticker", lists(by_ticker)),
    Shape(
        "items as text",
        lists(
            lambda items: [json.dumps(item) if isinstance(item, dict) else item for item in items]
        ),
    ),
    Shape("the same item twice", doubled(lambda item: item)),
    Shape("an unknown field", formed(lambda a: {**a, "disclaimer": "No advice."})),
    Shape("camel case", keys(camel)),
    Shape("capitals", keys(str.upper)),
    Shape("keys with blanks", keys(lambda key: key.replace("_", " ").title())),
    Shape("keys with dashes", keys(lambda key: key.replace("_", "-"))),
    Shape("keys with stars", keys(lambda key: f"**{key}**")),
    # Tickers.
    Shape("dollar signs", tickers(lambda name: f"${name}")),
    Shape("lower case", tickers(str.lower)),
    Shape("exchange before", tickers(lambda name: f"NYSE:{name}")),
    Shape("exchange and blank before", tickers(lambda name: f"NASDAQ: {name}")),
    Shape("blanks around tickers", tickers(lambda name: f" {name}\n")),
    Shape("brackets around tickers", tickers(lambda name: f"({name})")),
    Shape("quotes around tickers", tickers(lambda name: f'"{name}"')),
    Shape("stars around tickers", tickers(lambda name: f"**{name}**")),
    Shape("names in brackets", tickers(lambda name: f"{name} (Company of {name.title()})")),
    Shape("names before brackets", tickers(lambda name: f"The Company Inc. ({name})")),
    Shape("tickers in lists", tickers(lambda name: [name])),
    Shape("zero-width in tickers", tickers(lambda name: f"\u200b{name}\u200b")),
    # Numbers and choices.
    Shape("percent signs", shares(lambda n: f"{n * 100:f}%")),
    Shape("percent signs and blanks", shares(lambda n: f"{n * 100:f} %")),
    Shape("percent words", shares(lambda n: f"{n * 100:f} percent")),
    Shape("fractions of ten", shares(lambda n: f"{n * 10:f}/10")),
    Shape("fractions of a hundred", shares(lambda n: f"{n * 100:f} out of 100")),
    Shape("numbers as text", shares(lambda n: f"{n:f}")),
    Shape("numbers as text with blanks", shares(lambda n: f" {n:f} ")),
    Shape("numbers with a plus", numbers(lambda n: f"+{n}")),
    Shape("numbers without a zero", numbers(lambda n: n.removeprefix("0"))),
    Shape("numbers with more zeros", numbers(lambda n: f"{n}000")),
    Shape("numbers in lists", shares(lambda n: [float(n)])),
    Shape("bare percentages", numbers(lambda n: f"{Decimal(n) * 100:f}%")),
    Shape("weights in percent", values(("allocation_pct",), lambda v: f"{v}%", str)),
    Shape(
        "scores of ten",
        values(
            ("fundamental_score", "technical_score", "risk_score"),
            lambda v: f"{v}/10",
            (int, float),
        ),
    ),
    Shape("choices in capitals", values(("signal", "speaks"), str.upper, str)),
    Shape("choices with dots", values(("signal", "speaks"), lambda v: f"{v.title()}.", str)),
    Shape("choices with stars", values(("signal", "speaks"), lambda v: f"**{v}**", str)),
    Shape("indicators in capitals", values(("indicator", "kind", "of"), str.upper, str)),
    Shape("rules with blanks", values(("of",), lambda v: v.replace("(", " ("), str)),
    # Asked, never guessed.
    Shape("a share above one", shares(lambda n: int(n * 100)), End.ASKED, says="confidence"),
    Shape("a share in words", shares(lambda _: "high"), End.ASKED, says="confidence"),
    Shape(
        "decimal commas", shares(lambda n: str(n).replace(".", ",")), End.ASKED, says="confidence"
    ),
    Shape(
        "full-width digits",
        shares(lambda n: "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in str(n))),
        End.ASKED,
        says="confidence",
    ),
    Shape("not available", shares(lambda _: "N/A"), End.ASKED, says="confidence"),
    Shape("a share as yes", shares(lambda _: True), End.ASKED, says="confidence"),
    Shape("no share", shares(lambda _: None), End.ASKED, says="confidence"),
    Shape("two shares", shares(lambda n: [float(n), 0.1]), End.ASKED, says="confidence"),
    Shape("a range", shares(lambda n: f"{n}-0.9"), End.ASKED, says="confidence"),
    Shape("NaN", numbers(lambda _: "NaN"), End.ASKED, says="not a JSON number"),
    Shape("Infinity", numbers(lambda _: "Infinity"), End.ASKED, says="not a JSON number"),
    Shape("too large a number", numbers(lambda _: "1e400"), End.ASKED, says="too large"),
    Shape("a huge number", numbers(lambda _: "1" * 400), End.ASKED),
    Shape("a number with grouping", numbers(lambda n: f"{n}_0"), End.ASKED),
    Shape("an octal number", numbers(lambda n: n.replace("0.", "00.")), End.ASKED),
    Shape(
        "a key twice, different",
        numbers(lambda n: f'{n}, "confidence": 0.123'),
        End.ASKED,
        says="twice",
    ),
    Shape(
        "a key in two spellings",
        numbers(lambda n: f'{n}, "Confidence": 0.123'),
        End.ASKED,
        says="twice",
    ),
    Shape(
        "a ticker twice, different",
        doubled(lambda item: {**item, "confidence": 0.123, "technical_score": 1}),
        End.ASKED,
        ("trader", "quant", "analyst"),
        says="twice",
    ),
    Shape(
        "a ticker of nobody",
        tickers(lambda _: "ZZZZ"),
        End.ASKED,
        ("planner", "quant", "analyst", "trader", "designer"),
    ),
    Shape(
        "two tickers in one",
        tickers(lambda name: f"{name}/DLTA or {name}"),
        End.ASKED,
        ("planner", "quant", "analyst", "trader", "designer"),
    ),
    Shape("a choice of nobody", values(("signal", "speaks"), lambda _: "perhaps", str), End.ASKED),
    Shape(
        "one item for the answer",
        lambda a: json.dumps(a[first_list(a)][0]),
        End.ASKED,
        ("quant", "analyst", "trader", "risk_review", "sentiment"),
    ),
    Shape(
        "the list alone",
        lambda a: json.dumps(a[first_list(a)]),
        End.ASKED,
        ("quant", "analyst", "trader", "risk_review", "sentiment"),
    ),
    Shape(
        "another name of a list",
        renamed_list("recommendations"),
        End.ASKED,
        ("planner", "quant", "analyst", "trader", "risk_review", "sentiment", "designer"),
    ),
    Shape(
        "an unknown indicator",
        values(("indicator",), lambda _: "magic", str),
        End.ASKED,
        ("designer",),
    ),
    Shape(
        "a rule on what is not known",
        values(("of",), lambda _: "magic", str),
        End.ASKED,
        ("designer",),
    ),
    Shape(
        "confidence alone",
        formed(lambda a: {"confidence": 0.5}),
        End.ASKED,
        ("quant", "trader", "risk_review"),
    ),
    Shape("no findings", formed(lambda a: {**a, "tickers": []}), End.ASKED, ("analyst",)),
    Shape("an empty object", formed(lambda _: {}), End.ASKED),
    Shape(
        "the schema alone",
        formed(
            lambda a: {"type": "object", "properties": {name: {"type": "string"} for name in a}}
        ),
        End.ASKED,
    ),
    Shape(
        "prose",
        lambda _: "I would hold for now, and look again tomorrow.",
        End.ASKED,
        says="no JSON object",
    ),
    Shape("nothing", lambda _: "", End.ASKED, says="no JSON object"),
    Shape(
        "YAML",
        lambda a: "\n".join(f"{k}: {v}" for k, v in a.items() if not isinstance(v, list)),
        End.ASKED,
    ),
    Shape("a table", lambda a: "| ticker | share |\n|---|---|\n| ALFA | 10 |", End.ASKED),
    Shape(
        "an ellipsis",
        written(lambda t: t.replace("}]", "}, ...]")),
        End.ASKED,
        ("quant", "analyst", "trader", "risk_review", "sentiment"),
    ),
    Shape(
        "weights above 100",
        doubled(lambda item: {**item, "ticker": "DLTA", "allocation_pct": 99}),
        End.ASKED,
        ("trader",),
        "may sum to",
    ),
    Shape("a half", cut(0.5), End.ASKED, says="cut off"),
    Shape("all but a third", cut(0.66), End.ASKED, says="cut off"),
    Shape("no last brace, in a trade", without_last_brace, End.ASKED, TRADES, says="cut off"),
    Shape(
        "no last brace on a line, in a trade",
        written(lambda t: t[:-1], indent=1),
        End.ASKED,
        TRADES,
        says="cut off",
    ),
    Shape(
        "no last brace, fenced, in a trade",
        lambda a: f"```json\n{without_last_brace(a)}\n```",
        End.ASKED,
        TRADES,
        says="cut off",
    ),
    Shape("no last brace", written(lambda t: t[:-1], indent=1), agents=(*READERS, "designer")),
    Shape(
        "no last brace, fenced",
        lambda a: f"```json\n{without_last_brace(a)}\n```",
        agents=(*READERS, "designer"),
    ),
    Shape(
        "no last braces, wrapped",
        lambda a: json.dumps({"answer": a}, indent=1)[:-1].rstrip()[:-1],
        agents=(*READERS, "designer"),
    ),
    Shape(
        "no last bracket and brace",
        lambda a: json.dumps({"note": "x", **a, "more": [1]})[:-2],
        End.ASKED,
        says="cut off",
    ),
    Shape(
        "cut within its last number",
        lambda a: json.dumps({**a, "weight": 1.5})[:-2],
        End.ASKED,
        says="cut off",
    ),
    Shape(
        "a draft, then a broken one",
        lambda a: f"{json.dumps(drafted(a))}\n{numbers(lambda _: 'NaN')(a)}",
        End.ASKED,
        ("quant", "trader", "risk_review"),
    ),
    Shape(
        "cut at its limit",
        lambda a: Says(json.dumps(a)[:-9], stop="length"),
        End.TYPED,
        says="output limit",
        wires=OPENAI,
    ),
    Shape(
        "declined",
        lambda a: Says(extra={"refusal": "I can't help with that."}),
        End.TYPED,
        says="declined",
        wires=OPENAI,
    ),
    Shape(
        "filtered",
        lambda a: Says("No.", stop="content_filter"),
        End.TYPED,
        says="declined",
        wires=OPENAI,
    ),
    Shape("too long", lambda a: Says("x" * 300_000), End.TYPED, says="output_tokens_max"),
)


# --- ways to write calls -------------------------------------------------------------------------


def text_of(
    write: Callable[[str, Mapping[str, Any]], str],
    between: str = "\n",
    before: str = "",
    after: str = "",
) -> Callable[[Sequence[Call]], Says]:
    """Each call as text."""
    return lambda calls: Says(
        before + between.join(write(call.name, call.arguments) for call in calls) + after
    )


def calls_json(key: str = "arguments", named: str = "name") -> Callable[[str, Any], str]:
    return lambda name, arguments: json.dumps({named: name, key: arguments})


def listed(before: str, after: str, **how: Any) -> Callable[[Sequence[Call]], Says]:
    """All calls as one JSON list."""
    return lambda calls: Says(
        before
        + "["
        + ", ".join(calls_json(**how)(c.name, c.arguments) for c in calls)
        + "]"
        + after
    )


def python(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def inner(value: Any) -> str:
    """A value between tags: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def xml(name: str, arguments: Mapping[str, Any]) -> str:
    body = "".join(f"<parameter={k}>\n{inner(v)}\n</parameter>\n" for k, v in arguments.items())
    return f"<function={name}>\n{body}</function>"


def invoke(name: str, arguments: Mapping[str, Any]) -> str:
    body = "".join(f'<parameter name="{k}">{inner(v)}</parameter>' for k, v in arguments.items())
    return f'<invoke name="{name}">{body}</invoke>'


def own_tags(name: str, arguments: Mapping[str, Any]) -> str:
    body = "".join(f"<{k}>{inner(v)}</{k}>" for k, v in arguments.items())
    return f"<{name}>{body}</{name}>"


def native(
    name: Callable[[str], str] = str, arguments: Callable[[Any], Any] = dict, **fields: Any
) -> Callable[[Sequence[Call]], Says]:
    """Calls of the server's own, written otherwise."""
    return lambda calls: Says(
        calls=[Call(name(c.name), arguments(c.arguments), f"n{n}") for n, c in enumerate(calls)],
        **fields,
    )


def raw_calls(make: Callable[[int, Call], Any]) -> Callable[[Sequence[Call]], Says]:
    return lambda calls: Says(
        stop="tool_calls", extra={"tool_calls": [make(n, call) for n, call in enumerate(calls)]}
    )


HERMES = text_of(lambda n, a: f"<tool_call>\n{calls_json()(n, a)}\n</tool_call>")

CALLS: Sequence[Shape] = (
    Shape("Hermes", HERMES),
    Shape(
        "Hermes, words before",
        text_of(
            lambda n, a: f"<tool_call>{calls_json()(n, a)}</tool_call>", before="I look it up.\n"
        ),
    ),
    Shape("Hermes, never closed", text_of(lambda n, a: f"<tool_call>{calls_json()(n, a)}")),
    Shape(
        "Hermes, single quotes",
        text_of(lambda n, a: f"<tool_call>{ ({'name': n, 'arguments': dict(a)})!r}</tool_call>"),
    ),
    Shape(
        "Hermes, all in one tag",
        lambda c: Says(
            "<tool_call>" + "\n".join(calls_json()(x.name, x.arguments) for x in c) + "</tool_call>"
        ),
    ),
    Shape("Hermes, a list in one tag", listed("<tool_call>", "</tool_call>")),
    Shape("Hermes after thoughts", lambda c: Says(f"<think>news?</think>{HERMES(c).text}")),
    Shape("Hermes within thoughts", lambda c: Says(f"<think>news? {HERMES(c).text}")),
    Shape(
        "Hermes in reasoning_content",
        lambda c: Says(extra={"reasoning_content": HERMES(c).text}),
        wires=OPENAI,
    ),
    Shape("tool_calls tags", listed("<tool_calls>", "</tool_calls>")),
    Shape("TOOLCALL tags", listed("<TOOLCALL>", "</TOOLCALL>")),
    Shape("a tag of bars", listed("<|tool_call|>", "<|/tool_call|>")),
    Shape("a tag of bars, never closed", listed("<|tool_call|>", "")),
    Shape(
        "function_calls tags around Python",
        lambda c: Says(
            "<function_calls>\n"
            + "\n".join(python(x.name, x.arguments) for x in c)
            + "\n</function_calls>"
        ),
    ),
    Shape(
        "LFM's tags around Python",
        lambda c: Says(
            "<|tool_call_start|>["
            + ", ".join(python(x.name, x.arguments) for x in c)
            + "]<|tool_call_end|>"
        ),
    ),
    Shape("function XML", text_of(xml)),
    Shape("function XML in tags", text_of(lambda n, a: f"<tool_call>\n{xml(n, a)}\n</tool_call>")),
    Shape(
        "function tags around JSON",
        text_of(lambda n, a: f"<function={n}>{json.dumps(a)}</function>"),
    ),
    Shape(
        "a function tag with a name",
        text_of(lambda n, a: f'<function name="{n}">{json.dumps(a)}</function>'),
    ),
    Shape("invoke", text_of(invoke, before="<function_calls>", after="</function_calls>")),
    Shape(
        "invoke, another house's", text_of(invoke, before="<x:tool_call>", after="</x:tool_call>")
    ),
    Shape(
        "GLM's pairs",
        text_of(
            lambda n, a: (
                f"<tool_call>{n}\n"
                + "".join(
                    f"<arg_key>{k}</arg_key>\n<arg_value>{inner(v)}</arg_value>\n"
                    for k, v in a.items()
                )
                + "</tool_call>"
            )
        ),
    ),
    Shape("tags of the tool's name", text_of(own_tags)),
    Shape(
        "tags of the tool's name in tags",
        text_of(lambda n, a: f"<tool_call>{own_tags(n, a)}</tool_call>"),
    ),
    Shape("Mistral", listed("[TOOL_CALLS]", "")),
    Shape("Mistral with ARGS", text_of(lambda n, a: f"[TOOL_CALLS]{n}[ARGS]{json.dumps(a)}", "")),
    Shape("Mistral's newer", text_of(lambda n, a: f"[TOOL_CALLS]{n}{json.dumps(a)}", "")),
    Shape("Llama 3.1", text_of(calls_json("parameters"), "; ", "<|python_tag|>", "<|eom_id|>")),
    Shape(
        "Llama 3.2", lambda c: Says("[" + ", ".join(python(x.name, x.arguments) for x in c) + "]")
    ),
    Shape(
        "Llama with types",
        text_of(lambda n, a: json.dumps({"type": "function", "name": n, "parameters": a}), "; "),
    ),
    Shape(
        "DeepSeek V3",
        text_of(
            lambda n, a: (
                f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{json.dumps(a)}\n```"
                "<｜tool▁call▁end｜>"
            ),
            "\n",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        ),
    ),
    Shape(
        "DeepSeek V3.1",
        text_of(
            lambda n, a: (
                f"<｜tool▁call▁begin｜>{n}<｜tool▁sep｜>{json.dumps(a)}<｜tool▁call▁end｜>"
            ),
            "",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
        ),
    ),
    Shape(
        "Kimi",
        text_of(
            lambda n, a: (
                f"<|tool_call_begin|>functions.{n}:0<|tool_call_argument_begin|>{json.dumps(a)}"
                "<|tool_call_end|>"
            ),
            "",
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
        ),
    ),
    Shape(
        "gpt-oss",
        text_of(
            lambda n, a: (
                f"<|channel|>commentary to=functions.{n} <|constrain|>json<|message|>"
                f"{json.dumps(a)}<|call|>"
            ),
            "<|start|>assistant",
        ),
    ),
    Shape(
        "gpt-oss, to before the channel",
        text_of(
            lambda n, a: (
                f"<|start|>assistant to=functions.{n}<|channel|>commentary json<|message|>"
                f"{json.dumps(a)}<|call|>"
            ),
            "",
        ),
    ),
    Shape(
        "gpt-oss after thoughts",
        text_of(
            lambda n, a: (
                f"<|start|>assistant<|channel|>commentary to=functions.{n} <|constrain|>json"
                f"<|message|>{json.dumps(a)}<|call|>"
            ),
            "",
            "<|channel|>analysis<|message|>We need prices.<|end|>",
        ),
    ),
    Shape("Granite", listed("<|tool_call|>", "<|end_of_text|>")),
    Shape("Phi", listed("functools", "")),
    Shape("Phi-4", listed("<|tool_call|>", "<|/tool_call|><|end|>")),
    Shape("Command-R", listed("Action: ```json\n", "\n```", key="parameters", named="tool_name")),
    Shape(
        "Command-A",
        listed(
            "<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>\n",
            "\n<|END_ACTION|>",
            key="parameters",
            named="tool_name",
        ),
    ),
    Shape(
        "Gemma",
        lambda c: Says(
            "```tool_code\n" + "\n".join(python(x.name, x.arguments) for x in c) + "\n```"
        ),
    ),
    Shape(
        "Gemini",
        lambda c: Says("\n".join(f"print(default_api.{python(x.name, x.arguments)})" for x in c)),
    ),
    Shape("fenced tool_call", text_of(lambda n, a: f"```tool_call\n{calls_json()(n, a)}\n```")),
    Shape(
        "FunctionGemma",
        text_of(
            lambda n, a: (
                f"<start_function_call>call:{n}{{"
                + ",".join(
                    f"{k}:<escape>{v}<escape>" if isinstance(v, str) else f"{k}:{inner(v)}"
                    for k, v in a.items()
                )
                + "}<end_function_call>"
            ),
            "",
        ),
    ),
    Shape("functionary", text_of(lambda n, a: f">>>{n}\n{json.dumps(a)}")),
    Shape(
        "InternLM",
        text_of(
            lambda n, a: (
                f"<|action_start|><|plugin|>\n{calls_json('parameters')(n, a)}<|action_end|>"
            )
        ),
    ),
    Shape(
        "Apertus",
        lambda c: Says(
            "<|tools_prefix|>"
            + json.dumps([{x.name: dict(x.arguments)} for x in c])
            + "<|tools_suffix|>"
        ),
    ),
    Shape(
        "Hunyuan",
        text_of(
            lambda n, a: f"<tool_call>{n}\n```json\n{json.dumps(a)}\n```\n</tool_call>",
            "\n",
            "<tool_calls>",
            "</tool_calls>",
        ),
    ),
    Shape("bare JSON", text_of(calls_json())),
    Shape(
        "bare JSON, words before", text_of(calls_json(), before="I will look at the prices:\n\n")
    ),
    Shape(
        "bare JSON, words behind", text_of(calls_json(), after="\n\nLet me wait for the result.")
    ),
    Shape(
        "bare JSON, indented",
        text_of(lambda n, a: json.dumps({"name": n, "arguments": a}, indent=2), "\n\n"),
    ),
    Shape("a JSON list", listed("", "")),
    Shape("fenced JSON", text_of(lambda n, a: f"```json\n{calls_json()(n, a)}\n```")),
    Shape(
        "fenced JSON, words between",
        text_of(lambda n, a: f"First this:\n```json\n{calls_json()(n, a)}\n```\nand", "\n"),
    ),
    Shape("fenced, all in one", text_of(calls_json(), before="```json\n", after="\n```")),
    Shape("fenced JSON list", listed("```\n", "\n```")),
    Shape(
        "a JSON string",
        lambda c: Says(json.dumps("\n".join(calls_json()(x.name, x.arguments) for x in c))),
    ),
    Shape(
        "a list of tool_calls",
        lambda c: Says(
            json.dumps(
                {
                    "tool_calls": [
                        {
                            "id": f"c{n}",
                            "type": "function",
                            "function": {"name": x.name, "arguments": json.dumps(x.arguments)},
                        }
                        for n, x in enumerate(c)
                    ]
                }
            )
        ),
    ),
    Shape(
        "tool_uses",
        lambda c: Says(
            json.dumps(
                {
                    "tool_uses": [
                        {"recipient_name": f"functions.{x.name}", "parameters": dict(x.arguments)}
                        for x in c
                    ]
                }
            )
        ),
    ),
    Shape(
        "Claude's blocks as text",
        lambda c: Says(
            json.dumps(
                [
                    {"type": "tool_use", "id": f"t{n}", "name": x.name, "input": dict(x.arguments)}
                    for n, x in enumerate(c)
                ]
            )
        ),
    ),
    Shape("broken JSON", text_of(lambda n, a: f"{{'name': '{n}', 'arguments': {dict(a)!r},}}")),
    Shape(
        "arguments as a string",
        text_of(lambda n, a: json.dumps({"name": n, "arguments": json.dumps(a)})),
    ),
    Shape("action and action_input", text_of(calls_json("action_input", "action"))),
    Shape("tool and args", text_of(calls_json("args", "tool"))),
    Shape("function and kwargs", text_of(calls_json("kwargs", "function"))),
    Shape("by the tool's name", text_of(lambda n, a: json.dumps({n: a}))),
    Shape("arguments beside the name", text_of(lambda n, a: json.dumps({"tool": n, **a}))),
    Shape(
        "ReAct",
        lambda c: Says(
            "Thought: I look.\n"
            + "\n".join(f"Action: {x.name}\nAction Input: {json.dumps(x.arguments)}" for x in c)
            + "\nObservation:"
        ),
    ),
    Shape(
        "ReAct in JSON",
        text_of(
            lambda n, a: f"Action:\n```\n{calls_json('action_input', 'action')(n, a)}\n```",
            before="Thought: I look.\n",
        ),
    ),
    Shape("Python", text_of(python)),
    Shape("Python, fenced", text_of(python, before="```python\n", after="\n```")),
    Shape("Python, awaited", text_of(lambda n, a: f"x = await {python(n, a)}")),
    Shape("a call around JSON", text_of(lambda n, a: f"{n}({json.dumps(a)})")),
    Shape("a name before JSON", text_of(lambda n, a: f"{n} {json.dumps(a)}")),
    Shape("a name and a line before JSON", text_of(lambda n, a: f"{n}\n{json.dumps(a)}")),
    Shape(
        "Tool: and Arguments:",
        text_of(lambda n, a: f"Tool: {n}\nArguments: {json.dumps(a)}", "\n\n"),
    ),
    Shape("TOOL_CALL:", text_of(lambda n, a: f"TOOL_CALL: {calls_json()(n, a)}")),
    Shape(
        "Calling tool", text_of(lambda n, a: f"Calling tool: {n} with arguments: {json.dumps(a)}")
    ),
    Shape(
        "YAML",
        text_of(
            lambda n, a: (
                f"name: {n}\narguments:\n" + "".join(f"  {k}: {v}\n" for k, v in a.items())
            ),
            before="```yaml\n",
            after="```",
        ),
        End.BY_CODE,
        ("analyst", "trader"),
    ),
    # The server's own calls, written otherwise.
    Shape("functions. before the name", native(lambda n: f"functions.{n}")),
    Shape("default_api. before the name", native(lambda n: f"default_api.{n}")),
    Shape("default_api: before the name", native(lambda n: f"default_api:{n}")),
    Shape("a namespace before the name", native(lambda n: f"mcp__desk__{n}")),
    Shape("a number behind the name", native(lambda n: f"{n}:0")),
    Shape("the name in camel case", native(camel)),
    Shape("the name with dashes", native(lambda n: n.replace("_", "-"))),
    Shape("the name in capitals", native(str.upper)),
    Shape("the name with a token", native(lambda n: f"{n}<|channel|>commentary")),
    Shape("the name with blanks", native(lambda n: f" {n} ")),
    Shape("encoded twice", native(arguments=lambda a: json.dumps(json.dumps(a))), wires=OPENAI),
    Shape(
        "encoded thrice",
        native(arguments=lambda a: json.dumps(json.dumps(json.dumps(a)))),
        wires=OPENAI,
    ),
    Shape("input as a string", native(arguments=json.dumps), wires=("claude",)),
    Shape("given twice", native(arguments=lambda a: json.dumps(a) * 2), wires=OPENAI),
    Shape(
        "a closing tag behind",
        native(arguments=lambda a: json.dumps(a) + "</tool_call>"),
        wires=OPENAI,
    ),
    Shape(
        "fenced arguments",
        native(arguments=lambda a: f"```json\n{json.dumps(a)}\n```"),
        wires=OPENAI,
    ),
    Shape("broken arguments", native(arguments=lambda a: f"{dict(a)!r}"), wires=OPENAI),
    Shape(
        "named again in its arguments",
        native(arguments=lambda a: json.dumps({"arguments": a})),
        wires=OPENAI,
    ),
    Shape("under parameters", native(arguments=lambda a: {"parameters": dict(a)})),
    Shape("under input", native(arguments=lambda a: {"input": json.dumps(a)})),
    Shape("with an unknown argument", native(arguments=lambda a: {**a, "reason": "I look"})),
    Shape(
        "arguments in capitals", native(arguments=lambda a: {k.upper(): v for k, v in a.items()})
    ),
    Shape(
        "lower-case tickers",
        native(arguments=lambda a: {k: v.lower() if k == "ticker" else v for k, v in a.items()}),
    ),
    Shape(
        "dollar tickers",
        native(arguments=lambda a: {k: f"${v}" if k == "ticker" else v for k, v in a.items()}),
    ),
    Shape(
        "exchanges before tickers",
        native(arguments=lambda a: {k: f"NYSE:{v}" if k == "ticker" else v for k, v in a.items()}),
    ),
    Shape(
        "tickers in lists",
        native(arguments=lambda a: {k: [v] if k == "ticker" else v for k, v in a.items()}),
    ),
    Shape(
        "numbers as text",
        native(arguments=lambda a: {k: str(v) if isinstance(v, int) else v for k, v in a.items()}),
    ),
    Shape("null for absent arguments", native(arguments=lambda a: {**a, "nothing": None})),
    Shape("finished with stop", native(stop="stop"), wires=OPENAI),
    Shape("words beside", native(text="I look at the prices.")),
    Shape(
        "another call beside that is not offered",
        lambda c: Says(
            calls=[
                *(Call(x.name, x.arguments, f"n{n}") for n, x in enumerate(c)),
                Call("web_search", {}, "w"),
            ]
        ),
    ),
    Shape(
        "an unknown call among texts",
        lambda c: Says(
            HERMES(c).text + '<tool_call>{"name": "web_search", "arguments": {}}</tool_call>'
        ),
    ),
    Shape(
        "the older form",
        lambda c: (
            Says(
                stop="function_call",
                extra={
                    "function_call": {"name": c[0].name, "arguments": json.dumps(c[0].arguments)}
                },
            )
            if len(c) == 1
            else None
        ),
        wires=OPENAI,
    ),
    Shape(
        "no ids",
        raw_calls(
            lambda n, x: {
                "type": "function",
                "id": None,
                "function": {"name": x.name, "arguments": json.dumps(x.arguments)},
            }
        ),
        wires=OPENAI,
    ),
    Shape(
        "one id for all",
        raw_calls(
            lambda n, x: {
                "type": "function",
                "id": "call_0",
                "function": {"name": x.name, "arguments": json.dumps(x.arguments)},
            }
        ),
        wires=OPENAI,
    ),
    # Not read: told once, then code reads.
    *(
        Shape(name, lambda _, text=text: Says(text), End.BY_CODE, ("analyst", "trader"))
        for name, text in {
            "nothing": "",
            "words": "I would like to know the prices first.",
            "words about a tool": "The tool get_stock_price(ticker) tells the price of a share.",
            "an answer at once": '{"picks": [], "confidence": 0.9}',
            "a tool of nobody": '{"name": "web_search", "arguments": {"query": "ALFA"}}',
            "a table": "| tool | ticker |\n|---|---|\n| get_stock_price | ALFA |",
            "cut off": '<tool_call>{"name": "get_sto',
        }.items()
    ),
    *(
        Shape(
            f"arguments that are {name}",
            native(arguments=lambda a, text=text: text),
            End.BY_CODE,
            ("analyst", "trader") if name not in ("of nobody", "empty") else ("analyst",),
            wires=OPENAI,
        )
        for name, text in {
            "cut off": '{"ticker": "AL',
            "two": '{"ticker": "ALFA"}{"ticker": "DLTA"}',
            "words": "the price of ALFA",
            "a list": '["ALFA"]',
            "of nobody": '{"ticker": "ZZZZ"}',
            "empty": "{}",
        }.items()
    ),
)
