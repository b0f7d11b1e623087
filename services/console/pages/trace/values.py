"""A recorded value as a tree to fold, bounded in size and depth. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import orjson
from pydantic import JsonValue

from libs.facts import amounts

NODES_MAX = 1_500
"""Of one tree; what is left out is counted, and is in the JSON."""
DEPTH_MAX = 12
LINE_CHARS = 120
"""A text that is longer, or has lines, stands in a block of its own."""
OPEN_MAX = 12
FIELDS_OPEN_MAX = 40
"""A list of so few items, or an object of so few fields, is open from the beginning, two levels
deep: who clicks on a figure sees its number."""

Kind = Literal["text", "long", "number", "none", "list", "object"]


@dataclass(frozen=True)
class NamedValue:
    """One value with its name. `inner` are those of a list or an object, `more` those left out."""

    name: str
    kind: Kind
    text: str = ""
    inner: Sequence["NamedValue"] = ()
    size: int = 0
    is_open: bool = False

    @property
    def is_branch(self) -> bool:
        """Whether it holds others."""
        return self.kind in {"list", "object"}

    @property
    def more(self) -> int:
        """How many of those that it holds are not here."""
        return self.size - len(self.inner) if self.is_branch else 0

    @property
    def held(self) -> str:
        """How many it holds."""
        return amounts.count(self.size, "item" if self.kind == "list" else "field")


@dataclass(frozen=True)
class RecordedValue:
    """A recorded value: as a tree, and as JSON to be copied."""

    values: Sequence[NamedValue]
    json: str


def recorded(value: JsonValue) -> RecordedValue | None:
    """The value by its fields; None where there is none."""
    if value is None:
        return None
    whole = _Room(NODES_MAX).value("", value, 0)
    values = whole.inner if whole.is_branch and not whole.more else [whole]
    return RecordedValue(values, orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


@dataclass(frozen=True)
class Passage:
    """Some of what was said in a chat: words, or a value that was written as JSON on a line."""

    text: str
    values: Sequence[NamedValue] = ()
    is_open: bool = False


def passages(text: str) -> Sequence[Passage]:
    """The text in its order; what is JSON as a tree, all else as words, whatever they look like."""
    room = _Room(NODES_MAX)
    parts: list[Passage] = []
    words: list[str] = []
    for line in amounts.plain(text).split("\n"):
        value = _json_in(line)
        if not value or room.left <= 0:
            words.append(line)
            continue
        parts += _words(words)
        words = []
        # One level is open: the task of an agent is long, and mostly known.
        branch = room.value("", value, 1)
        parts.append(Passage(f"JSON, {branch.held}", branch.inner, branch.is_open))
    return [*parts, *_words(words)]


def _words(lines: Sequence[str]) -> Sequence[Passage]:
    text = "\n".join(lines).strip("\n")
    return [Passage(text)] if text else []


def _json_in(line: str) -> JsonValue:
    """The object or the list that the line is; None of any other."""
    if line[:1] not in {"{", "["}:
        return None
    try:
        value: JsonValue = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value


@dataclass
class _Room:
    """How many more values there may be."""

    left: int

    def value(self, name: str, value: JsonValue, depth: int) -> NamedValue:
        """The value with what it holds, as far as there is room."""
        self.left -= 1
        if isinstance(value, dict):
            return self._branch(name, "object", value.items(), len(value), depth)
        if isinstance(value, list):
            pairs = ((str(place), field) for place, field in enumerate(value))
            return self._branch(name, "list", pairs, len(value), depth)
        return _leaf(name, value)

    def _branch(
        self,
        name: str,
        kind: Kind,
        pairs: Iterable[tuple[str, JsonValue]],
        size: int,
        depth: int,
    ) -> NamedValue:
        if not size:
            return NamedValue(name, "none", "no items" if kind == "list" else "no fields")
        inner: list[NamedValue] = []
        if depth < DEPTH_MAX:
            for key, field in pairs:
                if self.left <= 0:
                    break
                inner.append(self.value(key, field, depth + 1))
        few = FIELDS_OPEN_MAX if kind == "object" else OPEN_MAX
        return NamedValue(name, kind, "", inner, size, is_open=depth < 2 and size <= few)


def _leaf(name: str, value: JsonValue) -> NamedValue:
    if value is None:
        return NamedValue(name, "none", "none")
    if isinstance(value, str):
        text = amounts.plain(value)
        return NamedValue(name, "long" if len(text) > LINE_CHARS or "\n" in text else "text", text)
    return NamedValue(name, "number", orjson.dumps(value).decode())
