"""Messages to people: the channels with how they fare, the rules, the newest messages."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from contracts.notice import ChannelsView, NotificationsQuery
from contracts.types import Name
from libs.report.notify import channels
from libs.runtime.errors import DeskError
from services.console.http.notifications import NUMBER_MAX, Status
from services.console.http.requests import Desk, DeskAccess
from services.console.pages.choices import OrAll
from services.console.pages.show import ShowPage
from services.console.views import notifications as view

MESSAGES_SHOWN = 50


pages = APIRouter()


@pages.get("/notifications")
async def notifications_page(
    desk: Desk,
    show: ShowPage,
    channel: Annotated[Name | None, OrAll, Query()] = None,
    status: Annotated[Status | None, OrAll, Query()] = None,
    before: Annotated[int | None, OrAll, Query(ge=1, le=NUMBER_MAX)] = None,
) -> Response:
    """The page with its filters."""
    query = NotificationsQuery(channel=channel, status=status, before=before, limit=MESSAGES_SHOWN)
    page = await view.notifications(query, store=desk.store, settings=desk.settings)
    numbers = [*(message.number for message in page.notifications), *page.unreadable]
    answer = await _channels(desk)
    shown = answer or channels.of_settings(desk.settings.notify, {}, {})
    lines = channels.standings(shown, page.channels, desk.now())
    filtered = channel is not None or status is not None
    return show(
        "notifications.html",
        channels=channels.channel_table(lines),
        rules=channels.rule_table(shown.rules),
        messages=channels.message_table(page.notifications, len(page.unreadable), filtered),
        answers=answer is not None,
        names=[state.channel for state in page.channels],
        status_words=channels.STATUS_WORDS,
        channel=channel,
        status=status,
        before=before,
        older=min(numbers) if page.more else None,
    )


async def _channels(desk: DeskAccess) -> ChannelsView | None:
    """The notifier's channels and rules; None where it does not answer."""
    try:
        return await desk.requests.channels()
    except DeskError:
        return None
