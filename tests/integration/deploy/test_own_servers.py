"""The desk on servers of its own, started as compose.yaml says: its commands, its environment.

There is no Docker here. What is real: a nats-server with the generated nats.conf, a Postgres with
the generated roles.sql, and one process a service that has the secrets of its container and no
other. A program that knows only nats-py and the AsyncAPI document asks for a cycle.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import jsonschema
import nats
import nats.errors
import pytest
import pytest_asyncio

from contracts.subjects.subject import BACKBONE, SERVICES
from libs.keys.accounts import NatsPermissions
from libs.keys.credentials import nkey_public_key
from libs.keys.nats_config import NatsPlace
from libs.postgres.migrate import migrate
from libs.postgres.pool import CONSOLE_ROLE, EXECUTION_ROLE, dsn_for
from libs.runtime.ports import choose_port
from libs.servers.binaries import find_nats_server, find_postgres_bindir
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.postgres_roles import PsqlLogin, run_sql
from services.provisioner.secrets import provision_secrets
from tests.compose_files import COMPOSE, composed
from tests.integration.deploy import privileges

ROOT = Path(__file__).parents[3]
NOBODY = {"nobody": NatsPermissions(publish=(), subscribe=())}  # the embedded bus is not used
pytestmark = pytest.mark.asyncio(loop_scope="module")

IN_IMAGE = {
    "python": sys.executable,
    "/opt/code/healthcheck.py": str(ROOT / "deploy/healthcheck.py"),
}
READY_TIMEOUT_S = 90
CYCLE_TIMEOUT_S = 90
FOLDERS = ("strategies", "exit_signals", "reports", "tmp/deskbus")
SETTINGS = """
[schedule.jobs.tell]
kind = "report"
when = "close+45m"
missed = "skip"
"""
"""What stands in deploy/deskbus.toml here; each container finds it in its working directory."""


@dataclass(frozen=True)
class OwnServers:
    """Where the two servers are, and the secrets that belong to them."""

    directory: Path
    secrets: Path
    nats_port: int
    monitor_port: int
    http_port: int
    postgres: Servers
    watched: dict[str, int] = field(default_factory=dict)
    """Where each process answers whoever watches it, by service."""
    containers: dict[str, "Container"] = field(default_factory=dict)
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    """The processes: `nats`, and every service."""

    @property
    def nats_url(self) -> str:
        return f"nats://127.0.0.1:{self.nats_port}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(module_dir: Path) -> AsyncIterator[OwnServers]:
    secrets = module_dir / "secrets"
    nats_port = choose_port(None, set())
    monitor_port = choose_port(None, {nats_port})
    http_port = choose_port(None, {nats_port, monitor_port})
    store = module_dir / "store"
    provision_secrets(secrets, NatsPlace("127.0.0.1", nats_port, monitor_port, store))
    program = [str(find_nats_server()), "--config", str(secrets / "nats.conf")]
    with process(program, {}, module_dir) as nats_server:
        async with embedded_servers(module_dir / "pg", NOBODY, ()) as postgres:
            superuser = PsqlLogin(
                psql=postgres.psql,
                port=postgres.postgres_port,
                user="postgres",
                password=postgres.postgres_password("postgres"),
            )
            await run_sql(superuser, (secrets / "roles.sql").read_text())
            await run_sql(superuser, (secrets / "roles.sql").read_text())  # again: no harm
            own = OwnServers(module_dir, secrets, nats_port, monitor_port, http_port, postgres)
            own.running["nats"] = nats_server
            yield own


@contextlib.contextmanager
def process(
    argv: list[str], env: Mapping[str, str], cwd: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A child that is ended with the block; its words go to a file in `cwd`, and are shown where
    the block fails."""
    words = cwd / f"{argv[-1].rpartition('/')[2]}.log"
    with words.open("wb") as log:
        child = subprocess.Popen(
            argv, cwd=cwd, env={"PATH": os.defpath, **env}, stdout=log, stderr=log
        )
        try:
            yield child
        except BaseException:
            ended = child.poll()
            said = words.read_text().splitlines()[-40:]
            sys.stderr.write("\n".join([f"--- {words}, ended {ended}", *said, ""]))
            raise
        finally:
            child.terminate()
            try:
                child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


class Container:
    """One service of compose.yaml without the container: its command, environment, secrets."""

    def __init__(self, name: str, service: Mapping[str, Any], servers: OwnServers) -> None:
        self._home = servers.directory / "containers" / name
        secrets = self._home / "secrets"
        secrets.mkdir(parents=True)
        for secret in service["secrets"]:
            shutil.copy(servers.secrets / secret, secrets)
        command = service["command"]
        module = ["services.cli", *command[1:]] if command[0] == "deskbus" else command[2:]
        self.argv = [sys.executable, "-m", *module]
        places = {
            "nats:4222": f"127.0.0.1:{servers.nats_port}",
            "postgres:5432": f"127.0.0.1:{servers.postgres.postgres_port}",
            "/run/secrets": str(secrets),
            "${DESKBUS_LOG_LEVEL:-info}": "info",
        }
        places |= {f"/{each}": str(self._home / each) for each in FOLDERS}
        (self._home / "deskbus.toml").write_text(SETTINGS)
        self.env = {"PYTHONPATH": str(ROOT)}
        for variable, value in service["environment"].items():
            self.env[variable] = _here(value, places)
        asked = service["healthcheck"].get("test", ["CMD", *command])
        self.healthcheck = [IN_IMAGE.get(each, each) for each in asked[1:]]
        self.env["DESKBUS_HTTP_PORT"] = str(servers.http_port)
        # One machine for all: a container has its ports to itself.
        servers.watched[name] = choose_port(None, set(servers.watched.values()))
        self.env["DESKBUS_METRICS_HOST"] = "127.0.0.1"
        self.env["DESKBUS_METRICS_PORT"] = str(servers.watched[name])

    def run(self) -> None:
        """Run it to its end; it must succeed."""
        env = {"PATH": os.defpath, **self.env}
        done = subprocess.run(
            self.argv, cwd=self._home, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def health(self, port: str = "") -> subprocess.CompletedProcess[str]:
        """What compose.yaml's healthcheck says of this service, or of what is on another port."""
        env = {"PATH": os.defpath, **self.env}
        if port:
            env["DESKBUS_METRICS_PORT"] = port
        return subprocess.run(
            self.healthcheck, env=env, capture_output=True, text=True, check=False, timeout=5
        )

    def running(self) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        return process(self.argv, self.env, self._home)


def _here(value: str, places: Mapping[str, str]) -> str:
    theirs = next((each for each in places if each in value), "")
    return value.replace(theirs, places[theirs]) if theirs else value


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(servers: OwnServers) -> AsyncIterator[OwnServers]:
    """Every service of compose.yaml, in the order that it asks for."""
    compose = composed(COMPOSE)["services"]
    Container("migrations", compose["migrations"], servers).run()
    names = [name for name, each in compose.items() if each.get("command", [""])[0] == "python"]
    assert len(names) >= 9
    with contextlib.ExitStack() as stack:
        for name in names:
            container = Container(name, compose[name], servers)
            servers.containers[name] = container
            servers.running[name] = stack.enter_context(container.running())
        yield servers


@contextlib.asynccontextmanager
async def connected(servers: OwnServers, identity: str) -> AsyncIterator[Any]:
    """As the AsyncAPI document says: an nkey, and the inbox prefix of one's own identity."""

    async def quiet(_: Exception) -> None:
        """A refusal is asserted by what does not come."""

    client = await nats.connect(
        servers.nats_url,
        nkeys_seed=str(servers.secrets / f"{identity}.nk"),
        inbox_prefix=f"_INBOX_{identity}".encode(),
        error_cb=quiet,
    )
    try:
        yield client
    finally:
        await client.close()


async def requested(
    client: Any, body: Mapping[str, Any], subject: str = "desk.v1.req.orchestrator.cycle.user"
) -> dict[str, Any]:
    """The answer to a raw request; asked again until who answers it has started."""
    until = time.monotonic() + READY_TIMEOUT_S
    while True:
        try:
            reply = await client.request(subject, json.dumps(body).encode(), timeout=5)
            return json.loads(reply.data)
        except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
            assert time.monotonic() < until, "nobody answers"
            await asyncio.sleep(0.5)


async def test_a_stranger_gets_its_decision_from_a_desk_on_own_servers(desk: OwnServers) -> None:
    request = {
        "idempotency_key": "stranger-1",
        "as_of": "2012-06-29",
        "universe": ["AAPL", "GOOG", "IBM", "MSFT"],
    }
    document = json.loads((ROOT / "contracts/schemas/asyncapi.json").read_text())
    async with connected(desk, "user") as client:
        events = await client.subscribe("desk.v1.evt.>")
        answer = await requested(client, request)
        assert answer["outcome"] == "accepted", answer

        heard: list[dict[str, Any]] = []
        async with asyncio.timeout(CYCLE_TIMEOUT_S):
            async for message in events.messages:
                heard.append(json.loads(message.data))
                if heard[-1]["type"] == "cycle_ended":
                    break

    mine = [event for event in heard if event["cycle_id"] == answer["cycle_id"]]
    assert [event["sequence"] for event in mine] == list(range(1, len(mine) + 1))
    assert mine[-1]["data"]["status"] == "completed"
    assert any(event["type"] == "decision" for event in mine)
    for name, body in (("RequestAnswer", answer), *(("Event", event) for event in mine)):
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        jsonschema.validate(body, schema)
    for event in mine:
        jsonschema.validate(event, _event_schema(document, event))
    await _the_schedule_is_known_and_runs(desk)
    await _http_answers_whoever_has_the_token(desk, answer["cycle_id"])
    await asyncio.to_thread(_every_service_says_that_it_is_ready, desk)
    await _a_strange_name_is_refused(desk)


def _event_schema(document: Mapping[str, Any], event: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of the event's message in the document, with what it refers to."""
    channel = document["channels"][f"evt.{event['owner']}.{event['type']}"]
    (name,) = channel["messages"]
    message = document["components"]["messages"][name]
    return {**message["payload"], "components": document["components"]}


async def _the_schedule_is_known_and_runs(desk: OwnServers) -> None:
    """Console and orchestrator both read deskbus.toml, and the report lands in its folder."""
    async with connected(desk, "user") as client:
        events = await client.subscribe("desk.v1.evt.orchestrator.cycle_ended.>")
        told = await requested(client, {}, "desk.v1.qry.console.schedule.user")
        job = {"job": "tell", "at": "2012-06-29T20:45:00Z"}
        run = await requested(client, job, "desk.v1.req.orchestrator.run_job.user")
        ended = json.loads((await events.next_msg(timeout=CYCLE_TIMEOUT_S)).data)
    assert [each["name"] for each in told["jobs"]] == ["tell"]
    assert run["outcome"] == "accepted", run
    assert ended["data"]["status"] == "completed", ended
    reports = desk.directory / "containers/reporter/reports"
    assert [path.suffix for path in reports.rglob("*") if path.is_file()] == [".md"]


async def _http_answers_whoever_has_the_token(desk: OwnServers, cycle_id: str) -> None:
    path = f"http://127.0.0.1:{desk.http_port}/api/v1/cycles/{cycle_id}"
    token = (desk.secrets / "http.token").read_text().strip()
    async with httpx2.AsyncClient(verify=False) as http:
        without = await http.get(path)
        answered = await http.get(path, headers={"Authorization": f"Bearer {token}"})
    assert without.status_code == 401
    assert (answered.status_code, answered.json()["status"]) == (200, "completed")


def _every_service_says_that_it_is_ready(desk: OwnServers) -> None:
    services = set(desk.watched) - {"migrations"}
    assert services == {*BACKBONE, *SERVICES}
    for name in services:
        for page in ("livez", "readyz", "metrics"):
            url = f"http://127.0.0.1:{desk.watched[name]}/{page}"
            with urllib.request.urlopen(url, timeout=READY_TIMEOUT_S) as answer:
                assert answer.status == 200, (name, page)
        healthy = desk.containers[name].health()
        assert (healthy.returncode, healthy.stderr) == (0, ""), name


def is_ready(desk: OwnServers, name: str) -> None:
    until = time.monotonic() + READY_TIMEOUT_S
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{desk.watched[name]}/readyz", timeout=5)
        except OSError:
            assert time.monotonic() < until, f"{name} does not become ready"
            time.sleep(0.2)
        else:
            return


async def _a_strange_name_is_refused(desk: OwnServers) -> None:
    async with connected(desk, "user") as client:
        with pytest.raises((nats.errors.TimeoutError, nats.errors.NoRespondersError)):
            await client.request("desk.v1.req.orchestrator.cycle.cli", b"{}", timeout=1)


async def test_every_service_has_an_identity_that_is_tried() -> None:
    assert {*BACKBONE, *SERVICES} < set(privileges.IDENTITIES)


@pytest.mark.parametrize("identity", privileges.IDENTITIES)
async def test_an_identity_may_do_on_nats_what_is_its_own_and_nothing_else(
    desk: OwnServers, identity: str
) -> None:
    refused: list[str] = []

    async def on_error(error: Exception) -> None:
        refused.append(str(error))

    client = await nats.connect(
        desk.nats_url,
        nkeys_seed=str(desk.secrets / f"{identity}.nk"),
        inbox_prefix=f"_INBOX_{identity}".encode(),
        error_cb=on_error,
    )

    async def answered() -> None:
        # The first question of nats-py overtakes what was published, the second does not.
        for _ in range(2):
            await client.flush()

    try:
        said = privileges.not_to_say(identity)
        for subject in said:
            await client.publish(subject, b"{}")
        await answered()
        assert privileges.told(refused, "publish") == {each.lower() for each in said}
        heard = privileges.not_to_hear(identity)
        for subject in heard:
            await client.subscribe(subject)
        await answered()
        assert privileges.told(refused, "subscription") == {each.lower() for each in heard}
    finally:
        await client.close()
    assert len(said) > 100
    assert len(heard) > 20


async def test_the_commands_for_containers_in_the_backups_page_bring_everything_back(
    desk: OwnServers,
) -> None:
    """docs/backup.md: Postgres' own programs in its container, as its superuser."""
    place = f"127.0.0.1:{desk.postgres.postgres_port}"
    text = (ROOT / "docs/backup.md").read_text()
    told = re.findall(r"docker compose exec -T --user postgres postgres (.+)", text)
    before, back = (re.split(" [<>] ", each)[0].split() for each in told)
    superuser = dsn_for(f"postgresql://{place}/postgres", "postgres", desk.postgres.secrets_dir)
    db = await asyncpg.connect(superuser)
    try:
        await db.execute("create database deskbus_again owner deskbus_owner")
        dumped = await asyncio.to_thread(_in_postgres, desk, before, b"")
        back = [each.replace("--dbname=deskbus", "--dbname=deskbus_again") for each in back]
        await asyncio.to_thread(_in_postgres, desk, back, dumped)
        owner = dsn_for(f"postgresql://{place}/deskbus_again", "deskbus_owner", desk.secrets)
        assert list(await migrate(owner)) == []
        again = await asyncpg.connect(owner)
        try:
            assert await again.fetchval("select count(*) from state_events") > 0
            assert await again.fetch(
                "select distinct tableowner from pg_tables where schemaname = 'public'"
            ) == [("deskbus_owner",)]
            console = "select has_table_privilege('deskbus_console', 'cycles', 'select')"
            assert await again.fetchval(console)
        finally:
            await again.close()
    finally:
        await db.close()


def _in_postgres(desk: OwnServers, words: Sequence[str], given: bytes) -> bytes:
    """What a program of Postgres' says, where the superuser is let in."""
    env = {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(desk.postgres.postgres_port),
        "PGUSER": "postgres",
        "PGPASSWORD": desk.postgres.postgres_password("postgres"),
    }
    program = find_postgres_bindir(None) / words[0]
    done = subprocess.run(
        [str(program), *words[1:]], input=given, env=env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("role", privileges.MAY)
async def test_a_role_may_do_in_postgres_what_is_its_own_and_nothing_else(
    desk: OwnServers, role: str
) -> None:
    place = f"127.0.0.1:{desk.postgres.postgres_port}"
    dsn = dsn_for(f"postgresql://{place}/deskbus", role, desk.secrets)
    db = await asyncpg.connect(dsn)
    try:
        done = await privileges.granted(db)
        for statement in privileges.NOBODYS:
            assert not await privileges.may(db, statement), statement
    finally:
        await db.close()
    assert done == privileges.MAY[role]
    for database in ("postgres", "template1"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await asyncpg.connect(dsn_for(f"postgresql://{place}/{database}", role, desk.secrets))


async def test_a_role_may_call_the_functions_that_are_named_for_it_and_no_other(
    desk: OwnServers,
) -> None:
    place = f"127.0.0.1:{desk.postgres.postgres_port}"
    db = await asyncpg.connect(dsn_for(f"postgresql://{place}/deskbus", CONSOLE_ROLE, desk.secrets))
    try:
        assert await privileges.callable_by(db) == privileges.CALLS
    finally:
        await db.close()


async def test_the_role_that_reads_holds_no_halt_up(desk: OwnServers) -> None:
    """Whatever it locks: what the kill switch waits for is a right of execution's alone."""
    place = f"127.0.0.1:{desk.postgres.postgres_port}"
    reads, trades = [
        await asyncpg.connect(dsn_for(f"postgresql://{place}/deskbus", role, desk.secrets))
        for role in (CONSOLE_ROLE, EXECUTION_ROLE)
    ]
    try:
        async with reads.transaction():
            await reads.execute("select pg_advisory_xact_lock(x'68616c74'::int)")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with reads.transaction():
                    await reads.execute("select change_halts()")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with reads.transaction():
                    await reads.execute("lock table halt_lock in row share mode")
            async with trades.transaction():
                await trades.execute("set local lock_timeout = '1s'")
                await trades.execute("select change_halts()")
    finally:
        await reads.close()
        await trades.close()


async def test_a_service_that_is_not_ready_is_not_healthy(desk: OwnServers) -> None:
    async def not_yet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Service Unavailable\r\n\r\nnats: no connection\n")
        writer.close()

    async with await asyncio.start_server(not_yet, "127.0.0.1", 0) as server:
        port = str(server.sockets[0].getsockname()[1])
        unhealthy = await asyncio.to_thread(desk.containers["risk"].health, port)
    assert (unhealthy.returncode, unhealthy.stderr) == (1, "not ready: nats: no connection\n")


@pytest.mark.parametrize("name", ["risk", "orchestrator"])
async def test_a_process_that_nats_lets_in_no_more_says_so_and_goes_on_once_it_does(
    desk: OwnServers, name: str
) -> None:
    await asyncio.to_thread(is_ready, desk, name)
    path = desk.secrets / "nats.conf"
    was = path.read_text()
    config = json.loads(was)
    key = nkey_public_key(desk.secrets, name)
    users = config["accounts"][name]["users"]
    config["accounts"][name]["users"] = [each for each in users if each["nkey"] != key]

    path.write_text(json.dumps(config))
    desk.running["nats"].send_signal(signal.SIGHUP)
    said = ""
    async with asyncio.timeout(READY_TIMEOUT_S):
        while "(6 tries" not in said:  # longer than it once took to give up
            await asyncio.sleep(0.2)
            said = (await asyncio.to_thread(desk.containers[name].health)).stderr
    assert "NATS refuses this key" in said
    assert desk.running[name].poll() is None

    path.write_text(was)
    desk.running["nats"].send_signal(signal.SIGHUP)
    await asyncio.to_thread(is_ready, desk, name)
    log = (desk.directory / "containers" / name / f"services.{name}.log").read_text()
    assert "bus.refused" in log
    assert "Traceback" not in log
