"""Apprise's channels: mail, Slack, Telegram, ntfy and a hundred more, by one address each.

Only Apprise's own plugins are loaded: it is given no path to others, no configuration and no store.
A plugin is called in a thread of its channel, past Apprise's pools, and one at a time: where a call
outlasts its time limit the channel is busy until it has ended.

One address is one recipient: of several, some may have a message that others have not, and then it
could only be sent to all again.
"""

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from apprise import Apprise, AppriseAsset, NotifyFormat, PersistentStoreMode
from pydantic import SecretStr

from libs.channels.answers import NOT_TAKEN, failure
from libs.channels.channel import (
    ChannelUnusable,
    Failed,
    Limits,
    Message,
    Outcome,
    Sent,
    hush,
)
from libs.channels.heard import Heard, listening

LOGGERS = ("apprise", "urllib3", "requests")
"""They log addresses and bodies."""
BODY_CHARS_MAX = 8_000
"""Of one message, whatever a plugin would take."""
BODY_CHARS_MAX_OF: Mapping[str, int] = {"ntfy": 3_500}
"""Of services that take less than their plugin says: ntfy makes more than 4,096 bytes a file."""
CHATS: Mapping[str, str] = {
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


class AppriseChannel:
    """One address of Apprise's. Raises ChannelUnusable where it knows no such address, or where
    that leads to nobody or to several."""

    def __init__(self, name: str, address: SecretStr, timeout_s: float) -> None:
        hush(*LOGGERS)
        self._name = name
        self._timeout_s = timeout_s
        self._plugin = _plugin(name, address)
        self._service = str(self._plugin.service_name)
        _leads_to_one(name, self._plugin, self._service)
        self._plugin.throttle = _Pace(float(self._plugin.request_rate_per_sec)).wait
        self._format = _format(self._plugin.notify_format)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"channel-{name}")
        self._running: asyncio.Future[Outcome] | None = None

    def __repr__(self) -> str:
        return f"AppriseChannel({self._name!r})"

    @property
    def limits(self) -> Limits:
        """The plugin's own limits, where the service has no others."""
        markup = self._format.value
        if self._format is NotifyFormat.TEXT:
            markup = CHATS.get(self._service, markup)
        title_chars_max = int(self._plugin.title_maxlen)
        if markup in CHATS.values() or self._plugin.overflow_amalgamate_title:
            # It becomes one text with the body, and so is written and measured as a part of that.
            title_chars_max = 0
        room = BODY_CHARS_MAX_OF.get(self._service, BODY_CHARS_MAX)
        return Limits(title_chars_max, min(int(self._plugin.body_maxlen), room), markup)

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
        with listening() as heard:
            try:
                taken = self._plugin.notify(
                    body=message.body,
                    title=message.title,
                    body_format=self._format,
                )
            except Exception:  # noqa: BLE001 - a plugin of many; its text may hold the address
                return Failed("plugin_failed")
        return Sent() if taken else self._failed(heard)

    def _failed(self, heard: Heard) -> Failed:
        if heard.error:
            return Failed(heard.error, heard.refused)
        if heard.status is None:
            return Failed(NOT_TAKEN)
        return failure(self._service, heard.status, heard.retry_after, heard.body)


class _Pace:
    """A plugin's own pause between two requests, by the steady clock.

    Apprise's goes by the clock of the wall, and by what a server says of that: when it jumps, a
    plugin sleeps for as long as it has jumped. How long a server wants to be left alone, it says
    with its 429.
    """

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._free_at = 0.0

    def wait(self, *_: object, **__: object) -> None:
        """Wait until the next request may go out."""
        time.sleep(max(self._free_at - time.monotonic(), 0.0))
        self._free_at = time.monotonic() + self._pause_s


def _format(offered: Any) -> NotifyFormat:
    """Plain text where a plugin takes it: in that nothing is markup. Of several that it takes they
    are a tuple."""
    formats = [
        NotifyFormat(name) for name in (offered if isinstance(offered, tuple) else [offered])
    ]
    return NotifyFormat.TEXT if NotifyFormat.TEXT in formats else formats[0]


def _leads_to_one(name: str, plugin: Any, service: str) -> None:
    """Raises ChannelUnusable where the address leads to nobody or to several."""
    if len(plugin) > 1 or getattr(plugin, "cc", None) or getattr(plugin, "bcc", None):
        raise ChannelUnusable(
            f"channel {name}: its address names several recipients; give each one a channel"
        )
    if service == "Telegram" and not plugin.targets:
        # Apprise would take whoever wrote to the bot first.
        raise ChannelUnusable(f"channel {name}: its address names no chat; tgram://TOKEN/CHAT-ID")


def _plugin(name: str, address: SecretStr) -> Any:
    asset = AppriseAsset(
        app_id="Deskbus",
        app_desc="Deskbus",
        app_url="",
        # No picture, which whoever reads a message would fetch from elsewhere.
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
