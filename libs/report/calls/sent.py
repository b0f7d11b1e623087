"""A model's call text by text, as it was sent, and how it differs from another call. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import orjson
from pydantic import JsonValue

from contracts.operation import ChangedLine, Difference, SentText
from libs.facts import amounts
from libs.report.calls.chat import Chat, Role, Turn
from libs.report.tones import Tone
from libs.report.view import Column, Empty, Row, Table, Text, notes, row, say

CHANGES_MAX = 200
"""Lines of one difference; the others are counted."""
LINE_CHARS = 300
ABOUT_CHARS = 2_000
PARTS = {Role.SYSTEM: "system prompt", Role.TOOLS: "tools", Role.SCHEMA: "answer schema"}
MESSAGE, RESULTS = "message", "tool results"
TAG = re.compile(r"<(/?)([a-z_]+)>")


def sent_texts(chat: Chat) -> Sequence[SentText]:
    """The texts of the call that no earlier one of its transcript has, and the reply."""
    return [text for turn in (*chat.asked, *chat.reply) for text in _texts(turn)]


def _texts(turn: Turn) -> Iterable[SentText]:
    if turn.role is Role.TOOL:
        for result in turn.calls:
            yield SentText(role=turn.role, about=result.sentence, text=result.text)
    else:
        wanted = amounts.cut(", ".join(call.sentence for call in turn.calls), ABOUT_CHARS)
        yield SentText(role=turn.role, about=wanted, text=turn.text, note=turn.note)


def difference(before: Chat, now: Chat, op_id: UUID, index: int) -> Difference:
    """The lines that `now` was sent and `before`, call `index` of `op_id`, was not, and the other
    way round, by part.

    JSON is compared field by field and a tool's result as one line. Lines count as a set: one that
    only moved is no difference, and its part is `moved`.
    """
    old, new = _parts(before), _parts(now)
    lines: list[ChangedLine] = []
    for part in dict.fromkeys((*new, *old)):
        lines += _changed(part, old.get(part, []), new.get(part, []))
    changed = {line.part for line in lines}
    alike = [part for part in new if part not in changed]
    same = tuple(part for part in alike if new[part] == old.get(part, []))
    return Difference(
        op_id=op_id,
        index=index,
        same=same,
        moved=tuple(part for part in alike if part not in same),
        lines=tuple(lines[:CHANGES_MAX]),
        left_out=max(0, len(lines) - CHANGES_MAX),
    )


def _changed(part: str, old: Sequence[str], new: Sequence[str]) -> Iterable[ChangedLine]:
    """Lines that are gone or new; what a line is about stands before what it is about now."""
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    lost: dict[str, list[str]] = {}
    for line in gone.elements():
        lost.setdefault(_subject(line), []).append(line)
    for line in come.elements():
        for was in lost.pop(_subject(line), []):
            yield ChangedLine(part=part, sign="-", text=amounts.cut(was, LINE_CHARS))
        yield ChangedLine(part=part, sign="+", text=amounts.cut(line, LINE_CHARS))
    for was in (line for lines in lost.values() for line in lines):
        yield ChangedLine(part=part, sign="-", text=amounts.cut(was, LINE_CHARS))


def _subject(line: str) -> str:
    return line.partition(" = ")[0]


def _parts(chat: Chat) -> Mapping[str, list[str]]:
    """All that the call was sent, as lines by part; a text that is not on record is its note."""
    parts: dict[str, list[str]] = {}
    for turn in (*chat.before, *chat.asked):
        if turn.role is Role.TOOL:
            parts.setdefault(RESULTS, []).extend(result.sentence for result in turn.calls)
        elif turn.role is Role.USER:
            for part, line in _sections(turn.text or turn.note):
                parts.setdefault(part, []).append(line)
        elif turn.role is not Role.ASSISTANT:
            lines = [
                field for line in (turn.text or turn.note).split("\n") for field in _lines(line)
            ]
            parts.setdefault(PARTS[turn.role], []).extend(lines)
    return parts


def _sections(text: str) -> Iterable[tuple[str, str]]:
    """A message's lines with the delimiters that they stand between: `task`, `facts`, ..."""
    part = MESSAGE
    for line in text.split("\n"):
        tag = TAG.fullmatch(line)
        if tag:
            part = MESSAGE if tag[1] else tag[2]
        else:
            yield from ((part, field) for field in _lines(line))


def _lines(line: str) -> Iterable[str]:
    """The line; of JSON one line a field, under its path."""
    if line[:1] not in {"{", "["}:
        return [line]
    try:
        return _fields("", orjson.loads(line))
    except orjson.JSONDecodeError:
        return [line]


def _fields(path: str, value: JsonValue) -> Iterable[str]:
    if isinstance(value, dict) and value:
        for name, field in value.items():
            yield from _fields(f"{path}.{name}" if path else name, field)
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from _fields(f"{path}[{_name(item, place)}]", item)
    else:
        yield f"{path} = {orjson.dumps(value).decode()}"


def _name(item: JsonValue, place: int) -> str:
    """How an item of a list is called: by its ticker or name, so that it may move."""
    if not isinstance(item, dict):
        return ""
    return str(item.get("ticker") or item.get("name") or item.get("id") or place)


def described(of: Difference | None) -> Table:
    """The difference as a table."""
    title = "Difference to the previous call"
    if of is None:
        none = (
            "The operation's first call; the last decisions of the account have none of this stage."
        )
        return Table((), (), title, empty=Empty(none))
    call = Text(
        f"The previous call is number {of.index} of operation {amounts.short(of.op_id)}.",
        link=f"/operations/{of.op_id}/calls/{of.index}",
    )
    same = f"The same: {', '.join(of.same)}." if of.same else ""
    moved = f"The same lines, in another order: {', '.join(of.moved)}." if of.moved else ""
    more = f"{of.left_out:,} more lines differ." if of.left_out else ""
    return Table(
        (Column(""), Column("Part"), Column("Line", wraps=True)),
        tuple(map(_row, of.lines)),
        title,
        empty=Empty(
            "Both were sent the same lines, in another order."
            if of.moved
            else "Both were sent the same."
        ),
        notes=(call, *notes(same, moved, more)),
    )


def _row(line: ChangedLine) -> Row:
    tone = Tone.GOOD if line.sign == "+" else Tone.BAD
    return row(say(line.sign, tone), say(line.part), say(line.text))
