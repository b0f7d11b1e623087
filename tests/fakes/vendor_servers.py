"""Telegram, Slack, Discord and ntfy as their servers answer, well and badly, and what their readers
see of a message. Each is a judge of `channel_server`; `Vendors` is all of them, by the host asked.

Statuses and bodies are those of the services' documentation and of their answers on record; nobody
has tried these stand-ins against the services themselves.
"""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from tests.fakes.channel_server import Answer, Heard

JSON_TYPE = {"Content-Type": "application/json"}


def _json(status: int, body: Mapping[str, Any], **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {**JSON_TYPE, **named}, body=json.dumps(body).encode())


# --- Telegram -------------------------------------------------------------------------------------

TELEGRAM_TAGS = frozenset({"a", "b", "blockquote", "code", "em", "i", "pre", "s", "strong", "u"})


class _Entities(HTMLParser):
    """The text of HTML as Telegram takes it; `wrong` is the first tag that it does not."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.wrong, self.marked = "", "", False

    def handle_starttag(self, tag: str, _: Any) -> None:
        self.marked = True
        if tag not in TELEGRAM_TAGS:
            self.wrong = self.wrong or tag

    def handle_data(self, data: str) -> None:
        self.text += data


@dataclass
class Telegram:
    """A bot's API: one token, chats that know the bot, and some that have blocked it."""

    token: str = f"123456789:{'a' * 35}"
    chats: frozenset[str] = frozenset({"12345678"})
    blocked: frozenset[str] = frozenset({"87654321"})
    flooded_s: int | None = None
    shown: list[str] = field(default_factory=list)

    def __call__(self, heard: Heard) -> Answer:
        asked = re.fullmatch(r"/bot([^/]+)/sendMessage", heard.path)
        if asked is None:
            return self._no(404, "Not Found")
        if asked[1] != self.token:
            return self._no(401, "Unauthorized")
        if self.flooded_s is not None:
            wait = self.flooded_s
            text = f"Too Many Requests: retry after {wait}"
            return self._no(429, text, parameters={"retry_after": wait})
        message = heard.json
        chat = str(message["chat_id"])
        if chat in self.blocked:
            return self._no(403, "Forbidden: bot was blocked by the user")
        if chat not in self.chats:
            return self._no(400, "Bad Request: chat not found")
        read = _Entities()
        read.feed(message["text"])
        read.close()
        if read.wrong:
            why = f'Unsupported start tag "{read.wrong}" at byte offset 0'
            return self._no(400, f"Bad Request: can't parse entities: {why}")
        if not read.text.strip():
            return self._no(400, "Bad Request: message text is empty")
        if len(read.text) > 4096:
            return self._no(400, "Bad Request: message is too long")
        assert not read.marked, "nothing of ours is markup"
        self.shown.append(read.text)
        return _json(200, {"ok": True, "result": {"message_id": 1, "text": read.text}})

    def _no(self, status: int, description: str, **more: Any) -> Answer:
        body = {"ok": False, "error_code": status, "description": description, **more}
        return _json(status, body)


# --- Slack ----------------------------------------------------------------------------------------


@dataclass
class Slack:
    """An incoming webhook at hooks.slack.com, and a bot's API at slack.com."""

    hook: str = f"/services/T1JJ3T3L2/A1BRTD4JD/{'T' * 24}"
    bot_token: str = "-".join(["xoxb", "1234", "1234", "abc124"])  # no secret, and seen to be none
    channels: frozenset[str] = frozenset({"#general"})
    is_archived: bool = False
    flooded: Mapping[str, str] | None = None
    shown: list[str] = field(default_factory=list)

    def __call__(self, heard: Heard) -> Answer:
        is_bot = heard.path == "/api/chat.postMessage"
        if self.flooded is not None:
            body = b'{"ok":false,"error":"ratelimited"}' if is_bot else b"rate_limited"
            return Answer(429, self.flooded, body=body)
        return self._of_bot(heard) if is_bot else self._of_hook(heard)

    def _of_hook(self, heard: Heard) -> Answer:
        if heard.path != self.hook:
            is_known = heard.path.rpartition("/")[0] == self.hook.rpartition("/")[0]
            return (
                Answer(403, body=b"invalid_token") if is_known else Answer(404, body=b"no_service")
            )
        if self.is_archived:
            return Answer(410, body=b"channel_is_archived")
        return Answer(body=b"ok") if self._show(heard) else Answer(400, body=b"invalid_payload")

    def _of_bot(self, heard: Heard) -> Answer:
        if heard.headers.get("authorization") != f"Bearer {self.bot_token}":
            return _json(200, {"ok": False, "error": "invalid_auth"})
        if heard.json.get("channel") not in self.channels:
            return _json(200, {"ok": False, "error": "channel_not_found"})
        if self.is_archived:
            return _json(200, {"ok": False, "error": "is_archived"})
        self._show(heard)
        return _json(200, {"ok": True, "channel": "C1", "ts": "1.2", "message": {}})

    def _show(self, heard: Heard) -> bool:
        """Keep what a reader sees; False where it is no message."""
        try:
            (attachment,) = heard.json["attachments"]
        except (ValueError, KeyError):
            return False
        text = "\n".join(part for part in (attachment["title"], attachment["text"]) if part)
        assert "<" not in text, "it would be a link, or call somebody"
        assert "mrkdwn_in" not in attachment, "its text would be markup"
        self.shown.append(html.unescape(text))
        return True


# --- Discord --------------------------------------------------------------------------------------

DISCORD_CHARS_MAX = 2_000
DISCORD_CALLS = re.compile(r"@(everyone|here)|<@[!&]?\d+>|<#\d+>")
DISCORD_MARKUP = re.compile(r"[*_~`|#\[\]]|^>|^-#|<[^h]|:\w+:", re.MULTILINE)
DISCORD_ESCAPE = re.compile(r"\\([^0-9A-Za-z\s])")
DISCORD_LINK = re.compile(r"<(https?://[^\s>]+)>")


def discord_shows(content: str) -> str:
    """What a reader sees of a content; it may call nobody and hold no markup."""
    assert not DISCORD_CALLS.search(content), "it would call somebody"
    bare = DISCORD_LINK.sub("", DISCORD_ESCAPE.sub("", content))
    assert not DISCORD_MARKUP.search(bare), f"it would be markup: {bare}"
    return DISCORD_LINK.sub(r"\1", DISCORD_ESCAPE.sub(r"\1", content))


@dataclass
class Discord:
    """A webhook; a wait is asked for in seconds, with a fraction."""

    number: str = "417429632418316298"
    token: str = "a-token"
    flooded_s: float | None = None
    shown: list[str] = field(default_factory=list)

    def __call__(self, heard: Heard) -> Answer:
        asked = re.fullmatch(r"/api/webhooks/([^/]+)/([^/?]+)(\?.*)?", heard.path)
        if asked is None or asked[1] != self.number:
            return _json(404, {"message": "Unknown Webhook", "code": 10015})
        if asked[2] != self.token:
            return _json(401, {"message": "Invalid Webhook Token", "code": 50027})
        if self.flooded_s is not None:
            body = {
                "message": "You are being rate limited.",
                "retry_after": self.flooded_s,
                "global": False,
            }
            # The header has whole seconds.
            return _json(429, body, Retry_After=str(int(self.flooded_s)), X_RateLimit_Remaining="0")
        if asked[3] and "thread_id" in asked[3]:
            return _json(400, {"message": "Unknown Channel", "code": 10003})
        content = heard.json.get("content", "")
        if not content:
            return _json(400, {"message": "Cannot send an empty message", "code": 50006})
        if len(content) > DISCORD_CHARS_MAX:
            error = {"code": "BASE_TYPE_MAX_LENGTH", "message": "Must be 2000 or fewer in length."}
            errors = {"content": {"_errors": [error]}}
            return _json(400, {"message": "Invalid Form Body", "code": 50035, "errors": errors})
        self.shown.append(discord_shows(content))
        return Answer(204)


# --- ntfy -----------------------------------------------------------------------------------------

NTFY_BYTES_MAX = 4_096


@dataclass
class Ntfy:
    """A server for which one topic is not open; longer texts may not be files on it."""

    closed: frozenset[str] = frozenset({"not-yours"})
    is_flooded: bool = False
    shown: list[str] = field(default_factory=list)

    def __call__(self, heard: Heard) -> Answer:
        if self.is_flooded:
            return self._no(429, 42901, "limit reached: too many requests")
        message = heard.json
        if not re.fullmatch(r"[-_A-Za-z0-9]{1,64}", message.get("topic", "")):
            return self._no(400, 40009, "invalid request: topic invalid")
        if message["topic"] in self.closed:
            return self._no(403, 40301, "forbidden")
        text = message.get("message", "")
        if len(text.encode()) > NTFY_BYTES_MAX:
            return self._no(400, 40014, "invalid request: attachments not allowed")
        assert "x-markdown" not in heard.headers
        self.shown.append("\n".join(part for part in (message.get("title"), text) if part))
        return _json(200, {"id": "x", "event": "message", "topic": message["topic"]})

    def _no(self, status: int, code: int, error: str) -> Answer:
        return _json(status, {"code": code, "http": status, "error": error})


# --- all ------------------------------------------------------------------------------------------


@dataclass
class Vendors:
    """All of them behind one address, told apart by the host that was asked."""

    telegram: Telegram = field(default_factory=Telegram)
    slack: Slack = field(default_factory=Slack)
    discord: Discord = field(default_factory=Discord)
    ntfy: Ntfy = field(default_factory=Ntfy)

    def __call__(self, heard: Heard) -> Answer:
        judges = {
            "api.telegram.org": self.telegram,
            "discord.com": self.discord,
            "hooks.slack.com": self.slack,
            "ntfy.sh": self.ntfy,
            "slack.com": self.slack,
        }
        return judges[heard.headers["host"]](heard)
