"""Text files that people write (TOML, YAML), read within bounds.

A bound stands before the work that it limits: bytes before the file is in memory, nesting before a
parser follows it. A parser's time and memory then grow with the file's size and no faster.
"""

import re
import tomllib
from collections.abc import Callable
from decimal import DecimalException
from pathlib import Path
from typing import Any

from libs.runtime.errors import DeskError

FILE_BYTES_MAX = 1_000_000
"""Of one file, where its reader names no smaller limit."""
NESTING_MAX = 32
"""Lists and tables within one another, and names joined by dots; the desk's own files have five."""
NUMBER_CHARS_MAX = 100
"""Of a YAML number: a longer one takes Python seconds to read, and cannot be printed."""

_MARKS = re.compile(r'"""|\'\'\'|["\'#\[\]{}=,.\n]|0[xob][\da-fA-F_]{40,}')
_STRING_ENDS = {
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*+"""', re.DOTALL),
    "'''": re.compile(r"(?:[^']|'(?!''))*+'''"),
    '"': re.compile(r'(?:[^"\\\n]|\\.)*+"'),
    "'": re.compile(r"[^'\n]*'"),
    "#": re.compile(r"[^\n]*"),
}


class UnreadableFile(DeskError):
    """A file is too large, nested too deep, or not in the expected format."""

    code = "unreadable"


def text_in(path: Path, bytes_max: int = FILE_BYTES_MAX) -> str:
    """The text of a file. Raises UnreadableFile, and OSError where the file cannot be opened."""
    with path.open("rb") as file:
        body = file.read(bytes_max + 1)
    if len(body) > bytes_max:
        raise UnreadableFile(f"it has more than {bytes_max:,} bytes, the limit: make it shorter")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFile("it is not UTF-8 text: save it as UTF-8") from None


def toml_in(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The tables of a TOML text. Raises UnreadableFile."""
    _bound_toml(text)
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except (ValueError, DecimalException) as error:
        # Of numbers that are too large tomllib raises what Python does.
        why = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number is too large"
        raise UnreadableFile(f"it is not valid TOML: {why}") from error


TICKERS = "universe"
"""The key of a list of tickers, in every YAML file that people write."""
TEXT_TAG = "tag:yaml.org,2002:str"


def yaml_in(text: str, first: str = "name") -> dict[str, Any]:
    """The mapping of a YAML text, whose first key is usually `first`. Raises UnreadableFile.

    Aliases are refused: with them a small text can mean a huge value. So is a key that stands twice
    in one mapping: readers differ in which of the two counts; and a ticker that YAML reads as
    something else than a text, such as ON, TRUE or 1810.
    """
    import yaml  # noqa: PLC0415 - few commands read YAML

    try:
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            match event:
                case yaml.AliasEvent():
                    raise UnreadableFile("aliases (*name) are not read: write the value out")
                case yaml.CollectionStartEvent():
                    depth += 1
                case yaml.CollectionEndEvent():
                    depth -= 1
                case yaml.ScalarEvent(value=value, implicit=(True, _)):
                    _bound_number(value)
            if depth > NESTING_MAX:
                raise _nested(event.start_mark.line + 1)
        root = yaml.compose(text, yaml.SafeLoader)
        _refuse_repeated(root)
        _refuse_unquoted(root)
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UnreadableFile(f"it is not valid YAML: {_where(error)}") from error
    except ValueError as error:  # of a date or number that has the form of one and is none
        raise UnreadableFile(f"it is not valid YAML: {str(error)[:120]}") from error
    if not isinstance(read, dict):
        raise UnreadableFile(f"it is a mapping that begins with `{first}:`; this is something else")
    return read


def _bound_toml(text: str) -> None:
    """Raise UnreadableFile for nesting that tomllib follows by recursion or in quadratic time.

    A string without an end stops the search: tomllib stops there too.
    """
    at = depth = dots = 0
    while (match := _MARKS.search(text, at)) is not None:
        mark, at = match[0], match.end()
        if mark in _STRING_ENDS:
            end = _STRING_ENDS[mark].match(text, at)
            if end is None:
                return
            at = end.end()
            continue
        if mark.startswith("0"):
            raise UnreadableFile(f"it is not valid TOML: a number is too large ({mark[:20]}...)")
        dots = dots + 1 if mark == "." else 0
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
        if depth > NESTING_MAX or dots > NESTING_MAX:
            raise _nested(text.count("\n", 0, at) + 1)


def _refuse_repeated(node: Any) -> None:
    """Raise UnreadableFile for a key that stands twice in one mapping."""
    inner = node.value if node is not None and not isinstance(node.value, str) else []
    if node is not None and node.id == "mapping":
        seen = set()
        for key, _ in inner:
            if isinstance(key.value, str) and (key.tag, key.value) in seen:
                raise UnreadableFile(f"line {key.start_mark.line + 1}: `{key.value}` stands twice")
            seen.add((key.tag, str(key.value)))
        inner = [part for pair in inner for part in pair]
    for part in inner:
        _refuse_repeated(part)


def _refuse_unquoted(root: Any) -> None:
    """Raise UnreadableFile for a ticker that YAML takes for something else than a text."""
    if root is None or root.id != "mapping":
        return
    for key, value in root.value:
        if key.value != TICKERS or value.id != "sequence":
            continue
        for item in value.value:
            if item.id == "scalar" and item.tag != TEXT_TAG:
                raise UnreadableFile(
                    f"line {item.start_mark.line + 1}: {TICKERS}: {item.value[:20] or 'nothing'} "
                    f'is a {_kind(item.tag)} to YAML, no text; quote it: "{item.value[:20]}"'
                )


def _kind(tag: str) -> str:
    return {"bool": "truth value", "null": "missing value", "timestamp": "date"}.get(
        tag.rpartition(":")[2], "number"
    )


def _bound_number(value: str) -> None:
    is_number = value.lstrip("+-.")[:1].isdigit() and not any(char.isspace() for char in value)
    if is_number and len(value) > NUMBER_CHARS_MAX:
        raise UnreadableFile(
            f"a number has more than {NUMBER_CHARS_MAX} characters ({value[:20]}...): shorten it, "
            "or quote it if it is text"
        )


def _nested(line: int) -> UnreadableFile:
    return UnreadableFile(
        f"line {line} is nested more than {NESTING_MAX} levels deep, the limit: close the brackets "
        "before it, or use fewer levels"
    )


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or "it cannot be read"
    return f"{what} (line {mark.line + 1}, column {mark.column + 1})" if mark else str(what)
