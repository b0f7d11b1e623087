"""Proposers that are added and revoked while the desk is up: in force in a moment, everywhere."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import httpx2
import nats.errors
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from libs.bus.connection import BusKeyRefused, connect
from libs.runtime.http_address import http_address
from libs.runtime.proposers import HTTP_TOKEN_FILE, Proposers
from libs.servers.nats_server import monitored
from libs.servers.server_record import ServerRecord
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Json
from tests.integration.desk.command_line import CommandLine, ended
from tests.integration.desk.conftest import Desk, desk_in
from tests.integration.desk.over_http import got, refused

IN_FORCE_S = 30.0
"""It takes a second; far more where the machine is busy."""
LOOK_S = 0.05
OF_THE_DESK = {
    "deskbus-orchestrator",
    "deskbus-console",
    "deskbus-execution",
    "deskbus-provisioner",
}


@pytest.fixture
def desk(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Desk]:
    """A desk that starts without a proposer and without a token."""
    with desk_in(make_open_dir(), own_environment_in, http_enabled=True, http_port=0) as running:
        yield running


@pytest.fixture
def cli(desk: Desk, make_open_dir: Callable[[], Path]) -> CommandLine:
    return CommandLine(desk.settings.data_dir, make_open_dir())


@asynccontextmanager
async def bearing(desk: Desk, token: str | None) -> AsyncIterator[httpx2.AsyncClient]:
    address = http_address(desk.settings)
    assert address is not None
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(
        base_url=f"{address.url}/api/v1", headers=headers, timeout=IN_FORCE_S
    ) as http:
        yield http


async def added(cli: CommandLine, name: str) -> str:
    """Add a proposer; its token, once the command says that the desk takes it."""
    said = await asyncio.to_thread(cli, f"proposer add {name} --account {name} --json")
    assert said.code == 0, said.err
    return str(said.rows[0]["token"])


def wish(**fields: object) -> Json:
    pick = {"ticker": "GOOG", "action": "buy", "allocation_pct": "20", "confidence": 0.2}
    return {"proposal_id": f"p-{uuid4().hex[:12]}", "picks": [pick], **fields}


def connections(desk: Desk) -> dict[int, str]:
    """The name of each connection to NATS, by its number."""
    port = ServerRecord.load(desk.settings.data_dir).ports["nats_monitor"]
    return {of["cid"]: of.get("name", "") for of in monitored(port, "connz")["connections"]}


async def is_let_in(desk: Desk, name: str) -> bool:
    try:
        connection = await connect(desk.url, f"proposer-{name}", desk.secrets_dir, timeout_s=1)
    except BusKeyRefused:
        return False
    await connection.close()
    return True


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(IN_FORCE_S):
        while not await is_so():  # noqa: ASYNC110 - other processes make it so
            await asyncio.sleep(LOOK_S)


async def test_a_proposer_comes_and_goes_while_the_desk_is_up(desk: Desk, cli: CommandLine) -> None:
    async with bearing(desk, None) as anybody, asyncio.timeout(10 * IN_FORCE_S):
        assert (await anybody.get("/cycles")).status_code == 200
        stayed = {cid for cid, name in connections(desk).items() if name in OF_THE_DESK}
        assert len(stayed) >= len(OF_THE_DESK)
        async with anybody.stream("GET", "/events/stream") as stream:
            frames = stream.aiter_bytes()
            await anext(frames)

            token = await added(cli, "late")

            refused(await anybody.get("/cycles"), 401, "unauthorized")
            with pytest.raises(httpx2.RemoteProtocolError):
                async for _ in frames:
                    pass
        owner = (desk.secrets_dir / HTTP_TOKEN_FILE).read_text().strip()
        async with bearing(desk, owner) as http:
            await got(http, "/cycles")
            logged_in = await anybody.post("/session", json={"token": owner})
            assert logged_in.status_code == 204
            assert (await anybody.get("/cycles")).status_code == 200, "the cookie stands for it"

    async def is_gone() -> bool:
        return "deskbus-proposer-late" not in connections(desk).values()

    with cli.started("mcp --propose --http --port 0") as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[2]
        async with (
            bearing(desk, token) as late,
            httpx2.AsyncClient(
                headers={"Authorization": f"Bearer {token}"}, timeout=IN_FORCE_S
            ) as web,
            desk.calling("proposer-late") as key,
        ):
            proposed = await late.post("/proposals", json=wish())
            assert proposed.status_code == 202, proposed.text
            async with Client(streamable_http_client(url, http_client=web)) as client:
                limits = await client.call_tool("get_limits", {})
                assert (limits.structured_content or {})["account"] == "late"
            assert (await key.ask(wish(preview=True), "propose"))["outcome"] == "accepted"
            assert list(connections(desk).values()).count("deskbus-proposer-late") == 2

            said = await asyncio.to_thread(cli, "proposer revoke late")
            assert said.code == 0, said.err

            refused(await late.post("/proposals", json=wish()), 401, "unauthorized")
            refused(await late.get("/proposer"), 401, "unauthorized")
            assert (await web.post(url, json={})).status_code == 401
            await asyncio.wait_for(key.closed.wait(), IN_FORCE_S)
            with pytest.raises(nats.errors.ConnectionClosedError):
                await key.ask(wish(), "propose")
            assert not await is_let_in(desk, "late")
        await until(is_gone)
        assert ended(process, signal.SIGTERM).code == 0
    assert stayed <= connections(desk).keys(), "nobody else has lost a connection"
    async with bearing(desk, None) as anybody:
        refused(await anybody.get("/cycles"), 401, "unauthorized")


async def test_a_command_that_is_killed_leaves_a_whole_register_which_the_desk_takes(
    desk: Desk, cli: CommandLine
) -> None:
    known = Proposers(desk.secrets_dir)

    async def has_changed() -> bool:
        return known.named("killed") is not None or process.poll() is not None

    async def is_in() -> bool:
        return await is_let_in(desk, "killed")

    async def is_out() -> bool:
        return not await is_in()

    with cli.started("proposer add killed --account killed") as process:
        await until(has_changed)
        process.kill()
        process.wait()
    assert [one.name for one in known.all()] == ["killed"]
    async with bearing(desk, None) as anybody:
        refused(await anybody.get("/cycles"), 401, "unauthorized")

    await until(is_in)

    known.path.write_text("{")
    async with desk.calling("proposer-killed") as key:
        answer = await key.ask(wish(), "propose")
        assert (answer["outcome"], answer["code"]) == ("rejected", "proposers_unreadable")
    known.path.unlink()
    await until(is_out)
