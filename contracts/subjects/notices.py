"""Messages to people: the notifier's record, and people's questions about what was sent."""

from contracts.notice import (
    ChannelsQuery,
    ChannelsView,
    ChannelTested,
    EndedNotices,
    KeepNotices,
    NotificationsPage,
    NotificationsQuery,
    SettleNotices,
    TestChannel,
)
from contracts.subjects.subject import CLI, ORCHESTRATOR, USERS, WEB, Class, Subject, console

NOTIFIER = "notifier"
"""Who sends messages to people: it hears no commands."""


def durable_of(channel: str) -> str:
    """The durable consumer that holds what waits for a channel."""
    return f"{NOTIFIER}_{channel}"


KEEP_NOTICES = Subject(
    Class.QUERY, ORCHESTRATOR, "keep_notices", KeepNotices, EndedNotices, (NOTIFIER,)
)
SETTLE_NOTICES = Subject(
    Class.QUERY, ORCHESTRATOR, "settle_notices", SettleNotices, EndedNotices, (NOTIFIER,)
)

TEST_CHANNEL = Subject(Class.QUERY, NOTIFIER, "test", TestChannel, ChannelTested, (CLI, WEB))
CHANNELS = Subject(Class.QUERY, NOTIFIER, "channels", ChannelsQuery, ChannelsView, (*USERS, WEB))
NOTIFICATIONS = console("notifications", NotificationsQuery, NotificationsPage)
