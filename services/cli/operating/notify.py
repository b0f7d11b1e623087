"""`deskbus notify`: messages to people, and the channels that they go over."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from pydantic import BaseModel, ValidationError
from rich.text import Text

from contracts.notice import (
    ChannelShown,
    ChannelsQuery,
    ChannelState,
    ChannelsView,
    ChannelTested,
    NotificationsPage,
    NotificationsQuery,
    RuleShown,
    TestChannel,
)
from contracts.subjects.notices import CHANNELS, NOTIFICATIONS, TEST_CHANNEL
from libs.bus.client import Client, DeskNotReachable
from libs.facts import amounts
from libs.report.notify import channels
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.notify_settings import ChannelSettings
from libs.runtime.settings import Settings
from services.cli.render.described import show
from services.cli.shell.list_options import filters, tell_limit
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import UNREADABLE, ExitCode, NoSuchThing
from services.cli.shell.running import (
    load_settings,
    with_desk,
    with_record,
)
from services.cli.shell.terminal import aside, emit, put

NO_CHANNEL = "no channel is configured"
DOCS_HINT = "docs/notifications.md shows how to get a message on your phone"
CHANNELS_TIMEOUT_S = 2.0
"""Where the notifier does not answer, the settings are shown instead."""
ANSWER_S = 60.0
"""How long an answer may take beside the try itself: Apprise loads first."""

app = group()


class ConfiguredChannel(BaseModel):
    """A channel as it is set, and its state; None where nothing is on record of it."""

    channel: ChannelShown
    state: ChannelState | None


class Channels(BaseModel):
    """All channels and rules; `answers` is False where the settings alone say so."""

    channels: tuple[ConfiguredChannel, ...]
    rules: tuple[RuleShown, ...]
    answers: bool


@app.callback()
def notify() -> None:
    """Notifications: test a channel, list channels and rules, see what was sent.

    Set channels and rules under [notify] in deskbus.toml; docs/notifications.md starts with a
    message on your phone.
    """


# --- test -----------------------------------------------------------------------------------------


@app.command("test")
def send_test(
    channel: Annotated[
        str | None, typer.Argument(help="The channel's name, as in deskbus.toml; by default all.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Send a test message now, ahead of waiting messages.

    Exit 1 if a channel does not accept it.
    """
    settings = load_settings()

    async def work(client: Client) -> Sequence[ChannelTested]:
        names = [channel] if channel is not None else await _names(client)
        return [await _tested(client, name, settings) for name in names]

    tested = with_desk(work)
    if json:
        emit(tested)
    for answer in tested:
        if answer.code == "channel_unknown":
            raise NoSuchThing(answer.message, "deskbus notify list")
        if not json:
            _tell(answer)
    if not all(answer.sent for answer in tested):
        raise typer.Exit(ExitCode.FAILED)


async def _names(client: Client) -> Sequence[str]:
    """All channels of the notifier. Raises `CliProblem` where it has none."""
    view = await client.ask(CHANNELS, ChannelsQuery())
    if not view.channels:
        raise NoSuchThing(NO_CHANNEL, DOCS_HINT)
    return [channel.name for channel in view.channels]


async def _tested(client: Client, name: str, settings: Settings) -> ChannelTested:
    try:
        wish = TestChannel(channel=name)
    except ValidationError:
        return unknown(name, settings)
    known = settings.notify.channels.get(name, ChannelSettings())
    return await client.ask(TEST_CHANNEL, wish, timeout_s=known.timeout_s + ANSWER_S)


def unknown(name: str, settings: Settings) -> ChannelTested:
    """The refusal of a name that no channel has, in the notifier's words."""
    known = settings.notify.channels
    near = did_you_mean(nearest(name, known))
    text = f"channel {name!r} does not exist; the channels are {', '.join(known) or 'none'}{near}"
    return ChannelTested(sent=False, code="channel_unknown", message=amounts.cut(text, 400))


def _tell(answer: ChannelTested) -> None:
    mark, style = ("✓", "green") if answer.sent else ("✗", "bold red")
    put(Text.assemble((f"{mark} ", style), answer.message))
    if not answer.sent:
        put(f"  → {channels.todo_of(answer.code)}", "yellow")


# --- list -----------------------------------------------------------------------------------------


@app.command("list")
def list_channels(json: JsonOption = False) -> None:
    """Show the channels with their state, and the rules.

    It never shows addresses: they are secrets. Works without a running desk.
    """
    settings = load_settings()

    async def work(client: Client) -> tuple[ChannelsView | None, NotificationsPage]:
        page = await client.ask(NOTIFICATIONS, NotificationsQuery(limit=1))
        return await view_of(client), page

    answer, page = with_record(work)
    view = answer or channels.of_settings(settings.notify, {}, {})
    if answer is None and not json:
        aside("the notifier does not answer; channels and rules are from the settings here")
    known = {state.channel: state for state in page.channels}
    shown = tuple(ConfiguredChannel(channel=c, state=known.get(c.name)) for c in view.channels)
    lines = channels.standings(view, page.channels, datetime.now(UTC))
    tables = [channels.channel_table(lines), *([channels.rule_table(view.rules)] if lines else [])]
    answers = Channels(channels=shown, rules=view.rules, answers=answer is not None)
    show([answers], tables, json=json)


async def view_of(client: Client) -> ChannelsView | None:
    """The channels and rules that the notifier runs with; None where it does not answer."""
    try:
        return await client.ask(CHANNELS, ChannelsQuery(), timeout_s=CHANNELS_TIMEOUT_S)
    except DeskNotReachable:
        return None


# --- history --------------------------------------------------------------------------------------


@app.command()
@filters(NotificationsQuery, "event_id", "before")
def history(query: NotificationsQuery, json: JsonOption = False) -> None:
    """Show the newest messages with their status.

    Works without a running desk.
    """

    async def work(client: Client) -> NotificationsPage:
        return await client.ask(NOTIFICATIONS, query)

    page = with_record(work)
    filtered = query.channel is not None or query.status is not None
    table = channels.message_table(page.notifications, len(page.unreadable), filtered)
    show(page.notifications, [table], json=json)
    for number in page.unreadable if json else ():
        aside(f"message {number}: {UNREADABLE}", "yellow")
    if page.more:
        tell_limit(len(page.notifications))
