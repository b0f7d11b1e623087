"""A model's call text by text, as it was sent, and how it differs from another call. Pure."""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal
from uuid import UUID

import orjson
from pydantic import JsonValue

from contracts.operation import ChangedLine, Difference, SentText
from libs.facts import amounts
from libs.report import view
from libs.report.calls.chat import Chat, ChatRole, Spoken, Turn
from libs.report.tones import Tone
from libs.report.view import Column, NoRows, Table, Text

ROWS_MAX = 500
"""Lines of a difference on a page; `operations show --full` prints all."""
LINE_CHARS = 300
ALIKE_CHARS = 60
"""So much of what two long lines begin with alike is shown before where they part."""
ABOUT_CHARS = 2_000
PARTS = {
    ChatRole.SYSTEM: "system prompt",
    ChatRole.TOOLS: "tools",
    ChatRole.SCHEMA: "answer schema",
}
MESSAGE, RESULTS = "message", "tool results"
TAG = re.compile(r"<(/?)([a-z_]+)>")


def sent_texts(chat: Chat) -> Sequence[SentText]:
    """The texts of the call that no earlier one of its transcript has, and the reply."""
    return [text for turn in (*chat.asked, *chat.reply) for text in _texts(turn)]


def _texts(turn: Turn) -> Iterable[SentText]:
    if turn.role is ChatRole.TOOL:
        for result in turn.calls:
            yield SentText(role=turn.role, about=result.sentence, text=result.text)
    else:
        wanted = amounts.cut(", ".join(call.sentence for call in turn.calls), ABOUT_CHARS)
        yield SentText(role=turn.role, about=wanted, text=turn.text, note=turn.note)


def difference(before: Chat, now: Chat, op_id: UUID, index: int) -> Difference:
    """The lines that `now` was sent and `before`, call `index` of `op_id`, was not, and the other
    way round, by part.

    JSON is compared field by field. A tool's result that both were sent with other contents is too;
    one that only one of them was sent is one line. Lines count as a set: one that only moved is no
    difference, and its part is `moved`.
    """
    old, new = _parts(before, now), _parts(now, before)
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
        lines=tuple(lines),
    )


def _changed(part: str, old: Sequence[str], new: Sequence[str]) -> Iterable[ChangedLine]:
    """Lines that are gone or new; what a line is about stands before what it is about now."""
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    lost: dict[str, list[str]] = {}
    for line in gone.elements():
        lost.setdefault(_subject(line), []).append(line)
    was_long, is_long = sorted(filter(_is_long, gone)), sorted(filter(_is_long, come))

    def changed(sign: Literal["+", "-"], line: str) -> ChangedLine:
        others = was_long if sign == "+" else is_long
        return ChangedLine(part=part, sign=sign, text=_around(line, others))

    for line in come.elements():
        for was in lost.pop(_subject(line), []):
            yield changed("-", was)
        yield changed("+", line)
    for was in (line for lines in lost.values() for line in lines):
        yield changed("-", was)


def _is_long(line: str) -> bool:
    return len(line) > LINE_CHARS


def _around(line: str, others: Sequence[str]) -> str:
    """The line cut to what can be read. Of a long line what the one most like it, among the
    sorted others, has too is left out at its start."""
    if _is_long(line):
        # The string with the longest beginning in common is a neighbour in the order.
        place = bisect(others, line)
        alike = max((_alike(line, it) for it in others[max(0, place - 1) : place + 1]), default=0)
        if alike > LINE_CHARS // 2:
            line = f"… {line[alike - ALIKE_CHARS :]}"
    return amounts.cut(line, LINE_CHARS)


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _subject(line: str) -> str:
    return line.partition(" = ")[0]


def _parts(chat: Chat, other: Chat) -> Mapping[str, list[str]]:
    """All that the call was sent, as lines by part; a text that is not on record is its note."""
    parts: dict[str, list[str]] = {}
    for turn in (*chat.before, *chat.asked):
        if turn.role is ChatRole.USER:
            for part, line in _sections(turn.text or turn.note):
                parts.setdefault(part, []).append(line)
        elif turn.role not in {ChatRole.ASSISTANT, ChatRole.TOOL}:
            parts.setdefault(PARTS[turn.role], []).extend(_fields_of(turn.text or turn.note))
    if results := _results(chat):
        theirs = _results(other)
        parts[RESULTS] = [
            line
            for call, texts in results.items()
            for line in _result_lines(call, texts, theirs.get(call, texts))
        ]
    return parts


def _results(chat: Chat) -> Mapping[str, list[Spoken]]:
    """The results of tools that the call was sent, by what was called."""
    results: dict[str, list[Spoken]] = {}
    for turn in (*chat.before, *chat.asked):
        for result in turn.calls if turn.role is ChatRole.TOOL else ():
            results.setdefault(_subject(result.sentence), []).append(result)
    return results


def _result_lines(call: str, mine: Sequence[Spoken], theirs: Sequence[Spoken]) -> Iterable[str]:
    """One line a result; field by field where the other call was sent it with other contents."""
    if [(it.sentence, it.text) for it in mine] == [(it.sentence, it.text) for it in theirs]:
        return [result.sentence for result in mine]
    return [f"{call}: {field}" for result in mine for field in _fields_of(result.text)]


def _fields_of(text: str) -> Iterable[str]:
    return (field for line in text.split("\n") for field in _lines(line))


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


def described(of: Difference | None, rows_max: int | None = None) -> Table:
    """The difference as a table of at most so many lines, which says how many more there are."""
    title = "Difference to the previous call"
    if of is None:
        none = (
            "The operation's first call; the last decisions of the account have none of this stage."
        )
        return view.table((), (), title, empty=NoRows(none))
    call = Text(
        f"The previous call is number {of.index} of operation {amounts.short(of.op_id)}.",
        link=f"/operations/{of.op_id}/calls/{of.index}",
    )
    same = f"The same: {', '.join(of.same)}." if of.same else ""
    moved = f"The same lines, in another order: {', '.join(of.moved)}." if of.moved else ""
    left_out = len(of.lines[rows_max:]) if rows_max is not None else 0
    whole = f"deskbus operations show {amounts.short(of.op_id)} --full"
    more = f"{left_out:,} more lines differ; `{whole}` prints all." if left_out else ""
    return view.table(
        ("", "Part", Column("Line", wraps=True)),
        (
            (view.say(it.sign, Tone.GOOD if it.sign == "+" else Tone.BAD), it.part, it.text)
            for it in of.lines[:rows_max]
        ),
        title,
        empty=NoRows(
            "Both were sent the same lines, in another order."
            if of.moved
            else "Both were sent the same."
        ),
        notes=(call, *view.notes(same, moved, more)),
    )
