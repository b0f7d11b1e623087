"""The embedded NATS and Postgres, really started: one shared pair, and pairs for each fault."""

import asyncio
import os
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing, suppress
from pathlib import Path
from threading import Thread

import nats
import psutil
import pytest

from libs.keys.accounts import NatsPermissions
from libs.runtime.ports import choose_port
from libs.servers import embedded
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.embedded_thread import held_in_thread
from libs.servers.nats_server import nats_problem
from libs.servers.postgres_roles import PsqlLogin, run_sql
from libs.servers.postgres_server import PostgresError

PERMISSIONS = {
    "orchestrator": NatsPermissions((">",), (">",)),
    "risk": NatsPermissions(("desk.risk.>",), ("_INBOX_risk.>",)),
    "answerer": NatsPermissions(("_INBOX_orchestrator.>",), ("ask.answerer",)),
    "mute": NatsPermissions((), ("_INBOX_mute.>",)),
}
ROLES = ("orchestrator", "console")
DEADLINE_S = 30
SETTLE_S = 0.3


@pytest.fixture(scope="module")
def servers(module_dir: Path) -> Iterator[Servers]:
    """The shared pair; tests that use it must leave it running."""
    with held_in_thread(lambda: embedded_servers(module_dir / "desk", PERMISSIONS, ROLES)) as pair:
        yield pair


def _login(servers: Servers, role: str, **changes: str) -> PsqlLogin:
    fields = {
        "psql": servers.psql,
        "port": servers.postgres_port,
        "user": role,
        "password": servers.postgres_password(role),
        "database": servers.database,
    }
    return PsqlLogin(**{**fields, **changes})


async def _connected(servers: Servers, identity: str, errors: list[str]) -> nats.NATS:
    async def note(error: Exception) -> None:
        errors.append(str(error).lower())

    return await nats.connect(
        servers.nats_url,
        nkeys_seed=str(servers.nkey_seed_path(identity)),
        inbox_prefix=f"_INBOX_{identity}".encode(),
        error_cb=note,
        allow_reconnect=False,
    )


async def _flushed(client: nats.NATS) -> None:
    """Wait until the server has all that was written: by itself nats-py asks before it has sent it
    (libs/bus/connection.py), and what is told then is not heard."""
    await client._flush_pending(force_flush=True)
    await client.flush()


async def _told(errors: list[str], count: int) -> None:
    """Wait for errors: the client hands them to its callback in a task of its own."""
    async with asyncio.timeout(DEADLINE_S):
        while len(errors) < count:  # noqa: ASYNC110 - the callback has nothing to wait on
            await asyncio.sleep(0.01)
    assert len(errors) == count


async def test_each_role_logs_in_with_its_own_password(servers: Servers) -> None:
    for role in ROLES:
        assert await run_sql(_login(servers, role), "SELECT current_user") == role


async def test_a_wrong_password_is_refused(servers: Servers) -> None:
    with pytest.raises(PostgresError, match="password authentication failed"):
        await run_sql(_login(servers, "console", password="wrong"), "SELECT 1")


async def test_no_role_gets_in_without_a_password(servers: Servers) -> None:
    for role in ("postgres", *ROLES):
        with pytest.raises(PostgresError, match="password"):
            await run_sql(_login(servers, role, password=""), "SELECT 1")


async def test_a_role_reaches_its_own_database_only_and_creates_nothing(servers: Servers) -> None:
    with pytest.raises(PostgresError, match="permission denied for database"):
        await run_sql(_login(servers, "console", database="postgres"), "SELECT 1")
    with pytest.raises(PostgresError, match="permission denied for schema public"):
        await run_sql(_login(servers, "console"), "CREATE TABLE t (n int)")


async def test_commits_are_durable_and_passwords_are_kept_as_scram(servers: Servers) -> None:
    superuser = _login(servers, "postgres")
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert await run_sql(superuser, f"SHOW {setting}") == "on"
    kept = await run_sql(superuser, "SELECT rolpassword FROM pg_authid WHERE rolname = 'console'")
    assert kept.startswith("SCRAM-SHA-256$")
    trusting = "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method <> 'scram-sha-256'"
    assert await run_sql(superuser, trusting) == "0"


async def test_an_identity_publishes_what_its_list_names(servers: Servers) -> None:
    errors: list[str] = []
    listener = await _connected(servers, "orchestrator", errors)
    risk = await _connected(servers, "risk", errors)
    inbox = await listener.subscribe("desk.>")
    await _flushed(listener)
    await risk.publish("desk.risk.done", b"yes")
    await _flushed(risk)
    message = await inbox.next_msg(timeout=DEADLINE_S)
    await risk.close()
    await listener.close()
    assert (message.subject, message.data, errors) == ("desk.risk.done", b"yes", [])


async def test_an_identity_may_not_publish_outside_its_list(servers: Servers) -> None:
    errors: list[str] = []
    listener = await _connected(servers, "orchestrator", [])
    inbox = await listener.subscribe("desk.>")
    await _flushed(listener)
    risk, mute = (
        await _connected(servers, "risk", errors),
        await _connected(servers, "mute", errors),
    )
    for client in (risk, mute):
        await client.publish("desk.execution.order", b"buy")
        await _flushed(client)
    with pytest.raises(nats.errors.TimeoutError):
        await inbox.next_msg(timeout=SETTLE_S)
    await listener.close()
    await _told(errors, 2)
    await risk.close()
    await mute.close()
    assert all("permissions violation for publish" in error for error in errors)


async def test_an_identity_may_not_subscribe_outside_its_list(servers: Servers) -> None:
    errors: list[str] = []
    risk = await _connected(servers, "risk", errors)
    await risk.subscribe("desk.>")
    await _flushed(risk)
    await _told(errors, 1)
    await risk.close()
    assert "permissions violation for subscription" in errors[0]


async def test_an_answerer_answers_what_it_was_asked_and_says_nothing_else(
    servers: Servers,
) -> None:
    errors: list[str] = []
    asker = await _connected(servers, "orchestrator", errors)
    answerer = await _connected(servers, "answerer", errors)

    async def answer(message: nats.aio.msg.Msg) -> None:
        await message.respond(b"answer")

    await answerer.subscribe("ask.answerer", cb=answer)
    await _flushed(answerer)
    assert (await asker.request("ask.answerer", b"?", timeout=DEADLINE_S)).data == b"answer"
    assert errors == []
    await answerer.publish("desk.risk.done", b"forged")
    async with asyncio.timeout(DEADLINE_S):
        while not errors:  # noqa: ASYNC110 - told to a callback, some time after the flush
            await asyncio.sleep(0.01)
    await answerer.close()
    await asker.close()
    assert all("permissions violation for publish" in error for error in errors)


async def test_nobody_gets_into_nats_without_a_known_key(servers: Servers) -> None:
    with pytest.raises(nats.errors.Error, match=r"(?i)authorization"):
        await nats.connect(servers.nats_url, allow_reconnect=False)


async def test_jetstream_is_on_and_keeps_its_files_in_the_data_directory(servers: Servers) -> None:
    client = await _connected(servers, "orchestrator", [])
    jetstream = client.jetstream()
    await jetstream.add_stream(name="PROBE", subjects=["probe.>"])
    acknowledged = await jetstream.publish("probe.one", b"1", stream="PROBE")
    await jetstream.delete_stream("PROBE")
    await client.close()
    assert acknowledged.seq == 1
    assert (servers.server_dir / "nats" / "jetstream").is_dir()


def test_nothing_listens_beyond_loopback(servers: Servers) -> None:
    processes = [psutil.Process(servers.pid(name)) for name in ("nats", "postgres")]
    processes += [child for process in processes for child in process.children(recursive=True)]
    listening = [
        connection
        for process in processes
        for connection in process.net_connections(kind="all")
        if connection.status == psutil.CONN_LISTEN or connection.family == socket.AF_UNIX
    ]
    ports = {
        connection.laddr.port for connection in listening if connection.family != socket.AF_UNIX
    }
    assert {c.laddr.ip for c in listening if c.family != socket.AF_UNIX} == {"127.0.0.1"}
    assert servers.postgres_port in ports
    assert len(ports) == 3
    assert not [c for c in listening if c.family == socket.AF_UNIX and c.laddr]


def test_secrets_are_private_and_in_no_repr_log_or_command_line(servers: Servers) -> None:
    secrets = {path.read_text().strip() for path in servers.secrets_dir.iterdir()}
    assert len(secrets) == len(PERMISSIONS) + len(ROLES) + 1
    assert {stat.S_IMODE(path.stat().st_mode) for path in servers.secrets_dir.iterdir()} == {0o600}
    assert stat.S_IMODE(servers.secrets_dir.stat().st_mode) == 0o700
    shown = repr(servers) + "".join(path.read_text() for path in servers.logs_dir.iterdir())
    for name in ("nats", "postgres"):
        shown += " ".join(psutil.Process(servers.pid(name)).cmdline())
    shown += (servers.server_dir / "nats.conf").read_text()
    assert not [secret for secret in secrets if secret in shown]


async def test_a_new_data_directory_and_its_logs_are_the_owners_alone(open_dir: Path) -> None:
    async with embedded_servers(open_dir / "new", PERMISSIONS, ROLES) as servers:
        as_root = os.geteuid() == 0
        # As root the servers' user passes through to their data, and lists nothing.
        assert _mode(servers.data_dir) == (0o711 if as_root else 0o700)
        assert _mode(servers.logs_dir) == 0o700
        files = [*servers.logs_dir.iterdir(), servers.data_dir / "lock"]
        assert {_mode(file) for file in (*files, servers.data_dir / "embedded.json")} == {0o600}


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_no_server_runs_as_root(servers: Servers) -> None:
    uids = {psutil.Process(servers.pid(name)).uids().effective for name in ("nats", "postgres")}
    assert 0 not in uids


async def test_a_data_directory_may_have_any_name(open_dir: Path) -> None:
    folder = open_dir / "josé 数据 🚀 $HOME `id` 'a' \"b\" \\u {c} #1 [d]*?%20"
    folder.mkdir()
    async with embedded_servers(folder, PERMISSIONS, ROLES) as servers:
        assert await run_sql(_login(servers, "console"), "SELECT 1") == "1"
        client = await _connected(servers, "orchestrator", [])
        await client.jetstream().add_stream(name="PROBE", subjects=["probe.>"])
        await client.close()
        assert (folder / "servers" / "nats" / "jetstream").is_dir()


async def test_a_killed_postgres_comes_back_on_its_port_with_its_data(open_dir: Path) -> None:
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as servers:
        superuser = _login(servers, "postgres")
        await run_sql(superuser, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
        for _ in range(2):
            before = servers.pid("postgres")
            os.kill(before, signal.SIGKILL)
            async with asyncio.timeout(DEADLINE_S):
                await servers.replaced("postgres", before)
            assert await run_sql(superuser, "SELECT n FROM kept") == "7"


async def test_a_killed_nats_comes_back_on_its_port_with_its_streams(open_dir: Path) -> None:
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as servers:
        client = await _connected(servers, "orchestrator", [])
        await client.jetstream().add_stream(name="PROBE", subjects=["probe.>"])
        await client.jetstream().publish("probe.one", b"1", stream="PROBE")
        await client.close()
        before = servers.pid("nats")
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            await servers.replaced("nats", before)
        assert await nats_problem(int(servers.nats_monitor_url.rpartition(":")[2])) == ""
        client = await _connected(servers, "orchestrator", [])
        assert (await client.jetstream().stream_info("PROBE")).state.messages == 1
        await client.close()


async def test_identities_come_and_go_while_nats_runs_and_while_it_is_dead(open_dir: Path) -> None:
    later = {**PERMISSIONS, "late": NatsPermissions(("desk.late.>",), ("_INBOX_late.>",))}
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as servers:
        stays = await _connected(servers, "orchestrator", [])
        inbox = await stays.subscribe("desk.>")
        await _flushed(stays)

        await servers.permit(later)
        late = await _let_in(servers, "late")
        await late.publish("desk.late.here", b"yes")
        message = await inbox.next_msg(timeout=DEADLINE_S)
        assert message.data == b"yes", "who was there before hears who came later"

        await servers.permit(PERMISSIONS)
        async with asyncio.timeout(DEADLINE_S):
            while not late.is_closed:  # noqa: ASYNC110 - the server closes it
                await asyncio.sleep(0.01)
        assert stays.is_connected

        pid = servers.pid("nats")
        os.kill(pid, signal.SIGKILL)
        await servers.permit(later)
        await servers.replaced("nats", pid)
        await (await _let_in(servers, "late")).close()
        await stays.close()


async def _let_in(servers: Servers, identity: str) -> nats.NATS:
    """A connection, once the server takes the key."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(nats.errors.Error, OSError):
                return await _connected(servers, identity, [])
            await asyncio.sleep(0.05)


async def test_both_servers_may_die_at_once(open_dir: Path) -> None:
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as servers:
        before = {name: servers.pid(name) for name in ("nats", "postgres")}
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            for name, pid in before.items():
                await servers.replaced(name, pid)
        assert await run_sql(_login(servers, "console"), "SELECT 1") == "1"


async def test_the_next_start_has_the_same_ports_secrets_and_data(open_dir: Path) -> None:
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as first:
        await run_sql(_login(first, "postgres"), "CREATE TABLE kept (n int)")
        secrets = {path.name: path.read_text() for path in first.secrets_dir.iterdir()}
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as second:
        assert await run_sql(_login(second, "postgres"), "SELECT count(*) FROM kept") == "0"
    assert {path.name: path.read_text() for path in second.secrets_dir.iterdir()} == secrets
    assert (first.nats_url, first.postgres_port) == (second.nats_url, second.postgres_port)


async def test_a_port_that_was_taken_meanwhile_is_replaced(open_dir: Path) -> None:
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as first:
        pass
    with socket.create_server(("127.0.0.1", first.postgres_port)):
        async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as second:
            assert second.postgres_port != first.postgres_port
            assert await run_sql(_login(second, "console"), "SELECT 1") == "1"


@pytest.mark.parametrize("name", ["nats", "nats_monitor", "postgres"])
async def test_a_port_that_somebody_takes_before_the_server_listens_is_replaced(
    name: str, open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = ["nats", "nats_monitor", "postgres"]
    chosen: list[int] = []

    async with AsyncExitStack() as stack:

        def choose(remembered: int | None, taken: set[int]) -> int:
            """As ever, but that somebody is faster at the first of that name."""
            port = choose_port(remembered, taken)
            chosen.append(port)
            if len(chosen) == order.index(name) + 1:
                stack.enter_context(closing(_web_server(port)))
            return port

        monkeypatch.setattr(embedded, "choose_port", choose)
        async with embedded_servers(open_dir / "desk", PERMISSIONS, ROLES) as servers:
            assert await run_sql(_login(servers, "console"), "SELECT 1") == "1"
            client = await _connected(servers, "orchestrator", [])
            await client.close()
            kept = [port for port in chosen[:3] if port in chosen[3:]]
            assert kept == [port for port in chosen[:3] if port != chosen[order.index(name)]]


def _web_server(port: int) -> socket.socket:
    """Somebody else's: it says to whoever asks that all is well."""
    listening = socket.create_server(("127.0.0.1", port))

    def answer() -> None:
        with suppress(OSError):  # closed: nobody is answered any more
            while True:
                asking, _ = listening.accept()
                with asking:
                    asking.recv(1024)
                    asking.sendall(b'HTTP/1.0 200 OK\r\n\r\n{"status":"ok"}')

    Thread(target=answer, daemon=True).start()
    return listening


async def test_a_role_that_is_named_later_is_added(open_dir: Path) -> None:
    async with embedded_servers(open_dir / "desk", PERMISSIONS, ["orchestrator"]):
        pass
    async with embedded_servers(
        open_dir / "desk", PERMISSIONS, ["orchestrator", "migrate"], database_owner="migrate"
    ) as servers:
        created = "CREATE TABLE t (n int); INSERT INTO t VALUES (1); SELECT n FROM t"
        assert await run_sql(_login(servers, "migrate"), created) == "1"
