"""JSON objects in a model's text, with their punctuation repaired where it is broken. Pure.

Models write single or curly quotes, trailing commas, comments and full-width punctuation. A repair
adds and removes punctuation alone: by its making it keeps every word, digit and item, and what may
mean two things stays broken. (The library json_repair turns `10%` into 10 and `["", ]` into `[]`.)
An object that never ends was cut off. It is completed only on demand, and only where nothing but
the last braces is missing: no list is open, and the last value is whole.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

OBJECTS_MAX = 50
"""JSON objects looked at in one text."""
REPAIR_CHARS_MAX = 100_000
"""The longest object that is repaired."""
DEPTH_MAX = 60
"""The deepest nesting that is read; the deepest contract has 8 levels."""
_TOO_DEEP = f"the JSON is nested deeper than {DEPTH_MAX} levels"
BRACES_ADDED_MAX = 3
"""Closing braces that are added at the end of a text."""
STRINGS_MAX = 3
"""How often JSON may be encoded as a string of JSON."""

DOUBLE, SINGLE = '"“”„‟＂', "'‘’‚＇`"
WIDE = str.maketrans("｛｝［］：，＂\u00a0\u3000\ufeff", '{}[]:,"   ')
"""Full-width punctuation and odd spaces, as the JSON punctuation they stand for."""
_OPENING, _CLOSING = "{[", "}]"
_AFTER_STRING = "}],:;="
_STARTS_OBJECT = re.compile(r"[{｛](?:\s|\\[nrt])*(?:[\"'“”„＂‘’`\[}｝#]|//|/\*|[\w\\]+\s*[:：=])")
_STARTS_LINE = re.compile(r"^(?:```\w*\s*)?[{｛]", re.MULTILINE)
_KEY_NEXT = re.compile(r"[\"'“‘][^\"'“”‘’\n]{0,80}[\"'”’]\s*:")
_QUOTED_NEXT = re.compile(r"\s*[\"“”„]")
_CONSTANTS = {
    **{word: word.lower() for word in ("true", "false", "null", "True", "False", "TRUE", "FALSE")},
    **dict.fromkeys(("None", "NULL", "Null", "undefined"), "null"),
    **{word: word for word in ("NaN", "Infinity", "-Infinity")},
}
_PLAIN_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z")
_WHOLE_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:%|/\d+)?\Z")
_SINGLE_BRACE = re.compile(r"(?<!\{)\{(?!\{)")
_ESCAPED_OBJECT = re.compile(r"\{(?:\s|\\[nrt])*\\\"")
_RATIO = re.compile(r"\d+(?:\.\d+)?(?:%|/\d+)\Z")
_BLANKS = re.compile(r"\A(?:\s|\\[nrt])+")
"""Between two values, also where they were escaped as if they stood in a text."""
_FENCE_END = re.compile(r"(?:\s|```|~~~)+\Z")
_BARE = re.compile(r"(?:[^\s{}\[\],:;=\"'“”‘’｛｝［］：，\\]|\\(?![nrt]))+")


@dataclass(frozen=True, slots=True)
class JsonFound:
    """An object of a text; `repaired` is its text after a repair, empty where none was needed.

    `cut_off` is what is wrong with the text where its last braces were added.
    """

    value: dict[str, Any]
    repaired: str = ""
    cut_off: str = ""


@dataclass(frozen=True, slots=True)
class JsonBroken:
    """Text that begins like an object and is none, with the reason."""

    error: str


def objects_in(text: str, *, closes: bool = False) -> Iterator[JsonFound | JsonBroken]:
    """The outermost JSON objects of a text in their order, and what stands there broken.

    Words around them and fences are passed over. The inside of a broken object is not looked at:
    it would pass for a whole one. `closes` adds the last braces where they alone are missing.
    """
    text = _decoded(text)
    place = _next_object(text, 0)
    for _ in range(OBJECTS_MAX):
        if place is None:
            return
        item, end = _read(text, place, closes=closes)
        yield item
        place = _next_object(text, end)


def object_of(text: str) -> dict[str, Any] | str:
    """The one object that a text is, as the arguments of a call are, or what is wrong with it.

    The same object given twice counts once, and a closing tag behind it is passed over.
    """
    items = [*objects_in(text)]
    for item in items:
        if isinstance(item, JsonBroken):
            return item.error
    values = [item.value for item in items if isinstance(item, JsonFound)]
    if not values:
        return "no JSON object was found"
    if any(value != values[0] for value in values[1:]):
        return f"{len(values)} different JSON objects; give one"
    return values[0]


def _decoded(text: str) -> str:
    """The text; of a JSON string, what it holds, also where its quotes or its braces alone are
    those of one."""
    if "{{" in text and not _SINGLE_BRACE.search(text):
        text = text.replace("{{", "{").replace("}}", "}")
    for _ in range(STRINGS_MAX):
        bare = re.sub(r"\A\s*```\w*\s*|\s*```\s*\Z", "", text).strip()
        if _ESCAPED_OBJECT.match(bare):
            bare = f'"{bare}"'
        if not bare.startswith('"'):
            return text
        try:
            inner = json.loads(bare)
        except (ValueError, RecursionError):
            return text
        if not isinstance(inner, str):
            return text
        text = inner
    return text


def _next_object(text: str, start: int) -> int | None:
    match = _STARTS_OBJECT.search(text, start)
    return None if match is None else match.start()


def _read(  # noqa: PLR0911
    text: str, place: int, *, closes: bool
) -> tuple[JsonFound | JsonBroken, int]:
    """The object at a place, and where to look on."""
    try:
        value, end = _STRICT.raw_decode(text, place)
        if _depth(value) > DEPTH_MAX:
            return JsonBroken(_TOO_DEEP), end
        return JsonFound(value), end
    except RecursionError:
        return JsonBroken(_TOO_DEEP), len(text)
    except _Ambiguous as error:
        return JsonBroken(str(error)), len(text)
    except ValueError as error:
        problem = _problem(error, text, place)
    cut_off = ""
    try:
        region = _region(text, place)
        if region is None:
            cut_off = f"{problem}; it never ends: it was cut off, or a bracket is missing"
            again = _STARTS_LINE.search(text, place + 1)
            region = _closed(text, place) if closes and again is None else None
            if region is None:
                return JsonBroken(cut_off), len(text) if again is None else again.end() - 1
        repaired = region.repaired()
        value = _STRICT.decode(repaired)
    except _Ambiguous as error:
        return JsonBroken(cut_off or f"{problem}; {error}"), len(text)
    except (ValueError, RecursionError):
        return JsonBroken(cut_off or problem), len(text)
    if _depth(value) > DEPTH_MAX:
        return JsonBroken(_TOO_DEEP), region.end
    return JsonFound(value, repaired, cut_off), region.end


class _Ambiguous(ValueError):
    """A value that JSON can carry and nobody can read."""


def _no_constant(name: str) -> NoReturn:
    del name
    raise _Ambiguous("a value is not a JSON number; write a number, or null")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value and value[key] != item:
            raise _Ambiguous("a key stands twice with different values; give it once")
        value[key] = item
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _Ambiguous("a number is too large; write a number below 1e308")
    return number


_STRICT = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_once, strict=False
)


def _problem(error: ValueError, text: str, place: int) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return f"the JSON cannot be read: {error}"
    line = text.count("\n", place, error.pos) + 1
    column = error.pos - max(text.rfind("\n", place, error.pos), place - 1)
    return f"the JSON breaks at line {line}, column {column}: {error.msg}"


def _depth(value: Any) -> int:
    """The levels of a value, counted without recursion."""
    level, depth = [value], 0
    while level and depth <= DEPTH_MAX:
        depth += 1
        level = [
            item
            for outer in level
            for item in (
                outer.values()
                if isinstance(outer, dict)
                else outer
                if isinstance(outer, list)
                else ()
            )
            if isinstance(item, dict | list)
        ]
    return depth


@dataclass(frozen=True, slots=True)
class _Region:
    """An object as it was written: its tokens, without comments, and where it ends."""

    tokens: Sequence[str]
    end: int

    def repaired(self) -> str:
        """Its text as JSON, by adding and leaving out punctuation alone.

        Raises _Ambiguous where a value is missing, or two stand side by side without a comma:
        what belongs together there is a guess.
        """
        parts: list[str] = []
        inside: list[str] = []
        last = ""
        for part, following in zip(self.tokens, (*self.tokens[1:], ""), strict=True):
            in_object = inside[-1:] == ["{"]
            if part == "," and (following in ("}", "]") or (in_object and following == ",")):
                continue
            if (last in (":", ",", "[") and part in (",", ":")) or (last == ":" and part in "}]"):
                raise _Ambiguous(f"a value is missing behind {last}")
            if last and last not in "{[,:" and part not in "}],:":
                if not (in_object and following == ":"):
                    raise _Ambiguous("a comma is missing between two values")
                parts.append(",")
            if part in "{[":
                inside.append(part)
            elif part in "}]":
                inside.pop()
            parts.append(part if part in "{}[],:" else _as_json(part, is_key=following == ":"))
            last = part
        return " ".join(parts)


def _closed(text: str, place: int) -> _Region | None:
    """The object at a place with its last braces added; None where more than these is missing.

    Only objects may be open, as a list may have lost items, and the last value must be whole.
    """
    end = _FENCE_END.search(text, place)
    body = text[: end.start() if end else None]
    for missing in range(1, BRACES_ADDED_MAX + 1):
        region = _region(body + "}" * missing, place)
        if region is not None:
            written = region.tokens[:-missing]
            only_objects = set(_open_in(written)) == {"{"}
            is_whole = only_objects and _is_whole(written[-1])
            return _Region(region.tokens, len(text)) if is_whole else None
    return None


def _is_whole(token: str) -> bool:
    """Whether the last token of a text is a bracket or a value, not the beginning of one."""
    is_ended = token[0] in DOUBLE + SINGLE + _CLOSING or token in _CONSTANTS
    return is_ended or _WHOLE_NUMBER.match(token) is not None


def _open_in(tokens: Sequence[str]) -> Sequence[str]:
    """The brackets that these tokens open and do not close."""
    inside: list[str] = []
    for token in tokens:
        if token in ("{", "["):
            inside.append(token)
        elif token in ("}", "]") and inside:
            inside.pop()
    return inside


def _region(text: str, place: int) -> _Region | None:
    """The object at a place; None where it never ends.

    A quote opens a string only where a value or key may begin, and closes it only before
    punctuation or the next key: so an apostrophe or a quote within a text ends nothing.
    """
    tokens: list[str] = []
    inside: list[str] = []
    at = place
    limit = min(len(text), place + REPAIR_CHARS_MAX)
    while at < limit:
        char = text[at].translate(WIDE)
        comment = _comment_at(text, at)
        if comment or char.isspace():
            at += comment or 1
        elif char == "\\" and text[at + 1 : at + 2] in ("n", "r", "t"):
            at += 2
        elif text.startswith("=>", at):
            tokens.append(":")
            at += 2
        elif char in DOUBLE + SINGLE:
            end = _string_end(text, at, limit, in_list=inside[-1:] == ["["])
            if end is None:
                return None
            tokens.append(text[at : end + 1])
            at = end + 1
        elif char in _OPENING + _CLOSING + ",:;=":
            if char in _OPENING:
                inside.append(char)
            elif char in _CLOSING:
                inside.pop()
            tokens.append({";": ",", "=": ":"}.get(char, char))
            at += 1
            if not inside:
                return _Region(tokens, at)
        else:
            bare = _BARE.match(text, at)
            end = bare.end() if bare else at + 1
            tokens.append(text[at:end])
            at = end
    return None


def _string_end(text: str, start: int, limit: int, *, in_list: bool) -> int | None:
    """The place of the quote that closes the string which opens at `start`.

    Raises _Ambiguous where a quote within may as well end it: always in a list.
    """
    quotes = DOUBLE if text[start] in DOUBLE else SINGLE
    at = start + 1
    while at < limit:
        if text[at] == "\\":
            at += 2
        elif text[at] in quotes and _ends_string(text, at + 1):
            return at
        elif text[at] in quotes and (
            (in_list and quotes == DOUBLE) or _QUOTED_NEXT.match(text, at + 1)
        ):
            raise _Ambiguous("quotes stand within a text, or a comma is missing between two")
        else:
            at += 1
    return None


def _as_json(token: str, *, is_key: bool) -> str:
    """A token as JSON: a string between double quotes, a word of Python's or a bare one, a number.

    A percentage or a fraction becomes a text, so that its sign stays.
    """
    if token[0] in DOUBLE + SINGLE:
        content = re.sub(r"\\(.)", _escape, token[1:-1], flags=re.DOTALL)
        return '"' + re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', content) + '"'
    token = token.replace("\\", "")
    if not is_key and token in _CONSTANTS:
        return _CONSTANTS[token]
    if not is_key and _PLAIN_NUMBER.match(token):
        number = token.removeprefix("+")
        number = re.sub(r"^(-?)\.", r"\g<1>0.", number)
        return re.sub(r"\.(?=$|[eE])", ".0", number)
    if token[0].isdigit() and not is_key and not _RATIO.match(token):
        raise _Ambiguous("a number is not written as JSON writes it")
    return json.dumps(token)


def _escape(match: re.Match[str]) -> str:
    """An escape as JSON has it: of punctuation that needs none, the punctuation."""
    char = match[1]
    if char in '"\\/bfnrtu':
        return match[0]
    return f"\\\\{char}" if char.isalnum() else char


def _ends_string(text: str, at: int) -> bool:
    rest = _BLANKS.sub("", text[at : at + 200].translate(WIDE))
    return (
        not rest
        or rest[0] in _AFTER_STRING
        or rest.startswith(("//", "/*", "#"))
        or _KEY_NEXT.match(rest) is not None
    )


def _comment_at(text: str, at: int) -> int:
    """The length of the comment that begins at a place; 0 where none does."""
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        return 0 if end < 0 else end + 2 - at
    if text.startswith("//", at) or text[at] == "#":
        end = text.find("\n", at)
        return (len(text) if end < 0 else end) - at
    return 0
