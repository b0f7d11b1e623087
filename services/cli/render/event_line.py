"""One event as one line. Made without rich's renderer: a busy desk has thousands a second."""

from collections.abc import Callable
from textwrap import wrap

from contracts.audit import Event, EventType
from libs.facts import amounts
from libs.report import events
from services.cli.shell.terminal import TONE_STYLES

TEXT_CHARS = 160
TEXT_WIDTH_MIN = 30
"""Columns for the words; where fewer are left they stand below, indented."""
INDENT = 10
Paint = Callable[[str, str], str]

OF_CALLS = frozenset(
    {
        EventType.LLM_REQUESTED,
        EventType.LLM_CALLED,
        EventType.ANSWER_CHECKED,
        EventType.TOOL_CALLED,
        EventType.DATA_READ,
    }
)
"""Many a step, and dim."""


def line(event: Event, paint: Paint, width: int | None = None) -> str:
    """The event for people: time, cycle, number, pipeline, what, and what there is to say.

    It is one line, but where it is wider than `width` columns: there the words go on below
    themselves, or on lines of their own.
    """
    at = event.at.astimezone()
    words = events.described(event)
    style = "dim" if event.type in OF_CALLS else TONE_STYLES[words.tone]
    what = f"{event.type.value:<19}"
    clock = f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"
    source = f"{amounts.short(event.cycle_id)} {event.sequence:>4}"
    pipeline = f"{event.pipeline or '':<10}"
    head = "  ".join(
        (
            paint(clock, "dim"),
            paint(source, "dim"),
            pipeline,
            paint(what, style) if style else what,
        )
    )
    text = amounts.cut(words.text, TEXT_CHARS)
    used = len("  ".join((clock, source, pipeline, what, "")))
    if width is None or used + len(text) <= width:
        return f"{head}  {text}".rstrip()
    below = width - used < TEXT_WIDTH_MIN
    indent = INDENT if below else used
    lines = wrap(text, max(width - indent, TEXT_WIDTH_MIN), break_on_hyphens=False)
    gap = f"\n{'':{indent}}"
    return f"{head}{gap if below else '  '}{gap.join(lines)}"
