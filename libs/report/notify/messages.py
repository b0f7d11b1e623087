"""Notices as the text of one message: escaped for its channel, and within its limits. Pure."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from contracts.notice import Notice, Severity
from libs.facts import amounts

MARKED = "\\`*_{}[]()<>~|#"
"""What Markdown gives a meaning to within a line."""
JOINER = "\N{WORD JOINER}"
"""Nobody sees it, and what it stands in is no longer a name that a client knows."""
BULLET = "• "
SEVERITIES: Mapping[Severity, str] = {
    Severity.INFO: "",
    Severity.WARNING: "Warning: ",
    Severity.ALARM: "Alarm: ",
}


Escape = Callable[[str], str]


_BEGINS_A_LIST = re.compile(r"^([-+])(?=\s)")
_EMOJI = re.compile(r":(?=[a-z0-9_+-]+:)", re.IGNORECASE)
_LIKE_A_HOST = re.compile(r"(?<=[A-Za-z0-9])\.(?=[A-Za-z]{2})")


def _markdown(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in MARKED else char for char in text)
    # @everyone, and whoever else is called by that, hears of it whatever stands before.
    return _BEGINS_A_LIST.sub(r"\\\1", escaped).replace("@", f"@{JOINER}")


def _discord(text: str) -> str:
    return _EMOJI.sub(r"\:", _markdown(text))


ESCAPES: Mapping[str, Escape] = {
    "text": lambda text: text,
    "markdown": _markdown,
    "chat": _markdown,
    "discord": _discord,
    "html": html.escape,
}
NEW_LINE: Mapping[str, str] = {
    "text": "\n",
    "markdown": "  \n",
    "chat": "\n",
    "discord": "\n",
    "html": "<br />\n",
}
LINKS: Mapping[str, Escape] = {
    "text": lambda url: url,
    "markdown": _markdown,
    "chat": lambda url: url,
    # In these it is a link without a preview, for which Discord would call at the console.
    "discord": lambda url: f"<{url}>",
    "html": html.escape,
}
"""How a link is written: nothing in it is escaped where a client would take that for a part."""


@dataclass(frozen=True)
class Style:
    """How a channel's messages are written: its markup (one of ESCAPES) and limits, the console's
    address for links, the zone of times."""

    title_chars_max: int
    body_chars_max: int
    markup: str = "text"
    base_url: str | None = None
    zone: ZoneInfo = ZoneInfo("UTC")


@dataclass(frozen=True)
class NoticeText:
    """A message for people."""

    title: str
    body: str


def compose(notices: Sequence[Notice], now: datetime, style: Style) -> NoticeText:
    """One message of these notices, of at least one, in their order.

    Where they do not all fit, the last line says how many more there are. The first one is always
    in it, cut where it must be.
    """
    if len(notices) == 1:
        title, blocks = _title(notices[0]), [_block(notices[0], now, style)]
    else:
        title = f"{len(notices)} messages of your desk"
        blocks = [[f"{BULLET}{_title(notice)}", *_block(notice, now, style)] for notice in notices]
    has_title = len(title) <= style.title_chars_max
    if not has_title:
        blocks[0] = [title, *blocks[0]]
    # Many a channel takes no message without a body.
    body = _packed(blocks, style) or _packed([[title]], style)
    return NoticeText(title if has_title else "", body)


def _escape_of(markup: str) -> Escape:
    """How a line of that markup is written, so that it shows as it stands here."""

    def escape(line: str) -> str:
        if "://" in line:  # no notice holds a link: it is the desk's own
            return LINKS[markup](line)
        # Many a client makes a link of SAP.DE, which leads to whoever has that name.
        return ESCAPES[markup](_LIKE_A_HOST.sub(f".{JOINER}", line))

    return escape


def _packed(blocks: Sequence[Sequence[str]], style: Style) -> str:
    """The blocks; where they are too long the first ones, and how many more there are."""
    escape, new_line, room = _escape_of(style.markup), NEW_LINE[style.markup], style.body_chars_max
    escaped = [[escape(line) for line in block] for block in blocks]
    for count in range(len(blocks), 0, -1):
        lines = [line for block in escaped[:count] for line in block]
        if count < len(blocks):
            lines.append(escape(f"{len(blocks) - count} more are in the console"))
        if len(new_line.join(lines)) <= room:
            return new_line.join(lines)
    return new_line.join(_cut(blocks[0], escape, new_line, room))


def _cut(block: Sequence[str], escape: Escape, new_line: str, room: int) -> Sequence[str]:
    """The first lines that fit, the last one shortened; a link is whole or not there."""
    lines: list[str] = []
    for line in block:
        left = room - len(new_line.join([*lines, ""]))
        if len(escape(line)) <= left:
            lines.append(escape(line))
            continue
        if "://" not in line and (short := _shortened(line, escape, left)):
            lines.append(short)
        break
    return lines


def _shortened(line: str, escape: Escape, room: int) -> str:
    """The beginning that fits, never half of an escape, with … behind it; empty where none does."""
    for length in range(min(len(line), room), 0, -1):
        text = f"{escape(line[:length].rstrip())}…"
        if len(text) <= room:
            return text
    return ""


def _title(notice: Notice) -> str:
    return f"{SEVERITIES[notice.severity]}{notice.title}"


def _block(notice: Notice, now: datetime, style: Style) -> list[str]:
    lines = list(notice.lines)
    if notice.expires_at is not None:
        lines.append(_time_left(notice.expires_at, now, style.zone))
    if notice.page and style.base_url:
        lines.append(f"{style.base_url}{notice.page}")
    return lines


def _time_left(until: datetime, now: datetime, zone: ZoneInfo) -> str:
    if until <= now:
        return "its time to answer has passed"
    left = amounts.between(now, until)
    at = until.astimezone(zone)
    return f"answer within {left}, until {at:%H:%M %Z}: in the console, or by `deskbus approvals`"
