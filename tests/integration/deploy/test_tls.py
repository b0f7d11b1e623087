"""TLS between the desk and servers of its own, from both sides, on loopback.

What is real: a nats-server with the generated nats.conf, Debian's Postgres with `ssl` on (the one
inside the wheel is built without), our HTTP server, and the certificates of `deskbus secrets init
--tls`. Nobody is let in, and no secret leaves, where one side is not what the other expects.
"""

import asyncio
import os
import shutil
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from starlette.responses import PlainTextResponse

from libs.bus import connection
from libs.bus.client import DeskNotReachable, open_client
from libs.bus.connection import BusNotReachable, connect
from libs.bus.streams import COMMAND_STREAM, StreamsNotMade
from libs.keys.nats_config import NatsPlace
from libs.keys.tls import CA_FILE
from libs.postgres.pool import CONSOLE_ROLE, OWNER_ROLE, ROLES, DatabaseNotReachable, dsn_for
from libs.postgres.pool import open_pool as pool_of
from libs.runtime.http_address import http_address
from libs.runtime.loop import run
from libs.runtime.ports import choose_port
from libs.runtime.settings import Settings
from libs.servers.binaries import find_nats_server
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.placement import server_identity
from libs.servers.postgres_roles import PsqlLogin, run_sql
from libs.web.connections import HEADERS_S_MAX
from libs.web.server import serving
from services.provisioner.app import running as provisioning
from services.provisioner.secrets import nats_conf, provision_secrets
from tests.compose_files import COMPOSE, ROOT, TLS, composed
from tests.integration.deploy.test_own_servers import (
    NOBODY,
    Container,
    OwnServers,
    is_ready,
    process,
)

DEBIAN = Path("/usr/lib/postgresql")
UP_TIMEOUT_S = 20.0
OTHER_NAME = "127.1"
"""Of 127.0.0.1, as resolvers read it; in no certificate."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls") / "secrets"
    provision_secrets(folder, tls=True)
    return folder


@pytest.fixture(scope="module")
def strangers(secrets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The right keys and passwords, and an authority that signed nothing here."""
    folder = tmp_path_factory.mktemp("strangers") / "secrets"
    provision_secrets(folder, tls=True)
    for path in (*secrets.glob("*.nk"), *secrets.glob("*.password")):
        shutil.copy(path, folder)
    return folder


@asynccontextmanager
async def nats_server(folder: Path, secrets: Path, config: str, port: int) -> AsyncIterator[int]:
    """A nats-server, listening."""
    path = folder / f"nats-{port}.conf"
    path.write_text(config)
    with process([str(find_nats_server()), "--config", str(path)], {}, folder):
        async with asyncio.timeout(UP_TIMEOUT_S):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.02)
                    continue
                writer.close()
                break
        yield port


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nats_port(secrets: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[int]:
    """NATS with the generated configuration, on every address of this machine's loopback."""
    folder = tmp_path_factory.mktemp("nats")
    port, monitor = choose_port(None, set()), choose_port(None, set())
    place = NatsPlace(port=port, monitor_port=monitor, store_dir=folder / "store", tls_dir=secrets)
    async with nats_server(folder, secrets, nats_conf(secrets, place), port) as listening:
        yield listening


async def test_the_desk_uses_nats_over_tls(nats_port: int, secrets: Path) -> None:
    url = f"tls://localhost:{nats_port}"
    async with provisioning(Settings(nats={"url": url}, secrets_dir=secrets)):
        client = await connect(f"tls://127.0.0.1:{nats_port}", "provisioner", secrets)
        assert (await client.jsm().stream_info(COMMAND_STREAM)).config.num_replicas == 1
        await client.close()


async def test_a_server_whose_host_falls_silent_is_left_without_a_goodbye(
    nats_port: int, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PING_EVERY_S", 0.2)
    async with silenced_relay(nats_port) as (port, silence):
        client = await connect(f"tls://localhost:{port}", "provisioner", secrets)
        silence()
        async with asyncio.timeout(UP_TIMEOUT_S):  # TLS alone would wait 30 s for the goodbye
            while not (client.stats["reconnects"] and client.is_connected):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await client.close()


@asynccontextmanager
async def silenced_relay(to_port: int) -> AsyncIterator[tuple[int, Callable[[], None]]]:
    """A port that leads to another one, and how to let all that goes over it now vanish."""
    held: list[object] = []
    ways: list[asyncio.Task[None]] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", to_port)
        held.append((writer, there))
        ways.append(asyncio.create_task(pump(reader, there[1])))
        ways.append(asyncio.create_task(pump(there[0], writer)))

    def silence() -> None:
        for way in ways:
            way.cancel()

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], silence
        silence()


async def test_more_copies_than_servers_are_refused_with_what_to_do(
    nats_port: int, secrets: Path
) -> None:
    url = f"tls://localhost:{nats_port}"
    settings = Settings(
        nats={"url": url, "replicas": 3},
        secrets_dir=secrets,
    )
    with pytest.raises(StreamsNotMade, match="DESKBUS_NATS_REPLICAS is 3: it needs as many"):
        async with provisioning(settings):
            """Not reached."""


async def test_a_server_of_another_authority_is_refused_with_what_to_do(
    nats_port: int, strangers: Path
) -> None:
    url = f"tls://127.0.0.1:{nats_port}"
    with pytest.raises(BusNotReachable, match=r"certificate verify failed.*take the ca\.pem"):
        await connect(url, "user", strangers)
    with pytest.raises(DeskNotReachable, match=r"take the ca\.pem of the same `deskbus secrets"):
        async with open_client(url, strangers, "user"):
            """Not reached."""


async def test_without_an_authority_the_systems_do_not_vouch_for_it(
    nats_port: int, secrets: Path, tmp_path: Path
) -> None:
    shutil.copy(secrets / "user.nk", tmp_path)
    with pytest.raises(BusNotReachable, match=r"copy the server's ca\.pem to"):
        await connect(f"tls://127.0.0.1:{nats_port}", "user", tmp_path)


async def test_a_server_under_a_name_that_is_not_in_its_certificate_is_refused(
    nats_port: int, secrets: Path
) -> None:
    with pytest.raises(BusNotReachable, match=r"'127\.1'.*by a name of that certificate"):
        await connect(f"tls://{OTHER_NAME}:{nats_port}", "user", secrets)


async def test_a_plain_client_of_a_tls_server_is_told_to_use_tls(
    nats_port: int, secrets: Path
) -> None:
    with pytest.raises(BusNotReachable, match="requires TLS: write its address with tls://"):
        await connect(f"nats://127.0.0.1:{nats_port}", "user", secrets)


async def test_a_tls_client_says_nothing_to_a_plain_server(secrets: Path) -> None:
    """By itself nats-py would sign the server's nonce in plain text, for whoever relays it."""
    said: list[bytes] = []
    ended = asyncio.Event()

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","nonce":"abcdefgh","auth_required":true}\r\n')
        said.append(await reader.read())
        writer.close()
        ended.set()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(BusNotReachable, match="this NATS server does not use TLS"):
            await connect(f"tls://127.0.0.1:{port}", "user", secrets)
        await asyncio.wait_for(ended.wait(), UP_TIMEOUT_S)
    assert said == [b""]


# --- Postgres -----------------------------------------------------------------------------------


def postgres_with_tls() -> Path:
    """The programs of a Postgres that was built with OpenSSL."""
    given = os.environ.get("DESKBUS_POSTGRES_BINDIR")
    found = [Path(given)] if given else sorted(DEBIAN.glob("*/bin"))
    for bindir in reversed(found):
        if (bindir / "initdb").exists():
            return bindir
    pytest.skip(
        "a Postgres with TLS is needed: apt-get install postgresql, or DESKBUS_POSTGRES_BINDIR"
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postgres(secrets: Path) -> AsyncIterator[Servers]:
    """A Postgres that takes TLS only, with the generated certificate and the generated roles."""
    bindir = postgres_with_tls()
    folder = Path(tempfile.gettempdir()) / f"deskbus-tls-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        async with embedded_servers(
            folder / "desk", NOBODY, ROLES, pg_bindir=bindir, database_owner=OWNER_ROLE
        ) as servers:
            await _tls_on(servers, secrets)
            yield servers
    finally:
        shutil.rmtree(folder)


async def _tls_on(servers: Servers, secrets: Path) -> None:
    cluster = servers.server_dir / "postgres" / "cluster"
    for name in ("postgres.pem", "postgres.key"):
        copied = shutil.copy(secrets / name, cluster / name)
        owner = server_identity()
        if owner is not None:
            os.chown(copied, owner.uid, owner.gid)
    hba = cluster / "pg_hba.conf"
    hba.write_text((ROOT / "deploy/kubernetes/base/pg_hba.conf").read_text())
    superuser = PsqlLogin(
        servers.psql, servers.postgres_port, "postgres", servers.postgres_password("postgres")
    )
    await run_sql(
        superuser,
        "alter system set ssl = on; alter system set ssl_cert_file = 'postgres.pem';\n"
        "alter system set ssl_key_file = 'postgres.key'; select pg_reload_conf();",
    )


def address(servers: Servers, sslmode: str, host: str = "127.0.0.1") -> str:
    asked = f"?sslmode={sslmode}" if sslmode else ""
    return f"postgresql://{host}:{servers.postgres_port}/{servers.database}{asked}"


def known_to(servers: Servers, secrets: Path) -> Path:
    """The passwords of this Postgres, beside those authorities."""
    for path in servers.secrets_dir.glob("*.password"):
        shutil.copy(path, secrets)
    return secrets


async def test_the_desk_uses_postgres_over_tls(postgres: Servers, secrets: Path) -> None:
    dsn = dsn_for(address(postgres, "verify-full"), CONSOLE_ROLE, known_to(postgres, secrets))
    async with pool_of(dsn, size_max=1) as pool:
        assert await pool.fetchval(
            "select ssl and current_user = $1 from pg_stat_ssl where pid = pg_backend_pid()",
            CONSOLE_ROLE,
        )


@pytest.mark.parametrize(
    ("sslmode", "whose", "host", "says"),
    [
        ("verify-full", "strangers", "127.0.0.1", r"not from the CAs in .*ca\.pem"),
        ("verify-full", "secrets", OTHER_NAME, r"does not name this address: use the ca\.pem"),
        ("disable", "secrets", "127.0.0.1", r"add \?sslmode=verify-full to DESKBUS_POSTGRES_DSN"),
    ],
)
async def test_a_postgres_that_is_not_as_expected_is_refused_with_what_to_do(
    sslmode: str, whose: str, host: str, says: str, postgres: Servers, request: Any
) -> None:
    folder = known_to(postgres, request.getfixturevalue(whose))
    with pytest.raises(DatabaseNotReachable, match=says) as refused:
        async with pool_of(dsn_for(address(postgres, sslmode, host), OWNER_ROLE, folder)):
            """Not reached."""
    assert postgres.postgres_password(OWNER_ROLE) not in str(refused.value)


@pytest.mark.parametrize("folder", ["postgres", "kubernetes/base", "kubernetes/cluster"])
async def test_postgres_reads_the_settings_that_are_deployed(folder: str, tmp_path: Path) -> None:
    """All of them exist and have values that it takes; it is asked for one, and starts nothing."""
    (file,) = (each for each in (ROOT / "deploy" / folder).glob("*.conf") if each.stem != "pg_hba")
    program = [str(postgres_with_tls() / "postgres"), "-C", "fsync", "-D", str(tmp_path)]
    asked = await asyncio.create_subprocess_exec(
        *program, "-c", f"config_file={file}", stdout=PIPE, stderr=PIPE
    )
    said, why = await asked.communicate()
    assert (asked.returncode, said) == (0, b"on\n"), why


async def test_a_postgres_without_tls_is_refused_where_tls_is_asked_for(
    secrets: Path, tmp_path: Path
) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)  # SSLRequest
        writer.write(b"N")
        assert await reader.read() == b""
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        dsn = f"postgresql://127.0.0.1:{port}/deskbus?sslmode=verify-full"
        with pytest.raises(DatabaseNotReachable, match="switch `ssl` on there"):
            async with pool_of(dsn_for(dsn, OWNER_ROLE, secrets)):
                """Not reached."""


# --- compose.yaml with deploy/compose.tls.yaml ---------------------------------------------------


async def test_services_in_containers_with_tls_become_ready(
    nats_port: int, postgres: Servers, secrets: Path, open_dir: Path
) -> None:
    """The same commands and environment as processes: both servers here refuse all but TLS."""
    services = composed(COMPOSE, TLS)["services"]
    http_port = choose_port(None, {nats_port})
    desk = OwnServers(open_dir, known_to(postgres, secrets), nats_port, 0, http_port, postgres)
    await asyncio.to_thread(Container("migrations", services["migrations"], desk).run)
    with ExitStack() as stack:
        names = ("provisioner", "orchestrator", "risk", "console")
        for name in names:
            desk.containers[name] = Container(name, services[name], desk)
            stack.enter_context(desk.containers[name].running())
        for name in names:
            await asyncio.to_thread(is_ready, desk, name)
            assert desk.containers[name].health().returncode == 0
        page = f"https://127.0.0.1:{http_port}/readyz"
        token = (secrets / "http.token").read_text().strip()
        assert await asyncio.to_thread(read, page, secrets, token) == b"ok\n"


# --- HTTP ---------------------------------------------------------------------------------------


def read(url: str, believed: Path, token: str = "") -> bytes:
    context = ssl.create_default_context(cafile=believed / CA_FILE)
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, context=context, timeout=UP_TIMEOUT_S) as answer:
        return bytes(answer.read())


async def test_a_client_that_is_faster_than_a_busy_server_is_answered(secrets: Path) -> None:
    """On uvloop, as every process runs: it reads a client's first bytes before TLS has begun."""
    listens = http_address(
        Settings(
            http={
                "enabled": True,
                "port": 0,
                "cert_file": secrets / "http.pem",
                "key_file": secrets / "http.key",
            },
        )
    )
    assert listens is not None

    async def busy() -> list[bytes]:
        async with serving(PlainTextResponse("here"), listens):
            reading = [asyncio.to_thread(read, listens.url, secrets) for _ in range(4)]
            answers = asyncio.gather(*reading)
            while not answers.done():
                await asyncio.sleep(0.01)
                time.sleep(0.1)  # noqa: ASYNC251 - others' work
            return await answers

    async with asyncio.timeout(HEADERS_S_MAX):
        assert await asyncio.to_thread(run, busy()) == [b"here"] * 4


async def test_http_speaks_tls_and_nothing_else(secrets: Path, strangers: Path) -> None:
    settings = Settings(
        http={
            "enabled": True,
            "port": 0,
            "cert_file": secrets / "http.pem",
            "key_file": secrets / "http.key",
        },
    )
    listens = http_address(settings)
    assert listens is not None
    assert listens.url == f"https://127.0.0.1:{listens.port}"

    async with serving(PlainTextResponse("here"), listens):
        assert await asyncio.to_thread(read, listens.url, secrets) == b"here"
        with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
            await asyncio.to_thread(read, listens.url, strangers)
        with pytest.raises(OSError, match=r"Remote end closed|reset by peer|BadStatusLine"):
            await asyncio.to_thread(read, listens.url.replace("https", "http"), secrets)
