"""The HTTP API's paths about messages to people."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query

from contracts.notice import (
    HISTORY_MAX,
    ChannelsView,
    ChannelTested,
    NotificationsPage,
    NotificationsQuery,
)
from contracts.types import Name
from libs.runtime.notify_settings import ChannelSettings
from services.console.http.bodies import problems
from services.console.http.requests import Desk
from services.console.views import notifications as view

NUMBER_MAX = 2**53 - 1
"""What JSON readers that count in floats still have exactly."""

Status = Literal["due", "sent", "given_up"]


notifications = APIRouter(prefix="/notifications", tags=["notifications"])


@notifications.get("")
async def list_notifications(
    desk: Desk,
    channel: Name | None = None,
    status: Status | None = None,
    event_id: UUID | None = None,
    before: Annotated[
        int | None,
        Query(ge=1, le=NUMBER_MAX, description="The lowest `number` of the page before."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=HISTORY_MAX)] = 50,
) -> NotificationsPage:
    """The newest messages to people with what became of them, and how each channel fares."""
    query = NotificationsQuery(
        channel=channel, status=status, event_id=event_id, before=before, limit=limit
    )
    return await view.notifications(query, store=desk.store, settings=desk.settings)


@notifications.get("/channels")
async def list_channels(desk: Desk) -> ChannelsView:
    """The channels and rules that the notifier runs with; addresses are never shown."""
    return await desk.requests.channels()


@notifications.post(
    "/channels/{channel}/test",
    responses=problems(404, 409, 413, 429, 502),
)
async def test_channel(desk: Desk, channel: Name) -> ChannelTested:
    """Send a test message to a channel now, past everything that waits for it."""
    known = desk.settings.notify.channels.get(channel, ChannelSettings())
    return await desk.requests.test(channel, known.timeout_s)
