"""Apprise's channels: mail, Slack, Telegram, ntfy and a hundred more, by one address each.

Only Apprise's own plugins are loaded: it is given no path to others, no configuration and no store.
A plugin is called in a thread of its channel, past Apprise's pools, and one at a time: where a call
outlasts its time limit the channel is busy until it has ended.

Apprise says whether a message was taken, and no more. What the server answered is read off the one
class through which its plugins send HTTP (requests' adapter), for the calls of these threads alone.
"""

import asyncio
import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests
import requests.adapters
from apprise import Apprise, AppriseAsset, NotifyFormat, PersistentStoreMode
from pydantic import SecretStr

from libs.channels.channel import (
    ChannelUnusable,
    Failed,
    Limits,
    Message,
    Outcome,
    Sent,
    by_status,
    hush,
)

LOGGERS = ("apprise", "urllib3", "requests")
"""They log addresses and bodies."""
BODY_CHARS_MAX = 8_000
"""Of one message, whatever a plugin would take."""


@dataclass
class _Heard:
    """The answer of the last HTTP server that one call asked."""

    status: int | None = None
    retry_after: str | None = None
    error: str = ""


_heard: contextvars.ContextVar[_Heard | None] = contextvars.ContextVar("heard", default=None)


class ObservedAdapter(requests.adapters.HTTPAdapter):
    """requests' adapter, but that a call of ours sees what was answered."""

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request."""
        heard = _heard.get()
        if heard is None:
            return super().send(*args, **kwargs)
        try:
            response = super().send(*args, **kwargs)
        except requests.exceptions.SSLError:
            heard.error = "tls"
            raise
        except requests.exceptions.Timeout:
            heard.error = "timeout"
            raise
        except requests.exceptions.RequestException:
            heard.error = "unreachable"
            raise
        heard.status, heard.error = response.status_code, ""
        heard.retry_after = response.headers.get("Retry-After")
        return response


class AppriseChannel:
    """One address of Apprise's. Raises ChannelUnusable where it knows no such address."""

    def __init__(self, name: str, address: SecretStr, timeout_s: float) -> None:
        hush(*LOGGERS)
        # requests makes each session's adapter by this name. But for our calls it is a plain one.
        requests.sessions.HTTPAdapter = ObservedAdapter  # type: ignore[attr-defined]
        self._name = name
        self._timeout_s = timeout_s
        self._plugin = _plugin(name, address)
        self._format = _format(self._plugin.notify_format)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"channel-{name}")
        self._running: asyncio.Future[Outcome] | None = None

    def __repr__(self) -> str:
        return f"AppriseChannel({self._name!r})"

    @property
    def limits(self) -> Limits:
        """The plugin's own limits."""
        title_chars_max = int(self._plugin.title_maxlen)
        room = int(self._plugin.body_maxlen)
        if self._plugin.overflow_amalgamate_title:
            # One text to the server, as Discord's: title, end of line and body together.
            room -= title_chars_max + len("\r\n")
        return Limits(
            title_chars_max=title_chars_max,
            body_chars_max=min(room, BODY_CHARS_MAX),
            markup=self._format.value,
        )

    async def send(self, message: Message) -> Outcome:
        """Send the text."""
        if self._running is not None and not self._running.done():
            return Failed("busy")
        loop = asyncio.get_running_loop()
        self._running = loop.run_in_executor(self._thread, self._call, message)
        done, _ = await asyncio.wait({self._running}, timeout=self._timeout_s)
        return self._running.result() if done else Failed("timeout")

    async def close(self) -> None:
        """Leave the thread; a call that hangs ends by its own time-outs."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _call(self, message: Message) -> Outcome:
        with _listening() as heard:
            try:
                taken = self._plugin.notify(
                    body=message.body,
                    title=message.title,
                    body_format=self._format,
                )
            except Exception:  # noqa: BLE001 - a plugin of many; its text may hold the address
                return Failed("plugin_failed")
        if taken:
            return Sent()
        if heard.error:
            return Failed(heard.error)
        if heard.status is None:
            return Failed("not_taken")
        outcome = by_status(heard.status, heard.retry_after)
        return outcome if isinstance(outcome, Failed) else Failed("not_taken")


def _format(offered: Any) -> NotifyFormat:
    """Plain text where a plugin takes it: in that nothing is markup. Of several that it takes they
    are a tuple."""
    formats = [
        NotifyFormat(name) for name in (offered if isinstance(offered, tuple) else [offered])
    ]
    return NotifyFormat.TEXT if NotifyFormat.TEXT in formats else formats[0]


@contextmanager
def _listening() -> Iterator[_Heard]:
    heard = _Heard()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


def _plugin(name: str, address: SecretStr) -> Any:
    asset = AppriseAsset(
        app_id="Deskbus",
        app_desc="Deskbus",
        app_url="",
        plugin_paths=None,
        storage_mode=PersistentStoreMode.MEMORY,
        secure_logging=True,
        allow_templates=False,
        http_redirects=False,
        interpret_escapes=False,
        interpret_emojis=False,
    )
    url = address.get_secret_value()
    if "format=" not in url:
        # As plain text nothing in a message is markup, where the service has such a format.
        url += f"{'&' if '?' in url else '?'}format=text"
    plugin: Any = None
    try:
        plugin = Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    except Exception:  # noqa: BLE001 - whatever it says may hold the address
        plugin = None
    if plugin is None:
        raise ChannelUnusable(f"channel {name}: Apprise knows no such address")
    return plugin
