"""A desk on several machines: three NATS nodes, a Postgres with a synchronous standby.

All on loopback, and otherwise as docs/deployment.md says: streams in three copies (R3), TLS between
clients and nodes and among the nodes, one address list for clients. Nothing is started again by
itself: a machine that is `down` stays so until the test brings it back.

    python -m tests.chaos.machines --cycles 600 [--seed 7] [--keep] [--namespaces]

kills one node after the other and promotes the standby, again and again, and tells how long the
desk stood still; exits 1 where a promise was broken.

With `--namespaces` the machines are three hosts (tests.chaos.hosts), with a node each, Postgres on
the first two, and two processes of each service spread over all; the client is on none of them. In
turn each host is cut off and comes back; the primary's host is cut off and the standby promoted;
one is slow and loses packets; a node and the primary are killed.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import psutil
from pydantic import SecretStr

from libs.bus.permissions import permissions
from libs.bus.streams import COMMAND_STREAM
from libs.keys.certificates import ensure_certificates
from libs.keys.credentials import ensure_secrets, postgres_password
from libs.keys.nats_config import NatsPlace
from libs.postgres.pool import OWNER_ROLE, ROLES, dsn_for
from libs.runtime.guarded import Identity, guarded_argv
from libs.runtime.ports import LOOPBACK, choose_port
from libs.servers.binaries import PostgresPrograms, nats_program, postgres_programs
from libs.servers.embedded import DATABASE
from libs.servers.nats_server import STARTED
from libs.servers.placement import hand_over, reachable_root, server_identity
from libs.servers.postgres_roles import PsqlLogin, ensure_roles, run_sql
from libs.servers.postgres_server import ENVIRONMENT, SETTINGS, SUPERUSER, prepare_postgres
from libs.telemetry.logging import configure_logging
from services.provisioner.secrets import SERVERS, nats_conf
from tests.chaos.desk import POSTGRES_GONE, ROLES_OF, ChaosDesk, Database, desk_of, tables
from tests.chaos.faults import Fault, Kind
from tests.chaos.hosts import HERE, Host, Network, network_of, problem
from tests.chaos.soak import CHAOS_SETTINGS, Outcome, run_on, table
from tests.fakes.chaos_workflow import COMMANDS
from tests.flat_settings import settings_with
from tests.open_folder import open_folder

NODES = 3
UP_TIMEOUT_S = 60.0
POLL_S = 0.02
NODE_DOWN_S = 0.5
CARRIED_ON = 8
"""Cycles that must end while a node is down."""
STANDSTILL_S_MAX = 40.0
CUT_STANDSTILL_S_MAX = 150.0
"""After a cut nothing is refused: what was asked of that host is waited for."""
PROMOTED_AFTER_S = 1.0
"""How long nobody notices that the primary is gone."""
ANY = "*"
"""Which standbys commits wait for, as in deploy/kubernetes/cluster/standby.conf."""
FOLLOW = Path(__file__).parents[2] / "deploy/kubernetes/cluster/follow.sh"
CYCLES_A_FAULT = 20
CUT_S = (5.0, 15.0, 30.0)
SLOW_S = 15.0
SPREAD = {**dict.fromkeys(ROLES_OF, 2), "provisioner": 1}
"""Processes of the desk on several hosts, by role."""
TRADERS = ("sentiment", "research", "trader", "risk", "execution", "assessment", "exit_signal")
REAL_SPREAD = {**dict.fromkeys(("orchestrator", *TRADERS), 2), "provisioner": 1}
"""The same of the shipped services that decide, order and sell."""


@dataclass
class Machine:
    """One server process; killed, it stays down until it is started again."""

    name: str
    argv: Sequence[str]
    log_path: Path
    run_as: Identity | None
    is_up: Callable[[], Awaitable[bool]]
    host: Host = HERE
    process: asyncio.subprocess.Process | None = field(default=None, repr=False)

    async def start(self) -> None:
        """Start it and wait until it can be used."""
        with self.log_path.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.host.words,
                *guarded_argv(self.argv, signal.SIGKILL, self.run_as),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=ENVIRONMENT,
                cwd=self.log_path.parent,
                start_new_session=True,
            )
        async with asyncio.timeout(UP_TIMEOUT_S):
            while not await self.is_up():
                if self.process.returncode is not None:
                    raise AssertionError(f"{self.name} ended: {self.log_path.read_text()[-2000:]}")
                await asyncio.sleep(POLL_S)

    async def kill(self) -> None:
        """kill -9 of the whole tree: the machine has no power."""
        if self.process is None or self.process.returncode is not None:
            return
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.process.pid)
            for each in (root, *root.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    each.kill()
        await self.process.wait()


@dataclass(frozen=True)
class Node:
    """A NATS node and where it is watched."""

    machine: Machine
    port: int
    monitor_port: int

    def page(self, path: str) -> bytes | None:
        """One page of its monitoring; None where it does not answer so."""
        return _page(f"http://{self.machine.host.address}:{self.monitor_port}/{path}")


@dataclass
class Databases:
    """The primary, and the standby that takes part in every commit."""

    machines: list[Machine]
    ports: Sequence[int]
    folders: Sequence[Path]
    programs: PostgresPrograms
    password: str = field(repr=False)
    primary: int = 0

    def login(self, number: int) -> PsqlLogin:
        """The superuser on one of the two."""
        return PsqlLogin(
            self.programs.bindir / "psql",
            self.ports[number],
            SUPERUSER,
            self.password,
            host=self.machines[number].host.address,
        )

    async def has_standby(self) -> bool:
        """Whether no commit is acknowledged without the standby."""
        told = await run_sql(self.login(self.primary), "select sync_state from pg_stat_replication")
        return told == "sync"

    async def promote(self) -> None:
        """Make the standby the primary, which answers without a standby of its own."""
        self.primary = 1 - self.primary
        await run_sql(
            self.login(self.primary),
            "alter system set synchronous_standby_names = '';\n"
            "select pg_reload_conf(); select pg_promote(true);",
        )

    async def join_standby(self) -> None:
        """Let the other machine come back, which finds that this one is the primary; from then on
        commits wait for it."""
        other, primary = 1 - self.primary, self.login(self.primary)
        machine = self.machines[other]
        await following(
            self.programs, primary, f"postgres-{other}", self.folders[other], machine.run_as
        )
        await machine.start()
        await run_sql(
            primary,
            f"alter system set synchronous_standby_names = '{ANY}'; select pg_reload_conf();",
        )
        async with asyncio.timeout(UP_TIMEOUT_S):
            while not await self.has_standby():  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)


async def following(
    programs: PostgresPrograms, primary: PsqlLogin, name: str, folder: Path, owner: Identity | None
) -> None:
    """A standby's folder, by the script that deploy/kubernetes runs before Postgres."""
    password = folder.with_suffix(".password")
    password.write_text(primary.password)
    process = await asyncio.create_subprocess_exec(
        "sh",
        str(FOLLOW),
        env={
            **ENVIRONMENT,
            "PATH": f"{programs.bindir}:{ENVIRONMENT['PATH']}",
            "PGDATA": str(folder),
            "PGPORT": str(primary.port),
            "POD_NAME": name,
            "OTHER_HOST": primary.host,
            "PASSWORD_FILE": str(password),
        },
    )
    assert await process.wait() == 0, "see above"
    if owner is not None:
        _give(folder, owner)


def _give(folder: Path, owner: Identity) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner.uid, owner.gid, follow_symlinks=False)


@dataclass
class Machines:
    """All servers of the desk."""

    secrets_dir: Path
    nodes: Sequence[Node]
    databases: Databases
    network: Network | None = None

    @property
    def nats_url(self) -> str:
        """Every node, for clients."""
        return ",".join(f"tls://{node.machine.host.address}:{node.port}" for node in self.nodes)

    @property
    def postgres_address(self) -> str:
        """Both servers; clients take whichever is the primary."""
        pairs = zip(self.databases.machines, self.databases.ports, strict=True)
        hosts = ",".join(f"{machine.host.address}:{port}" for machine, port in pairs)
        return f"postgresql://{hosts}/{DATABASE}?target_session_attrs=read-write"

    @property
    def primary_address(self) -> str:
        """The server that is the primary, for the test: asyncpg never comes to the second of a list
        whose first says nothing."""
        machine = self.databases.machines[self.databases.primary]
        port = self.databases.ports[self.databases.primary]
        return f"postgresql://{machine.host.address}:{port}/{DATABASE}"


@dataclass
class SeveralDesk(ChaosDesk):
    """A desk on them. Machines: `node-1` to `node-3`, `leader` (the node that leads the stream of
    commands), and `primary`. Hosts: `host-1` to `host-3`, and `primary` for its own."""

    fallen: Machine | None = None
    since: float = 0.0

    async def down(self, fault: Fault) -> None:
        """kill -9; a host is cut off, or its cable made bad."""
        self.since = time.time()
        if fault.kind is Kind.CUT:
            self.servers.network.cut(self._host(fault.target))
        elif fault.kind is Kind.SLOW:
            self.servers.network.slow(self._host(fault.target))
        else:
            self.fallen = await self._machine(fault.target)
            await self.fallen.kill()

    async def up(self, fault: Fault) -> None:
        """Start a node again, once the desk has carried on without it; for the primary its standby
        is promoted. A host gets its cable back."""
        if fault.kind is Kind.SLOW:
            self.servers.network.mend(self._host(fault.target))
        elif fault.kind is Kind.CUT:
            await self._join(fault.target)
        elif fault.target == "primary":
            await self.servers.databases.promote()
        else:
            await self._carried_on(time.time())
            assert self.fallen is not None
            await self.fallen.start()

    async def _join(self, name: str) -> None:
        """Let a host come back. Without Postgres on it, cycles have ended meanwhile; the primary's
        own comes back without its Postgres, once the desk has carried on with the standby."""
        databases: Databases = self.servers.databases
        host = self._host(name)
        if name == "primary":
            old = databases.machines[databases.primary]
            await databases.promote()
            await self._carried_on(time.time(), CUT_STANDSTILL_S_MAX)
            await old.kill()
        elif all(machine.host != host for machine in databases.machines):
            await self._carried_on(self.since, CUT_STANDSTILL_S_MAX)
        self.servers.network.join(host)

    def ended(self) -> list[str]:
        """None: a process that ends is started again, and says so in its log."""
        return []

    def _host(self, name: str) -> Host:
        databases: Databases = self.servers.databases
        if name == "primary":
            return databases.machines[databases.primary].host
        return next(host for host in self.servers.network.hosts if host.name == name)

    async def _carried_on(self, since: float, within_s: float = STANDSTILL_S_MAX) -> None:
        """Wait until cycles have ended since then, with that machine away: none does where streams
        are gone."""
        async with asyncio.timeout(within_s), self.database() as db:
            while (  # noqa: ASYNC110
                await db.fetchval(
                    "select count(*) from cycles where ended_at > to_timestamp($1)", since
                )
                < CARRIED_ON
            ):
                await asyncio.sleep(0.1)

    async def _machine(self, name: str) -> Machine:
        machines: Machines = self.servers
        if name == "primary":
            return machines.databases.machines[machines.databases.primary]
        if name == "leader":
            name = self._leader()
        return next(node.machine for node in machines.nodes if node.machine.name == name)

    def _leader(self) -> str:
        """The node that leads the stream of commands, as one of them tells."""
        page = self.servers.nodes[0].page("jsz?streams=true")
        assert page is not None
        for account in json.loads(page)["account_details"]:
            for stream in account["stream_detail"]:
                if stream["name"] == COMMAND_STREAM:
                    return str(stream["cluster"]["leader"])
        raise AssertionError(page)

    async def whole(self) -> None:
        """Every process is connected, every node has caught up, and the primary has a standby."""
        await super().whole()
        while not all(node.page("healthz") for node in self.servers.nodes):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        if not await self.servers.databases.has_standby():
            await self.servers.databases.join_standby()

    def connections(self) -> list[tuple[str, int]]:
        """The clients of all nodes."""
        pages = [node.page("connz?limit=1024") for node in self.servers.nodes]
        return [
            (each.get("name", ""), each["out_msgs"])
            for page in pages
            if page is not None
            for each in json.loads(page)["connections"]
        ]

    async def _connected(self, role: str) -> Database:
        while True:
            dsn = dsn_for(self.servers.primary_address, role, self.servers.secrets_dir)
            with suppress(*POSTGRES_GONE):
                return await asyncpg.connect(dsn, timeout=5)
            await asyncio.sleep(0.1)


@asynccontextmanager
async def machines_in(
    folder: Path, network: Network | None = None, *, real: bool = False
) -> AsyncIterator[Machines]:
    """All servers, up, on the hosts of a network if there is one, for a `real` desk or a made-up
    one; `folder` is one that every user may enter."""
    hosts = network.hosts if network else [HERE] * NODES
    secrets = folder / "secrets"
    allowed = {**permissions(), **({} if real else permissions(COMMANDS))}
    ensure_secrets(secrets, nats_identities=allowed, postgres_roles=(SUPERUSER, *ROLES))
    addresses = [host.address for host in hosts]
    ensure_certificates(secrets, {name: (*names, *addresses) for name, names in SERVERS.items()})
    run_as = server_identity()
    async with AsyncExitStack() as stack:
        ports: set[int] = set()
        routes = [_port(ports) for _ in range(NODES)]
        nodes = [_node(folder, secrets, n, routes, ports, allowed, hosts) for n in range(NODES)]
        databases = await _databases(folder, secrets, run_as, ports, hosts)
        if network:
            with (databases.folders[0] / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all,replication all {network.subnet} scram-sha-256\n")
        for machine in (*databases.machines, *(node.machine for node in nodes)):
            stack.push_async_callback(machine.kill)
        await asyncio.gather(*(node.machine.start() for node in nodes))
        await databases.machines[0].start()
        passwords = {role: postgres_password(secrets, role) for role in ROLES}
        await ensure_roles(
            databases.login(0), passwords=passwords, database=DATABASE, owner=OWNER_ROLE
        )
        await databases.join_standby()
        yield Machines(secrets, nodes, databases, network)


def _port(taken: set[int]) -> int:
    port = choose_port(None, taken)
    taken.add(port)
    return port


def _node(
    folder: Path,
    secrets: Path,
    number: int,
    routes: Sequence[int],
    ports: set[int],
    allowed: Mapping[str, object],
    hosts: Sequence[Host],
) -> Node:
    name, host = f"node-{number + 1}", hosts[number]
    port, monitor_port = _port(ports), _port(ports)
    place = NatsPlace(
        host.address,
        port,
        monitor_port,
        folder / name,
        secrets,
        tuple(f"{each.address}:{route}" for each, route in zip(hosts, routes, strict=True)),
        routes[number],
        name,
    )
    config = folder / f"{name}.conf"
    text = nats_conf(secrets, place, allowed)
    monitor = f"{host.address}:{monitor_port}"
    config.write_text(text.replace(f"{LOOPBACK}:{monitor_port}", monitor))
    argv = [str(nats_program(None, lambda: folder)), "--config", str(config)]

    async def is_up() -> bool:
        return _page(f"http://{monitor}{STARTED}") is not None

    machine = Machine(name, argv, folder / f"{name}.log", None, is_up, host)
    return Node(machine, port, monitor_port)


def _page(url: str) -> bytes | None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with suppress(OSError), direct.open(url, timeout=1.0) as answer:
        return bytes(answer.read())
    return None


async def _databases(
    folder: Path,
    secrets: Path,
    run_as: Identity | None,
    ports: set[int],
    hosts: Sequence[Host],
) -> Databases:
    programs = postgres_programs(None, run_as, lambda: reachable_root(folder, run_as))
    password = postgres_password(secrets, SUPERUSER)
    numbers = [_port(ports), _port(ports)]
    first = await prepare_postgres(programs, folder, password, folder / "initdb.log", run_as)
    second = hand_over(folder / "second", run_as) / "cluster"
    folders = [first, second]
    machines = [
        postgres_machine(folder, programs, cluster, port, run_as, host)
        for cluster, port, host in zip(folders, numbers, hosts, strict=False)
    ]
    return Databases(machines, numbers, folders, programs, password)


def postgres_machine(
    folder: Path,
    programs: PostgresPrograms,
    cluster: Path,
    port: int,
    run_as: Identity | None,
    host: Host = HERE,
) -> Machine:
    """A Postgres, not started yet."""
    argv = [str(programs.server_bindir / "postgres"), "-D", str(cluster), "-p", str(port)]
    for name, value in {**SETTINGS, "listen_addresses": host.address}.items():
        argv += ["-c", f"{name}={value}"]
    pid_file = cluster / "postmaster.pid"

    async def is_up() -> bool:
        with suppress(FileNotFoundError, IndexError):
            return pid_file.read_text().splitlines()[7].strip() == "ready"
        return False

    return Machine(f"postgres-{port}", argv, folder / f"postgres-{port}.log", run_as, is_up, host)


@asynccontextmanager
async def several_desk(
    folder: Path, given: Mapping[str, object], network: Network | None = None, *, real: bool = False
) -> AsyncIterator[SeveralDesk]:
    """The made-up desk, or the `real` one, on several machines; spread over the hosts of a network
    if there is one."""
    async with machines_in(folder, network, real=real) as machines:
        settings = settings_with(
            nats_url=machines.nats_url,
            nats_replicas=NODES,
            postgres_dsn=SecretStr(machines.postgres_address),
            secrets_dir=machines.secrets_dir,
            data_dir=folder / "desk",
            **given,
        )
        (folder / "desk" / "logs").mkdir(parents=True)
        await tables(dsn_for(machines.postgres_address, OWNER_ROLE, machines.secrets_dir))
        roles = REAL_SPREAD if real else SPREAD
        spread = (roles, network.hosts, network.address) if network else ()
        async with desk_of(SeveralDesk, settings, machines, folder, *spread, real=real) as desk:
            await asyncio.wait_for(desk.whole(), UP_TIMEOUT_S)
            yield desk


def outages(seed: int, rounds: int) -> list[Fault]:
    """Each node once a round, in some order, and the primary."""
    rng = random.Random(seed)
    faults = []
    for _ in range(rounds):
        names = [f"node-{number}" for number in range(1, NODES + 1)]
        rng.shuffle(names)
        faults += [outage(name) for name in (*names, "primary")]
    return faults


def cuts(seed: int, rounds: int) -> list[Fault]:
    """For a desk on hosts: what can happen to them, once a round in some order."""
    rng = random.Random(seed)
    faults = []
    for _ in range(rounds):
        names = [*(f"host-{number}" for number in range(1, NODES + 1)), "primary"]
        one = [Fault(Kind.CUT, name, 0.3, rng.choice(CUT_S)) for name in names]
        one.append(Fault(Kind.SLOW, rng.choice(names), 0.3, SLOW_S))
        one += [outage("leader"), outage("primary")]
        rng.shuffle(one)
        faults += one
    return faults


def outage(name: str) -> Fault:
    """One machine without power for a while."""
    lasts_s = PROMOTED_AFTER_S if name == "primary" else NODE_DOWN_S
    return Fault(Kind.DOWN, name, 0.3, lasts_s)


async def survive(
    cycles: int,
    seed: int,
    folder: Path,
    schedule: Sequence[Fault],
    network: Network | None = None,
) -> Outcome:
    """Bring the machines up below `folder`, take them down one after the other, judge."""
    async with several_desk(folder, CHAOS_SETTINGS, network) as desk:
        return await run_on(desk, cycles, seed, schedule)


def main() -> None:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.machines")
    parser.add_argument("--cycles", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--namespaces", action="store_true")
    given = parser.parse_args()
    configure_logging("error")
    if given.namespaces and (why := problem(slow=True)):
        sys.exit(why)
    faults_of = cuts if given.namespaces else outages
    a_round = len(faults_of(given.seed, 1))
    schedule = faults_of(given.seed, max(given.cycles // CYCLES_A_FAULT // a_round, 1))
    networks = network_of(NODES) if given.namespaces else nullcontext()
    with open_folder("deskbus-machines-", keep=given.keep) as folder, networks as network:
        outcome = asyncio.run(survive(given.cycles, given.seed, folder, schedule, network))
    sys.stdout.write(f"{table(outcome)}\n")
    for each in outcome.broken:
        sys.stderr.write(f"BROKEN: {each}\n")
    sys.exit(1 if outcome.broken else 0)


if __name__ == "__main__":
    main()
