"""Messages to people: what is on record of them, and how their channels fare."""

from pydantic import ValidationError

from contracts.notice import (
    ChannelState,
    Notice,
    Notification,
    NotificationsPage,
    NotificationsQuery,
)
from libs.postgres.pool import Record
from libs.runtime.nearest import UnknownName
from libs.runtime.settings import Settings
from services.console.sizes import fitting
from services.console.store import CHANNELS_SHOWN_MAX, Store, sql


async def notifications(
    query: NotificationsQuery, *, store: Store, settings: Settings
) -> NotificationsPage:
    """The messages that match, and all channels. Raises UnknownName for an unknown channel."""
    rows = await store.rows(sql.notice_channels, CHANNELS_SHOWN_MAX)
    channels = tuple(ChannelState(**dict(row)) for row in rows)
    if query.channel is not None:
        known = dict.fromkeys([*settings.notify.channels, *(state.channel for state in channels)])
        if query.channel not in known:
            raise UnknownName("channel", query.channel, tuple(known) or ("none",), field="channel")
    rows = await store.rows(
        sql.notifications,
        query.channel,
        query.event_id,
        query.status,
        query.before,
        query.limit + 1,
    )
    views, unreadable = [], []
    for row in rows[: query.limit]:
        try:
            views.append(_notification(row))
        except ValidationError:
            unreadable.append(row["number"])
    # One message is always in the answer, or the next page would never come.
    kept = fitting(views) or views[:1]
    is_cut = len(kept) < len(views)
    return NotificationsPage(
        notifications=tuple(kept),
        channels=channels,
        more=is_cut or len(rows) > query.limit,
        # Those behind the cut are on the next page.
        unreadable=tuple(n for n in unreadable if not is_cut or n > kept[-1].number),
    )


def _notification(row: Record) -> Notification:
    return Notification(**{**dict(row), "notice": Notice.model_validate_json(row["notice"])})
