"""One call of Apprise, in a process of its own: a request as JSON on stdin, its answer on stdout.

    {"url": "..."}                                  {"limits": ...}, or {"problem": ...}
    {"url": "...", "title": "...", "body": "...", "timeout_s": 20}
                                                    {"code": ""}, or the code of what went wrong

The first one only reads the address, the second one sends. Loading Apprise takes a second or, on a
busy machine, many: the time limit begins after it.

Apprise says only whether a message was taken. Why it was not is read off its log, which leaves this
process as a code alone. Only Apprise's own plugins are loaded.
"""

import logging
import re
import resource
import signal
import sys
import threading
from typing import Any

import orjson
from apprise import Apprise, AppriseAsset, NotifyFormat, PersistentStoreMode

MEMORY_BYTES_MAX = 1024**3
BODY_CHARS_MAX = 8_000
"""Of one message, whatever a plugin would take."""
BODY_CHARS_MAX_OF = {"ntfy": 3_500}
"""Of services that take less than their plugin says: ntfy makes more than 4,096 bytes a file."""
CHATS = {
    "Discord": "discord",
    "Fluxer": "chat",
    "Guilded": "chat",
    "Mastodon": "chat",
    "Mattermost": "chat",
    "Misskey": "chat",
    "Nextcloud Talk": "chat",
    "Revolt": "chat",
    "Zulip": "chat",
}
"""The markup of services that show as Markdown what their plugin takes for plain text."""
NOT_TAKEN = "not_taken"
EXCEPTION = "Socket Exception"
CODES = (
    (re.compile(r"error=([345]\d\d)(?:\d\d)?\b"), "http_{}"),
    (re.compile(r"\((\d{3}), b?['\"]"), "smtp_{}"),
    (re.compile(r"STARTTLS"), "smtp_no_tls"),
    (re.compile(r"\bAUTH\b|authentication method"), "smtp_no_login"),
    (re.compile(r"certificate|SSL", re.IGNORECASE), "tls"),
    (re.compile(r"proxy", re.IGNORECASE), "proxy"),
    (re.compile(r"timed out|Timeout", re.IGNORECASE), "timeout"),
    (re.compile(r"connection error|exception", re.IGNORECASE), "unreachable"),
)
"""What Apprise and its plugins log of a failure, the most certain first."""


class Codes(logging.Handler):
    """Reads the code of a failure off the records of one call."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._best = len(CODES)
        self.code = NOT_TAKEN

    def emit(self, record: logging.LogRecord) -> None:
        """Look at one record: a warning, or the exception that it is about."""
        text = record.getMessage()
        if record.levelno < logging.WARNING and not text.startswith(EXCEPTION):
            return
        for rank, (pattern, code) in enumerate(CODES[: self._best]):
            if match := pattern.search(text):
                self._best = rank
                self.code = code.format(*filter(None, match.groups()))
                return


def main() -> None:
    """Answer the request on stdin."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    sys.stdout.buffer.write(orjson.dumps(answer(orjson.loads(sys.stdin.buffer.read()))))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request; never raises."""
    codes = Codes()
    logger = logging.getLogger("apprise")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(codes)
    for name in ("urllib3", "requests"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return _answer(request, codes)
    except TimeoutError:
        return {"code": "timeout"}
    except OSError:  # the certificates of REQUESTS_CA_BUNDLE cannot be read
        return {"code": "tls"}
    except Exception:  # noqa: BLE001 - a plugin of many; its text may hold the address
        return {"code": "plugin_failed"}
    finally:
        logger.removeHandler(codes)


def _answer(request: dict[str, Any], codes: Codes) -> dict[str, Any]:
    plugin = _plugin(request["url"])
    if plugin is None:
        return {"problem": "Apprise knows no such address"}
    service = str(plugin.service_name)
    if "body" not in request:
        problem = _not_one(plugin, service)
        return {"problem": problem} if problem else {"limits": _limits(plugin, service)}
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, _time_is_up)
        signal.setitimer(signal.ITIMER_REAL, request["timeout_s"])
    taken = plugin.notify(
        body=request["body"], title=request["title"], body_format=_format(plugin.notify_format)
    )
    return {"code": "" if taken else codes.code}


def _time_is_up(*_: object) -> None:
    raise TimeoutError("timed out")


def _plugin(url: str) -> Any:
    asset = AppriseAsset(
        app_id="Deskbus",
        app_desc="Deskbus",
        app_url="",
        # No picture, which the reader's client would fetch from elsewhere.
        image_url_mask="",
        image_url_logo="",
        plugin_paths=None,
        storage_mode=PersistentStoreMode.MEMORY,
        secure_logging=True,
        allow_templates=False,
        http_redirects=False,
        interpret_escapes=False,
        interpret_emojis=False,
    )
    if "format=" not in url:
        # In plain text nothing is markup, where the service has such a format.
        url += f"{'&' if '?' in url else '?'}format=text"
    return Apprise.instantiate(url, asset=asset, suppress_exceptions=True)


def _not_one(plugin: Any, service: str) -> str:
    """Why the address does not lead to exactly one recipient; empty where it does."""
    if len(plugin) > 1 or getattr(plugin, "cc", None) or getattr(plugin, "bcc", None):
        return "its address names several recipients; give each one a channel"
    if service == "Telegram" and not plugin.targets:
        # Apprise would take the first chat that wrote to the bot.
        return "its address names no chat; tgram://TOKEN/CHAT-ID"
    return ""


def _limits(plugin: Any, service: str) -> dict[str, Any]:
    plain = _format(plugin.notify_format)
    markup = CHATS.get(service, plain.value) if plain is NotifyFormat.TEXT else plain.value
    # The plugin would join the title with the body: so it is written and measured as a part of it.
    joined = markup in CHATS.values() or plugin.overflow_amalgamate_title
    return {
        "title_chars_max": 0 if joined else int(plugin.title_maxlen),
        "body_chars_max": min(
            int(plugin.body_maxlen), BODY_CHARS_MAX_OF.get(service, BODY_CHARS_MAX)
        ),
        "markup": markup,
    }


def _format(offered: Any) -> NotifyFormat:
    """Plain text where a plugin takes it, which may offer one format or several."""
    formats = [NotifyFormat(it) for it in (offered if isinstance(offered, tuple) else [offered])]
    return NotifyFormat.TEXT if NotifyFormat.TEXT in formats else formats[0]


if __name__ == "__main__":
    main()
