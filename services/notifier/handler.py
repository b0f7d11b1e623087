"""People's questions to the notifier: which channels and rules it has, and a test message."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import uuid4

from contracts.notice import ChannelsQuery, ChannelsView, ChannelTested, TestChannel
from libs.bus.connection import Client
from libs.bus.streams import NotProvisioned, channel_since
from libs.report.notify import channels, notices
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.notify_settings import Notify
from services.notifier.sender import Sender


class Notifier:
    """Answers questions; `problems` say why some channels cannot be used."""

    def __init__(
        self,
        senders: Mapping[str, Sender],
        problems: Mapping[str, str],
        notify: Notify,
        client: Client,
    ) -> None:
        self._senders = senders
        self._problems = problems
        self._notify = notify
        self._client = client

    async def tested(self, _caller: str, query: TestChannel) -> ChannelTested:
        """Send a test message now."""
        name = query.channel
        if name not in self._senders:
            near = did_you_mean(nearest(name, self._senders))
            known = ", ".join(self._senders) or "none"
            text = f"channel {name!r} does not exist; the channels are {known}{near}"
            return ChannelTested(sent=False, code="channel_unknown", message=text)
        if name in self._problems:
            return ChannelTested(sent=False, code="not_set", message=self._problems[name])
        outcome = await self._senders[name].send([notices.test(name, uuid4(), datetime.now(UTC))])
        if outcome.sent:
            return ChannelTested(sent=True, message=f"{name} took the message")
        text = f"{name} did not accept it ({outcome.code})"
        return ChannelTested(sent=False, code=outcome.code, message=text)

    async def shown(self, _caller: str, _query: ChannelsQuery) -> ChannelsView:
        """The channels and rules that it runs with, and since when NATS holds their notices."""
        problems, since = dict(self._problems), {}
        for name in self._senders:
            try:
                since[name] = await channel_since(self._client, name)
            except NotProvisioned as error:
                problems.setdefault(name, error.message)
        return channels.of_settings(self._notify, problems, since)
