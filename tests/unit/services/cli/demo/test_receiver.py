"""The demo's receiver hears one channel; the other is out of order. It listens on this machine."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import httpx2

from contracts.notice import Notice, NoticeKind, Severity
from libs.channels.addresses import Addresses
from libs.channels.channel import ChannelMessage, SendOutcome
from libs.channels.opening import open_channel
from services.cli.demo.receiver import receiver
from services.cli.demo.sealed import INBOX, PAGER, settings_in


def message(title: str) -> ChannelMessage:
    notice = Notice(
        event_id=uuid4(),
        kind=NoticeKind.FILL,
        severity=Severity.INFO,
        event="order_filled",
        at=datetime(2010, 6, 15, tzinfo=UTC),
        title=title,
    )
    return ChannelMessage(title=title, body=title, notices=(notice,))


async def test_its_inbox_hears_what_the_desk_sends_and_its_pager_is_out_of_order(tmp_path: Path):
    channels = settings_in(tmp_path).notify.channels
    outcomes = {}
    with receiver() as addresses:
        known = Addresses(addresses, tmp_path / "secrets")
        for name in (INBOX, PAGER):
            channel = await open_channel(name, channels[name], known)
            outcomes[name] = await channel.send(message(f"for {name}"))
    assert outcomes[INBOX] == SendOutcome()
    assert outcomes[PAGER] == SendOutcome("http_503")


def test_it_listens_on_this_machine_only_and_survives_nonsense():
    with receiver() as addresses:
        urls = [url for url in addresses.values() if "//" in url]
        assert {url.partition("//")[2].partition(":")[0] for url in urls} == {"127.0.0.1"}
        assert httpx2.post(urls[0], content=b"\0" * 10).status_code == 204
        assert httpx2.get(urls[0]).status_code == 501
