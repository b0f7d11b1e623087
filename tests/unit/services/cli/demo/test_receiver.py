"""The demo's receiver takes what the desk signed and keeps it; one channel is out of order."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import Request, urlopen
from uuid import uuid4

import httpx2
import orjson
import pytest

from contracts.notice import Notice, NoticeKind, Severity
from libs.channels.addresses import Addresses
from libs.channels.channel import Failed, Message, Sent
from libs.channels.opening import open_channel
from services.cli.demo.receiver import BODY_BYTES_MAX, MESSAGES, receiver
from services.cli.demo.sealed import INBOX, PAGER, settings_in


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    with receiver(tmp_path) as variables:
        yield variables


def message(title: str) -> Message:
    notice = Notice(
        event_id=uuid4(),
        kind=NoticeKind.FILL,
        severity=Severity.INFO,
        event="order_filled",
        at=datetime(2010, 6, 15, tzinfo=UTC),
        title=title,
    )
    return Message(title=title, body=title, notices=(notice,))


async def test_its_inbox_keeps_what_the_desk_sends_and_its_pager_is_out_of_order(
    addresses: Mapping[str, str], tmp_path: Path
):
    channels = settings_in(tmp_path).notify.channels
    known = Addresses(addresses, tmp_path / "secrets")
    outcomes = {}
    for name in (INBOX, PAGER):
        channel = open_channel(name, channels[name], known)
        outcomes[name] = await channel.send(message(f"for {name}"))
        await channel.close()
    assert isinstance(outcomes[INBOX], Sent)
    assert outcomes[PAGER] == Failed("http_503")
    lines = (tmp_path / MESSAGES).read_bytes().splitlines()
    assert [orjson.loads(line)["title"] for line in lines] == [f"for {INBOX}"]


def test_what_the_desk_has_not_signed_is_refused_and_not_kept(
    addresses: Mapping[str, str], tmp_path: Path
):
    url = next(url for url in addresses.values() if url.endswith(INBOX))
    for body in (b"{}", b'{"notices": [{}]}', b""):
        assert httpx2.post(url, content=body).status_code == 401
    headers = {"Content-Length": str(BODY_BYTES_MAX + 1)}
    with pytest.raises(OSError, match="413"):
        urlopen(Request(url, data=b"", headers=headers, method="POST"), timeout=10)
    assert not (tmp_path / MESSAGES).exists()


def test_it_listens_on_this_machine_only_and_its_key_is_another_each_time(
    addresses: Mapping[str, str], tmp_path: Path
):
    with receiver(tmp_path) as again:
        assert {
            url.partition("//")[2].partition(":")[0] for url in again.values() if "//" in url
        } == {"127.0.0.1"}
        keys = {
            value for name, value in [*again.items(), *addresses.items()] if name.endswith("_KEY")
        }
    assert len(keys) == 2
