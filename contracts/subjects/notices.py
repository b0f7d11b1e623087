"""Messages to people: the notifier's questions what is due, and people's about what was sent."""

from contracts.notice import (
    ChannelsQuery,
    ChannelsView,
    ChannelTested,
    KeepNotices,
    LeaseNotifier,
    NextNotices,
    NoticesKept,
    NoticesNext,
    NotificationsPage,
    NotificationsQuery,
    NotifierLease,
    TestChannel,
)
from contracts.subjects.subject import CLI, ORCHESTRATOR, USERS, WEB, Class, Subject, console

NOTIFIER = "notifier"
"""Who tells people: it hears no commands, and asks what is due and what was sent."""
NOTICE_DURABLE = NOTIFIER
"""The durable consumer of the notices, which all notifiers share."""

LEASE_NOTIFIER = Subject(
    Class.QUERY, ORCHESTRATOR, "lease_notifier", LeaseNotifier, NotifierLease, (NOTIFIER,)
)
KEEP_NOTICES = Subject(
    Class.QUERY, ORCHESTRATOR, "keep_notices", KeepNotices, NoticesKept, (NOTIFIER,)
)
NEXT_NOTICES = Subject(
    Class.QUERY, ORCHESTRATOR, "next_notices", NextNotices, NoticesNext, (NOTIFIER,)
)

TEST_CHANNEL = Subject(Class.QUERY, NOTIFIER, "test", TestChannel, ChannelTested, (CLI, WEB))
CHANNELS = Subject(Class.QUERY, NOTIFIER, "channels", ChannelsQuery, ChannelsView, (*USERS, WEB))
NOTIFICATIONS = console("notifications", NotificationsQuery, NotificationsPage)
