"""`deskbus_client` at a running desk, and its wheel without one."""

import asyncio
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import polars as pl
import pytest
from deskbus_client import (
    AsyncDesk,
    CycleRefused,
    EventsLost,
    NoDesk,
    QuestionRefused,
    StillRunning,
    frame,
)
from deskbus_client import Desk as Client

from contracts.audit import EventAt
from contracts.cycle import CycleStatus
from tests.integration.desk.conftest import Desk

AS_OF = date(2012, 6, 29)
CLIENT = Path(__file__).parents[3] / "deploy" / "client"
SOON_S = 60.0


@pytest.fixture
def account() -> str:
    return f"client-{uuid4().hex[:8]}"


@pytest.fixture
def client(desk: Desk) -> Iterator[Client]:
    key = desk.secrets_dir / "user.nk"
    with Client.open(url=desk.url, key=key) as opened:
        yield opened


def test_a_request_is_waited_for_and_the_same_key_is_the_same_cycle(
    client: Client, account: str
) -> None:
    key = str(uuid4())
    cycle_id = client.request(account=account, as_of=AS_OF, key=key)
    view = client.wait(cycle_id, SOON_S)
    assert view.status is CycleStatus.COMPLETED
    assert view.outcome.startswith("bought ")
    assert client.request(account=account, as_of=AS_OF, key=key) == cycle_id
    assert account in client.accounts()
    assert client.account(account).paid_in == client.performance(account).paid_in
    (newest,) = client.past_decisions(limit=1).decisions
    assert newest.account == account


async def test_events_come_once_in_order_and_go_on_behind_a_position(
    desk: Desk, account: str
) -> None:
    async with AsyncDesk.open(url=desk.url, key=desk.secrets_dir / "user.nk") as client:
        first = await client.request(account=account, as_of=AS_OF)
        await client.wait(first, SOON_S)
        heard = await _until_ended(client, first, back=1_000)
        own = [each for each in heard if each.event.cycle_id == first]
        assert [each.event.sequence for each in own] == list(range(1, len(own) + 1))

        half = own[len(own) // 2]
        later = await _until_ended(client, first, after=half.position)
        rest = [each.event.event_id for each in later if each.event.cycle_id == first]
        assert rest == [each.event.event_id for each in own[len(own) // 2 + 1 :]]


async def _until_ended(
    client: AsyncDesk, cycle_id: UUID, *, after: str | None = None, back: int = 0
) -> list[EventAt]:
    heard: list[EventAt] = []
    async with asyncio.timeout(SOON_S):
        async for placed in client.events(after=after, back=back):
            heard.append(placed)
            if placed.event.cycle_id == cycle_id and placed.event.type == "cycle_ended":
                return heard
    raise AssertionError("they ended")


async def test_a_decision_is_heard_as_it_is_made(desk: Desk, account: str) -> None:
    async with AsyncDesk.open(url=desk.url, key=desk.secrets_dir / "user.nk") as client:
        requested = asyncio.create_task(client.request(account=account, as_of=AS_OF))
        async with asyncio.timeout(SOON_S):
            async for made in client.decisions(back=1):
                if made.event.cycle_id == await requested:
                    assert {each.action for each in made.event.data.decisions} == {"buy"}
                    break


def test_a_refusal_says_what_would_do(client: Client) -> None:
    with pytest.raises(CycleRefused) as refused:
        client.request(as_of=date(2012, 6, 30))
    assert (refused.value.code, refused.value.field) == ("not_a_session", "as_of")
    assert refused.value.suggestion == "2012-06-29"
    with pytest.raises(QuestionRefused, match="no account nobody"):
        client.account("nobody")
    with pytest.raises(QuestionRefused):
        client.cycle(uuid4())


def test_a_cycle_that_runs_on_is_said(client: Client, account: str) -> None:
    cycle_id = client.request(account=account, as_of=AS_OF, approval=True)
    with pytest.raises(StillRunning):
        client.wait(cycle_id, 0.5)


def test_events_of_another_history_are_lost_and_said(client: Client) -> None:
    with pytest.raises(EventsLost):
        next(client.events(after="1-1-00000000"))


def test_where_no_desk_is_it_says_how_to_find_one(tmp_path: Path) -> None:
    with pytest.raises(NoDesk, match="deskbus up"), Client.open(tmp_path):
        pass
    (tmp_path / "runtime.json").write_text("{")
    with pytest.raises(NoDesk, match="cannot be read"), Client.open(tmp_path):
        pass
    with pytest.raises(NoDesk, match="needs a key"), Client.open(url="nats://127.0.0.1:4222"):
        pass


def test_a_desk_that_is_used_without_its_block_says_how_to_open_one(tmp_path: Path) -> None:
    unopened: Any = Client.open(tmp_path)
    with pytest.raises(
        AttributeError, match=r"`with Desk.open\(...\) as desk:`, then desk.request"
    ):
        unopened.request("rules")
    unopened = AsyncDesk.open(tmp_path)
    with pytest.raises(AttributeError, match=r"`async with AsyncDesk.open\(...\) as desk:`"):
        unopened.request("rules")
    assert not hasattr(unopened, "__length_hint__")


def test_contracts_become_a_table(client: Client, account: str) -> None:
    client.wait(client.request(account=account, as_of=AS_OF), SOON_S)
    table = frame(client.past_decisions(limit=3).decisions)
    assert table.schema["cycle_id"] == pl.String
    assert table["account"][0] == account


def test_its_wheel_brings_one_name_and_needs_no_desk(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=CLIENT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    tops = {path.name for path in (tmp_path / "site").iterdir()}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"deskbus_client"}

    said = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import deskbus_client, deskbus_client.contracts.subjects.table\n"
        "print(deskbus_client.__file__)\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'contracts', 'libs', 'services', 'polars', 'fastapi', 'faststream'}))\n"
    )
    alone = [sys.executable, "-I", "-c", said]
    ran = subprocess.run(alone, check=True, capture_output=True, text=True)
    place, names = ran.stdout.splitlines()
    assert place.startswith(str(tmp_path))
    assert names == "[]"
