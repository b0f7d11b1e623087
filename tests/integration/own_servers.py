"""Servers that the desk did not start: set up with the files that an operator gets.

`services.provisioner.secrets` makes the keys, the passwords, nats.conf and roles.sql. Who starts
the two servers is the only thing that differs: `containers` (a Docker engine, through
testcontainers, for `--containers`) or `processes` (plain programs of this machine).

`make docker` runs the console's suite on `containers`, and `make soak` all three; the images there
are stand-ins for the official ones (tests/docker/bases.py).
"""

import asyncio
import os
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import nats.errors
import yaml
from docker.errors import DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient, get_docker_host
from testcontainers.core.network import Network

from libs.bus.connection import BusNotReachable, connect
from libs.bus.permissions import PROVISIONER
from libs.keys.accounts import NatsPermissions
from libs.keys.credentials import postgres_password
from libs.keys.nats_config import NatsPlace
from libs.postgres.pool import dsn_for
from libs.runtime.ports import LOOPBACK, choose_port
from libs.servers.binaries import find_nats_server, find_postgres_bindir
from libs.servers.embedded import DATABASE, embedded_servers
from libs.servers.postgres_roles import PsqlLogin, run_sql
from libs.servers.postgres_server import SUPERUSER, PostgresError
from services.provisioner.secrets import NATS_CONFIG, ROLES_SQL, provision_secrets

ROOT = Path(__file__).parents[2]
COMPOSE_SECRETS = "./deploy/secrets/"
NATS_PORT = 4222
POSTGRES_PORT = 5432
READY_TIMEOUT_S = 60.0
READY_POLL_S = 0.1
STOP_TIMEOUT_S = 20.0
DEFAULT_ENGINE = "unix:///var/run/docker.sock"
NOBODY = {"nobody": NatsPermissions(publish=(), subscribe=())}  # this embedded NATS is not used


@dataclass(frozen=True)
class OwnServers:
    """All that a suite may know of its pair, embedded or not: so one that runs on embedded servers
    runs on containers too."""

    nats_url: str
    postgres_host: str
    postgres_port: int
    data_dir: Path
    secrets_dir: Path
    database: str = DATABASE

    @property
    def environment(self) -> Mapping[str, str]:
        """What an operator sets to run the desk on servers of their own."""
        return {
            "DESKBUS_NATS_URL": self.nats_url,
            "DESKBUS_POSTGRES_DSN": self.postgres_address,
            "DESKBUS_SECRETS_DIR": str(self.secrets_dir),
        }

    def postgres_dsn(self, role: str) -> str:
        """A URL with the role's password in it."""
        return dsn_for(self.postgres_address, role, self.secrets_dir)

    @property
    def postgres_address(self) -> str:
        """The database's URL without a login."""
        return f"postgresql://{self.postgres_host}:{self.postgres_port}/{self.database}"


@dataclass(frozen=True)
class Listening:
    """Where two started servers listen; they may not be ready yet."""

    nats_port: int
    postgres_port: int
    host: str = LOOPBACK


Starter = Callable[[Path, Path], AbstractAsyncContextManager[Listening]]
"""Starts both servers for (a folder of its own, the secrets directory) and ends them."""


@asynccontextmanager
async def own_servers(folder: Path, started: Starter) -> AsyncIterator[OwnServers]:
    """Both servers, ready, with the roles and the database that roles.sql makes.

    `folder` must be one that every user may enter. Raises TimeoutError where a server does not
    become ready.
    """
    data_dir = folder / "data"
    data_dir.mkdir(parents=True)
    # Below the data directory of `processes`' Postgres: so both know the same superuser.
    secrets = folder / "pair" / "secrets"
    async with started(folder / "pair", secrets) as place:
        await _roles_made(place, secrets)
        url = f"nats://{place.host}:{place.nats_port}"
        await _nats_ready(url, secrets)
        yield OwnServers(url, place.host, place.postgres_port, data_dir, secrets)


async def _roles_made(place: Listening, secrets: Path) -> None:
    """What compose.yaml's service `roles` does, as soon as Postgres answers."""
    superuser = PsqlLogin(
        psql=find_postgres_bindir(None) / "psql",
        host=place.host,
        port=place.postgres_port,
        user=SUPERUSER,
        password=postgres_password(secrets, SUPERUSER),
    )
    await _soon(lambda: run_sql(superuser, "select 1"), PostgresError)
    await run_sql(superuser, (secrets / ROLES_SQL).read_text())


async def _nats_ready(url: str, secrets: Path) -> None:
    async def jetstream_answers() -> None:
        client = await connect(url, PROVISIONER, secrets)
        try:
            await client.jsm().account_info()
        finally:
            await client.close()

    await _soon(jetstream_answers, BusNotReachable, nats.errors.Error)


async def _soon(attempt: Callable[[], Any], *not_yet: type[Exception]) -> None:
    """Tried until it works: a server in another process or container has no event to wait for."""
    async with asyncio.timeout(READY_TIMEOUT_S):
        while True:
            try:
                await attempt()
            except not_yet:
                await asyncio.sleep(READY_POLL_S)
            else:
                return


@asynccontextmanager
async def processes(folder: Path, secrets: Path) -> AsyncIterator[Listening]:
    """A nats-server under the rendered nats.conf, and a Postgres that knows only its superuser."""
    nats_port = choose_port(None, set())
    monitor_port = choose_port(None, {nats_port})
    place = NatsPlace(LOOPBACK, nats_port, monitor_port, folder / "store")
    provision_secrets(secrets, place)
    config = secrets / NATS_CONFIG
    async with embedded_servers(folder, NOBODY, ()) as held:
        server = await asyncio.create_subprocess_exec(
            find_nats_server(), "--config", config, env={"PATH": os.defpath}, stderr=DEVNULL
        )
        try:
            yield Listening(nats_port, held.postgres_port)
        finally:
            server.terminate()
            await asyncio.wait_for(server.wait(), STOP_TIMEOUT_S)


@asynccontextmanager
async def containers(folder: Path, secrets: Path) -> AsyncIterator[Listening]:
    """The containers `nats` and `postgres` of compose.yaml, on free ports of this machine.

    The engine must run on this machine, because the containers mount files of it. They have a
    network of their own: an engine may have no default one.
    """
    provision_secrets(secrets)
    async with AsyncExitStack() as stack:
        network = await asyncio.to_thread(Network().create)
        stack.push_async_callback(asyncio.to_thread, network.remove)
        ports = {}
        for name, port in (("nats", NATS_PORT), ("postgres", POSTGRES_PORT)):
            container = container_of(name, secrets).made().with_exposed_ports(port)
            container.with_network(network)
            stack.push_async_callback(asyncio.to_thread, container.stop)
            await asyncio.to_thread(container.start)
            ports[name] = container.get_exposed_port(port)
        yield Listening(ports["nats"], ports["postgres"])


@dataclass(frozen=True)
class Container:
    """What compose.yaml says of one server: `mounts` are files here, by their path inside."""

    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: Mapping[str, Path] = field(default_factory=dict)

    def made(self) -> DockerContainer:
        """The same for testcontainers, not started. Raises DockerException without an engine."""
        container = DockerContainer(self.image, env=dict(self.environment))
        container.with_command(list(self.command))
        for inside, file in self.mounts.items():
            container.with_volume_mapping(str(file), inside, "ro")
        return container


def container_of(name: str, secrets: Path) -> Container:
    """One server of compose.yaml, with `secrets` in the place of deploy/secrets.

    Its named volumes are left out: what the servers store goes with the container.
    """
    service = _compose()["services"][name]
    mounts = {f"/run/secrets/{each}": secrets / each for each in service.get("secrets", ())}
    for volume in service["volumes"]:
        source, inside, *_ = volume.split(":")
        if source.startswith(COMPOSE_SECRETS):
            mounts[inside] = secrets / source.removeprefix(COMPOSE_SECRETS)
        elif source.startswith("."):
            mounts[inside] = ROOT / source
    return Container(
        service["image"], tuple(service["command"]), service.get("environment", {}), mounts
    )


@cache
def _compose() -> Mapping[str, Any]:
    compose: Mapping[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return compose


def docker_missing() -> str | None:
    """Why there can be no containers, as the reason of a skip that is allowed; None: there can."""
    tried = get_docker_host() or DEFAULT_ENGINE
    try:
        engine = DockerClient().client
        try:
            engine.ping()
        finally:
            engine.close()
    except DockerException as error:
        return (
            f"docker: --containers needs a Docker engine, and none answers at {tried} "
            f"({error}). Start one or set DOCKER_HOST; without --containers the tests start "
            "embedded servers"
        )
    return None
