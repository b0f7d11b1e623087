"""What a channel's wrong address does to its messages, end to end, and what a person sees of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from contracts.notice import ChannelsQuery, ChannelState, NotificationsQuery
from contracts.subjects.notices import CHANNELS, NOTIFICATIONS
from libs.bus.client import open_client
from libs.report.notify import channels
from libs.runtime.settings import Settings
from services import launcher
from tests.fakes.channel_server import ChannelServer, channel_server
from tests.fakes.internet import authority, names_lead_to
from tests.fakes.mail_server import PASSWORD, mail_server
from tests.fakes.vendor_servers import Telegram
from tests.integration.notifier.conftest import SOON_S, Backbone, settled, working

BOT = f"tgram://{Telegram().token}"


def telling(backbone: Backbone, *names: str) -> Settings:
    rules = {"fills": {"events": ["fill"], "to": list(names)}}
    return backbone.with_channels({"channels": {each: {} for each in names}, "rules": rules})


@pytest.fixture
async def console(backbone: Backbone) -> AsyncIterator[None]:
    async with launcher.service_running("console", backbone.settings):
        yield


async def failing(settings: Settings, name: str) -> ChannelState:
    """The channel's state by the record, once a try has failed."""
    async with (
        asyncio.timeout(SOON_S),
        open_client(settings.nats_address, settings.secrets_path) as client,
    ):
        while True:
            page = await client.ask(NOTIFICATIONS, NotificationsQuery(limit=1))
            for state in page.channels:
                if state.channel == name and state.failures:
                    return state
            await asyncio.sleep(0.05)


@pytest.fixture
def telegram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ChannelServer]:
    ours = authority(tmp_path)
    with channel_server(certificate=ours.certificate) as server:
        names_lead_to(monkeypatch, https=server.port)
        ours.is_trusted(monkeypatch)
        server.judge = Telegram()
        yield server


@pytest.mark.usefixtures("console")
async def test_a_message_for_a_wrong_chat_waits_until_the_address_is_put_right(
    backbone: Backbone, name: str, telegram: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = telling(backbone, name)
    variable = f"DESKBUS_NOTIFY_{name.upper()}"
    monkeypatch.setenv(variable, f"{BOT}/99999999")
    async with AsyncExitStack() as stack:
        await working(stack, settings)
        events = await backbone.happens(1, 2)
        state = await failing(settings, name)
    assert (state.code, state.waiting, state.given_up) == ("wrong_address", 2, 0)
    assert channels.todo(state.code).startswith("the service knows no such chat")
    assert await backbone.remembered(name) == dict.fromkeys(events, "due")

    monkeypatch.setenv(variable, f"{BOT}/12345678")
    async with AsyncExitStack() as stack:
        await working(stack, settings)
        assert await settled(backbone, name, 2) == dict.fromkeys(events, "sent")
    judge = telegram.judge
    assert isinstance(judge, Telegram)
    assert [text.splitlines()[0] for text in judge.shown] == [
        "main: bought 1 AAPL at 243.84 USD",
        "main: bought 2 AAPL at 243.84 USD",
    ]


@pytest.mark.usefixtures("console")
async def test_a_wrong_password_of_a_mail_shows_as_that_and_holds_up_no_other_channel(
    backbone: Backbone, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = authority(tmp_path)
    wrong, right = f"{name}_w", f"{name}_r"
    settings = telling(backbone, wrong, right)
    for channel, password in ((wrong, "another"), (right, PASSWORD)):
        address = f"mailtos://desk:{password}@example.org?smtp=smtp.example.org&to=you@example.org"
        monkeypatch.setenv(f"DESKBUS_NOTIFY_{channel.upper()}", address)
    with mail_server(ours.certificate) as server:
        names_lead_to(monkeypatch, mail=server.port)
        ours.is_trusted(monkeypatch)
        async with AsyncExitStack() as stack:
            await working(stack, settings)
            (event,) = await backbone.happens(1)
            state = await failing(settings, wrong)
            assert await settled(backbone, right, 1) == {event: "sent"}
    assert (state.code, state.waiting) == ("smtp_login_535", 1)
    assert "user or password" in channels.todo(state.code)
    (mail,) = server.taken
    assert mail["Subject"] == "main: bought 1 AAPL at 243.84 USD"


async def test_an_address_that_is_none_is_told_without_it_and_the_other_channels_are_told(
    backbone: Backbone, name: str, telegram: ChannelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, well = f"{name}_b", f"{name}_w"
    secret = "s3cr3t-in-no-address"
    monkeypatch.setenv(f"DESKBUS_NOTIFY_{broken.upper()}", f"nonsense://{secret}")
    monkeypatch.setenv(f"DESKBUS_NOTIFY_{well.upper()}", f"{BOT}/12345678")
    settings = telling(backbone, broken, well)
    async with AsyncExitStack() as stack:
        await working(stack, settings)
        (event,) = await backbone.happens(1)
        assert await settled(backbone, well, 1) == {event: "sent"}
        client = await stack.enter_async_context(
            open_client(settings.nats_address, settings.secrets_path)
        )
        view = await client.ask(CHANNELS, ChannelsQuery())
    problems = {channel.name: channel.problem for channel in view.channels}
    assert problems == {
        broken: f"channel {broken}: Apprise knows no such address",
        well: "",
    }
    assert await backbone.remembered(broken) == {event: "due"}
    assert secret not in view.model_dump_json()
    assert len(telegram.taken) == 1
