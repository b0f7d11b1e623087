"""Messages to people: the channels with how they fare, the rules, the newest messages."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from contracts.notice import ChannelsQuery, ChannelsView, NotificationsQuery
from contracts.subjects.notices import CHANNELS
from libs.report.notify import channels
from libs.runtime.errors import DeskError
from services.console.http.queries import query_of
from services.console.http.requests import PAGE_S, Desk, DeskAccess
from services.console.pages.show import ShowPage
from services.console.views import notifications as view

MESSAGES_SHOWN = 50
ASKED = query_of(NotificationsQuery, is_form=True, event_id=None, limit=MESSAGES_SHOWN)


pages = APIRouter()


@pages.get("/notifications")
async def notifications_page(
    desk: Desk,
    show: ShowPage,
    query: Annotated[NotificationsQuery, Depends(ASKED)],
) -> Response:
    """The page with its filters."""
    page = await view.notifications(query, store=desk.store, settings=desk.settings)
    numbers = [*(message.number for message in page.notifications), *page.unreadable]
    answer = await _channels(desk)
    shown = answer or channels.of_settings(desk.settings.notify, {}, {})
    lines = channels.standings(shown, page.channels, desk.now())
    filtered = query.channel is not None or query.status is not None
    return show(
        "notifications.html",
        channels=channels.channel_table(lines),
        rules=channels.rule_table(shown.rules),
        messages=channels.message_table(page.notifications, len(page.unreadable), filtered),
        answers=answer is not None,
        names=[state.channel for state in page.channels],
        status_words=channels.STATUS_WORDS,
        asked=query,
        older=min(numbers) if page.more else None,
    )


async def _channels(desk: DeskAccess) -> ChannelsView | None:
    """The notifier's channels and rules; None where it does not answer."""
    try:
        return await desk.requests.ask(CHANNELS, ChannelsQuery(), PAGE_S)
    except DeskError:
        return None
