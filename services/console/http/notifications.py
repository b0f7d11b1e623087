"""The HTTP API's paths about messages to people."""

from typing import Annotated

from fastapi import APIRouter, Depends

from contracts.notice import (
    ChannelsQuery,
    ChannelsView,
    ChannelTested,
    NotificationsPage,
    NotificationsQuery,
)
from contracts.subjects.notices import CHANNELS
from contracts.types import Name
from libs.runtime.notify_settings import ChannelSettings
from services.console.http.bodies import problems
from services.console.http.queries import query_of
from services.console.http.requests import PAGE_S, Desk
from services.console.views import notifications as view

notifications = APIRouter(prefix="/notifications", tags=["notifications"])


@notifications.get("")
async def list_notifications(
    desk: Desk, query: Annotated[NotificationsQuery, Depends(query_of(NotificationsQuery))]
) -> NotificationsPage:
    """The newest notifications with their status, and the state of each channel."""
    return await view.notifications(query, store=desk.store, settings=desk.settings)


@notifications.get("/channels")
async def list_channels(desk: Desk) -> ChannelsView:
    """The notifier's channels and rules; addresses are never shown."""
    return await desk.requests.ask(CHANNELS, ChannelsQuery(), PAGE_S)


@notifications.post(
    "/channels/{channel}/test",
    responses=problems(404, 409, 413, 429, 502),
)
async def test_channel(desk: Desk, channel: Name) -> ChannelTested:
    """Send a test message to a channel now, ahead of waiting messages."""
    known = desk.settings.notify.channels.get(channel, ChannelSettings())
    return await desk.requests.test(channel, known.timeout_s)
