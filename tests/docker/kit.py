"""compose.yaml, Dockerfile and the pages about them, run by a real Docker engine: `make docker`.

    python -m tests.docker.kit           build, up, cycles, books, ports, a hang, backup, restore
    python -m tests.docker.kit --long    kills, a full disk of NATS, an upgrade and back, TLS too

It runs on a copy of this clone. Each step prints its seconds and has a limit. Where no engine can
be had it prints `docker:` and the reason, and exits 0; what fails of the desk exits 1.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from libs.runtime.ports import choose_port
from tests.chaos.books import broken
from tests.docker import ports
from tests.docker.bases import python_base, server_bases
from tests.docker.engine import Engine, NoEngine, engine, run

ROOT = Path(__file__).parents[2]
PROJECT = "deskbus-kit"
OWNER = 1000
"""Whom the secrets belong to and the containers run as: no root."""
STRANGER = 4242
SERVERS = ("nats", "postgres")
CYCLES = 30
CYCLE = {"as_of": "2012-06-29", "universe": ["AAPL", "GOOG", "IBM", "MSFT"]}
WRONG_OWNER_LIMIT_S = 60
HUNG_LIMIT_S = 45
WELL_LIMIT_S = 90
FULL_TOLD_S = 15
FULL_CYCLE_S = 40
"""The time limit of cycles that meet a full Postgres."""
KILLED = (
    "orchestrator",
    "execution",
    "nats",
    "postgres",
    "console",
    "provisioner",
    "risk",
    "research",
)


def say(text: str) -> None:
    """A line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def step(name: str, limit_s: float = 600) -> Iterator[None]:
    """Say how many seconds a step took. Raises AssertionError where that is more than its limit."""
    start = time.monotonic()
    yield
    took = time.monotonic() - start
    say(f"docker: {took:6.1f} s  {name}")
    assert took <= limit_s, f"{name} took {took:.1f} s, and may take {limit_s}"


def until(what: str, holds: Callable[[], bool], limit_s: float) -> float:
    """Wait for what must come true; the seconds it took. Raises AssertionError."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < limit_s, f"{what}: not within {limit_s} s"
        time.sleep(0.5)
    return time.monotonic() - start


class Desk:
    """compose.yaml of a copy of this clone, on an engine."""

    def __init__(self, made_by: Engine, folder: Path) -> None:
        self.folder = folder
        taken: set[int] = set()
        self.nats_port, self.http_port = (choose_port(None, taken) for _ in range(2))
        self.env = {
            **made_by.env,
            "COMPOSE_PROJECT_NAME": PROJECT,
            "DESKBUS_NATS_URL": f"nats://127.0.0.1:{self.nats_port}",
            "DESKBUS_SECRETS_DIR": str(folder / "deploy/secrets"),
            "DESKBUS_DATA_DIR": str(folder / ".deskbus"),
            # `deskbus` in a page's lines is the one of this environment, with the copy's code.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(folder),
        }
        self.docker = made_by.docker
        self.disks: dict[str, Path] = {}
        """Small disks that hold volumes, by the volume's name."""

    def deskbus(self, *words: str, limit_s: float = 90) -> str:
        """What the command of the host prints; it must exit 0."""
        command = [sys.executable, "-m", "services.cli", *words]
        return run(command, limit_s, env=self.env, cwd=self.folder)

    def compose(self, *words: str, limit_s: float = 180, check: bool = True) -> str:
        """What `docker compose` prints."""
        command = ["docker", "compose", "--progress", "plain", *words]
        return run(command, limit_s, env=self.env, cwd=self.folder, check=check)

    def page(self, page: str, heading: str, **instead: str) -> list[str]:
        """The command blocks of a chapter, with some words replaced."""
        text = (ROOT / "docs" / page).read_text()
        (chapter,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
        blocks: list[str] = re.findall(r"^```\n(.*?)^```", chapter, re.DOTALL | re.MULTILINE)
        for word, other in instead.items():
            blocks = [block.replace(word, other) for block in blocks]
        return blocks

    def shell(self, block: str, limit_s: float = 180) -> str:
        """Run lines of a page as a person would, each of which must succeed."""
        return run(
            ["bash", "-euo", "pipefail", "-c", block], limit_s, env=self.env, cwd=self.folder
        )

    def own(self, owner: int = OWNER) -> None:
        """Give all files to this user."""
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, owner, owner)

    def image(self) -> str:
        """The tag that services run."""
        services = json.loads(self.compose("config", "--format", "json"))["services"]
        return str(services["risk"]["image"])

    def set_env(self, **settings: object) -> None:
        """Change lines of .env."""
        path = self.folder / ".env"
        text = path.read_text()
        for name, value in settings.items():
            text = re.sub(rf"^{name}=.*$\n?", "", text, flags=re.MULTILINE) + f"{name}={value}\n"
        path.write_text(text)

    def containers(self) -> dict[str, Any]:
        """What the engine says of each service's container that runs."""
        ids = self.compose("ps", "--quiet").split()
        if not ids:
            return {}
        inspected = json.loads(self.docker("inspect", *ids))
        return {each["Config"]["Labels"]["com.docker.compose.service"]: each for each in inspected}

    def health(self, name: str) -> str:
        """Of a service's container, by the engine."""
        return str(self.containers()[name]["State"]["Health"]["Status"])

    def http(self, path: str, body: object = None) -> Any:
        """An answer of the console."""
        token = (self.folder / "deploy/secrets/http.token").read_text().strip()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.http_port}/api/v1/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return json.load(answer)

    def all_well(self) -> bool:
        """Whether everything that should be up is healthy."""
        states = [each["State"] for each in self.containers().values()]
        return len(states) >= len(ports.SERVICES_HERE) + len(SERVERS) and all(
            each["Status"] == "running" and each.get("Health", {}).get("Status") == "healthy"
            for each in states
        )

    def cycles(self, number: int, limit_s: float = 120) -> None:
        """Ask for cycles over HTTP, and wait until all have ended well."""
        asked = 0
        before = self.count("completed")
        start = time.monotonic()
        while asked < number:
            try:
                self.http("cycles", CYCLE)
                asked += 1
            except OSError:
                assert time.monotonic() - start < limit_s, "the console takes no requests"
                time.sleep(0.5)
        until(f"{number} cycles", lambda: self.count("completed") >= before + number, limit_s)
        assert self.count("failed") == 0

    def count(self, status: str) -> int:
        """How many cycles have this status, by the tables."""
        statement = f"select count(*) from cycles where status = '{status}'"
        return int(asyncio.run(self._ask(lambda db: db.fetchval(statement))))

    def books(self) -> None:
        """Every promise of tests/chaos/books.py holds."""
        wrong = asyncio.run(self._ask(broken))
        assert not wrong, wrong

    async def _ask(self, question: Callable[[Any], Any]) -> Any:
        password = (self.folder / "deploy/secrets/postgres_postgres.password").read_text().strip()
        (net,) = self.containers()["postgres"]["NetworkSettings"]["Networks"].values()
        db = await asyncpg.connect(
            host=net["IPAddress"],
            user="postgres",
            password=password,
            database="deskbus",
            timeout=20,
        )
        try:
            return await question(db)
        finally:
            await db.close()


def main_process(container: Mapping[str, Any]) -> int:
    """The process that a container is there for: the child of its init."""
    init = int(container["State"]["Pid"])
    children = Path(f"/proc/{init}/task/{init}/children").read_text().split()
    return int(children[0]) if children else init


# --- the steps ------------------------------------------------------------------------------------


def set_up(desk: Desk) -> None:
    """The files as in docs/deployment.md, in a copy of this clone; volumes on their small disks."""
    files = run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], 30, cwd=ROOT
    )
    for name in files.split("\0"):
        if name and (ROOT / name).is_file():
            (desk.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, desk.folder / name)
    desk.deskbus("secrets", "init", "deploy/secrets")
    env = (desk.folder / ".env").read_text()
    assert f"DESKBUS_UID={os.getuid()}\n" in env, "it names the owner of the secrets"
    desk.own()
    desk.set_env(DESKBUS_NATS_PORT=desk.nats_port, DESKBUS_HTTP_PORT=desk.http_port)
    # Only this engine has no network of its own for builds.
    override: dict[str, Any] = {"services": {"migrations": {"build": {"network": "host"}}}}
    for name, disk in desk.disks.items():
        at = {"type": "none", "o": "bind", "device": str(disk)}
        override.setdefault("volumes", {})[name] = {"driver_opts": at}
    (desk.folder / "compose.override.yaml").write_text(json.dumps(override))


def build(desk: Desk) -> None:
    """The image. Raises NoEngine where the registry of packages is away."""
    try:
        desk.compose("build", limit_s=400)
    except AssertionError as error:
        with tempfile.TemporaryDirectory() as folder:
            fetch = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--no-deps",
                "--dest",
                folder,
                "iniconfig",
            ]
            if subprocess.run(fetch, capture_output=True, timeout=200, check=False).returncode:
                raise NoEngine("the registry of Python packages does not answer") from error
        raise


def image_holds_compiled_library(desk: Desk) -> None:
    """No process compiles the standard library again."""
    image = desk.image()
    program = "import asyncio, os; print(os.path.exists(asyncio.__cached__))"
    said = desk.docker("run", "--rm", "--network", "none", image, "python", "-c", program)
    assert said.strip() == "True", f"the standard library is not compiled: {said}"
    layers = desk.docker("history", "--no-trunc", "--format", "{{.Size}}\t{{.CreatedBy}}", image)
    for line in layers.splitlines():
        size, _, made = line.partition("\t")
        if "COPY" in made or "RUN" in made:
            say(f"docker:    layer {size:>8}  {made[:80]}")


def export(desk: Desk) -> None:
    """What is on record, from inside: Postgres is not published."""
    (desk.folder / "exports").mkdir()
    os.chown(desk.folder / "exports", OWNER, OWNER)
    for block in desk.page("deployment.md", "Export from containers"):
        desk.shell(block)
    assert (desk.folder / "exports/record/manifest.json").exists()


def wrong_owner(desk: Desk) -> None:
    """With another user than the secrets' owner `up` ends, and says what to do."""
    desk.set_env(DESKBUS_UID=STRANGER, DESKBUS_GID=STRANGER)
    with pytest.raises(AssertionError, match="didn't complete successfully"):
        desk.compose("up", "--detach", "--wait", limit_s=WRONG_OWNER_LIMIT_S)
    said = desk.compose("logs", "roles")
    assert "set DESKBUS_UID and DESKBUS_GID in .env" in said, said
    desk.set_env(DESKBUS_UID=OWNER, DESKBUS_GID=OWNER)


def up(desk: Desk) -> None:
    """All of it, healthy. Compose gives up at the first service that is unhealthy, as one is that
    starts slowly on a busy machine and is started again: what counts is that all are well."""
    try:
        desk.compose("up", "--detach", "--wait", limit_s=200)
    except AssertionError as error:
        if "is unhealthy" not in str(error):
            raise
        say("docker:    a service was unhealthy while it started")
    until("all containers are well", desk.all_well, WELL_LIMIT_S)


def decide(desk: Desk) -> None:
    """A decision by the command, and doctor finds nothing wrong."""
    said = desk.deskbus(
        "cycle",
        "request",
        "--as-of",
        CYCLE["as_of"],
        "--universe",
        ",".join(CYCLE["universe"]),
        "--wait",
    )
    assert "AAPL" in said, said
    desk.deskbus("doctor")


def first_cycle(desk: Desk) -> None:
    """The same, and HTTP answers nobody without the token."""
    decide(desk)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"http://127.0.0.1:{desk.http_port}/api/v1/cycles", timeout=10)


def scan(desk: Desk) -> None:
    """Each container reaches what the table says, and no more."""
    containers = desk.containers()
    reach, may = ports.reached(containers), ports.allowed()
    wrong = {
        name: {
            "too much": sorted(reach[name] - may[name]),
            "missing": sorted(may[name] - reach[name]),
        }
        for name in containers
        if reach[name] != may[name]
    }
    assert not wrong, wrong
    assert ports.ways_out(containers) == set(containers) - ports.NEVER_OUT


def cycles_and_books(desk: Desk) -> None:
    """CYCLES cycles, and every promise of the books."""
    desk.cycles(CYCLES)
    desk.books()


def hang(desk: Desk) -> None:
    """NATS, Postgres and a service that hang are ended and started again."""
    before = {name: each["State"]["StartedAt"] for name, each in desk.containers().items()}
    hung = ("nats", "postgres", "risk")
    for name in hung:
        os.kill(main_process(desk.containers()[name]), signal.SIGSTOP)

    def started_again() -> bool:
        now = desk.containers()
        return all(name in now and now[name]["State"]["StartedAt"] != before[name] for name in hung)

    took = until("hung containers are started again", started_again, HUNG_LIMIT_S)
    say(f"docker:    hung NATS, Postgres and risk were started again within {took:.0f} s")
    until("all is well again", desk.all_well, WELL_LIMIT_S)
    desk.cycles(1)


def backup(desk: Desk) -> None:
    """The lines of docs/backup.md, with the volumes gone in between."""
    before = desk.count("completed")
    save, *restore = desk.page("backup.md", "In containers")
    desk.shell(save)
    (dump,) = desk.folder.glob("*.dump")
    assert dump.stat().st_mode & 0o077 == 0
    desk.compose("down", "--volumes")
    for left in (each for disk in desk.disks.values() for each in disk.iterdir()):
        shutil.rmtree(left)  # Docker leaves what it did not make
    for block in restore:
        desk.shell(block)
    assert desk.count("completed") == before
    desk.cycles(2)
    desk.books()


def prometheus(desk: Desk) -> None:
    """It finds every service."""
    desk.compose("--profile", "watch", "up", "--detach", "--wait", "prometheus")
    networks = desk.containers()["prometheus"]["NetworkSettings"]["Networks"].values()
    address = next(iter(networks))["IPAddress"]

    def all_up() -> bool:
        url = f"http://{address}:9090/api/v1/targets?state=active"
        with urllib.request.urlopen(url, timeout=10) as answer:
            targets = json.load(answer)["data"]["activeTargets"]
        return len(targets) == len(ports.SERVICES_HERE) and all(
            t["health"] == "up" for t in targets
        )

    until("Prometheus scrapes every service", all_up, 60)


def down(desk: Desk) -> None:
    """Nothing is left behind but what was asked to be kept."""
    desk.compose("--profile", "watch", "down", "--volumes")
    kinds = {"container": ("ps", "--all"), "network": ("network", "ls"), "volume": ("volume", "ls")}
    for kind, words in kinds.items():
        left = desk.docker(
            *words, "--quiet", *(["--filter", "type=custom"] if kind == "network" else [])
        )
        assert not left.strip(), f"a {kind} is left: {left}"


def clear(made: Engine) -> None:
    """Remove what this run, or one that was ended from outside, left: the engine is ours alone."""
    if left := made.docker("ps", "--all", "--quiet").split():
        made.docker("rm", "--force", "--volumes", *left)
    made.docker("network", "prune", "--force")
    if volumes := made.docker("volume", "ls", "--quiet").split():
        made.docker("volume", "rm", "--force", *volumes)


# --- the long ones --------------------------------------------------------------------------------


@contextmanager
def small_ext4(at: Path, size_mb: int) -> Iterator[Path]:
    """A disk that can be filled. A tmpfs would go with its container."""
    at.mkdir()
    image = at.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(size_mb * 2**20)
    run(["mkfs.ext4", "-q", str(image)], 30)
    run(["mount", "-o", "loop", str(image), str(at)], 30)
    try:
        yield at
    finally:
        run(["umount", "--lazy", str(at)], 30)


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """While the block runs there is no room on it."""
    filling = disk / "filling"
    with filling.open("wb", buffering=0) as file:
        free = os.statvfs(disk)
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize * 9 // 10)
        file.seek(0, os.SEEK_END)
        with suppress(OSError):
            while True:
                file.write(b"0" * 65_536)
    try:
        yield
    finally:
        filling.unlink()


def kills(desk: Desk) -> None:
    """Every kind of container killed beside cycles: none is lost, none is done twice."""
    total = desk.count("completed")
    for name in KILLED:
        for _ in range(10):
            desk.http("cycles", CYCLE)
        # By its process: `docker kill` would be a stop that somebody asked for.
        os.kill(int(desk.containers()[name]["State"]["Pid"]), signal.SIGKILL)
        until("all is well again", desk.all_well, WELL_LIMIT_S * 2)
        total += 10
        until("its cycles", lambda: desk.count("completed") >= total, 180)  # noqa: B023
    assert desk.count("failed") == 0
    assert desk.count("completed") == total
    desk.books()


def full_nats(desk: Desk) -> None:
    """NATS without room stays up and routes a halt; with room it stores again by itself."""
    began = desk.containers()["nats"]["State"]["StartedAt"]
    with filled(desk.disks["nats"]):
        for _ in range(3):
            desk.http("cycles", CYCLE)
        until("a NATS without room is unhealthy", lambda: desk.health("nats") == "unhealthy", 90)
        for _ in range(10):
            desk.deskbus("halt", "--reason", "full disk")
            desk.deskbus("resume", "--reason", "it was tried")
            time.sleep(2)
        assert desk.containers()["nats"]["State"]["StartedAt"] == began, "restarted without room"
    well_again(desk)


def full_postgres(desk: Desk) -> None:
    """Postgres without room: readiness, containers and doctor say so, and no cycle fails by it."""
    (net,) = (
        net
        for name, net in desk.containers()["orchestrator"]["NetworkSettings"]["Networks"].items()
        if name.endswith("_bus")
    )

    def unready() -> bool:
        url = f"http://{net['IPAddress']}:{ports.METRICS}/readyz"
        try:
            urllib.request.urlopen(url, timeout=5)
        except urllib.error.HTTPError as error:
            return error.code == 503 and b"No space left" in error.read()
        return False

    for _ in range(5):
        desk.http("cycles", {**CYCLE, "timeout_s": FULL_CYCLE_S})
    with filled(desk.disks["postgres"]):
        start = time.monotonic()
        told = until("the orchestrator is not ready", unready, FULL_TOLD_S)
        until("its container is unhealthy", lambda: desk.health("orchestrator") == "unhealthy", 60)
        unhealthy = time.monotonic() - start
        say(f"docker:    full Postgres: not ready after {told:.1f} s, unhealthy {unhealthy:.1f} s")
        assert unhealthy <= FULL_TOLD_S
        with pytest.raises(AssertionError, match="No space left"):
            desk.deskbus("doctor")
        time.sleep(max(0.0, 1.5 * FULL_CYCLE_S - (time.monotonic() - start)))
    well_again(desk)


def well_again(desk: Desk) -> None:
    """With room again all that waited is done, and nothing is lost."""
    took = until("all is well again", desk.all_well, WELL_LIMIT_S)
    say(f"docker:    with room again all is well after {took:.0f} s")
    until("what waited is done", lambda: desk.count("running") == 0, 120)
    desk.cycles(3)
    desk.books()


def keep(desk: Desk) -> None:
    """`stop` and `start`, then `down` and `up`, keep all that was decided."""
    before = desk.count("completed")
    for words in ("stop", "start", "down", "up --detach --wait"):
        desk.compose(*words.split())
    until("all containers are well", desk.all_well, WELL_LIMIT_S)
    assert desk.count("completed") == before
    assert "service" in desk.compose("logs", "--since", "10m", "risk")
    desk.cycles(1)


def upgrade(desk: Desk) -> None:
    """The lines of docs/upgrading.md while cycles run, and the way back. A changed line of code
    brings a small layer, and the image before stays under its tag."""
    old, new = desk.image(), "deskbus:changed"
    before = _layers(desk, old)
    (block,) = desk.page("upgrading.md", "The order", **{"deskbus:NEW": new})
    (desk.folder / "services/__init__.py").write_text("# changed\n")
    with ThreadPoolExecutor(1) as thread:
        cycles = thread.submit(desk.cycles, CYCLES, 300)
        _run_lines(desk, block)
        cycles.result()
    until("all containers are well", desk.all_well, WELL_LIMIT_S)
    changed = [layer for layer in _layers(desk, new) if layer not in before]
    assert 1 <= len(changed) <= 2, f"{len(changed)} layers changed: code and health check are two"
    assert _layers(desk, old) == before
    assert {each["Config"]["Image"] for each in _services(desk)} == {new}

    _run_lines(desk, block.replace(new, old).replace("docker compose build && ", ""))
    until("all containers are well", desk.all_well, WELL_LIMIT_S)
    assert {each["Config"]["Image"] for each in _services(desk)} == {old}
    desk.cycles(2)
    desk.books()


def _layers(desk: Desk, image: str) -> list[str]:
    found: list[str] = json.loads(desk.docker("inspect", image))[0]["RootFS"]["Layers"]
    return found


def _services(desk: Desk) -> list[Any]:
    return [each for name, each in desk.containers().items() if name in ports.SERVICES_HERE]


def _run_lines(desk: Desk, block: str) -> None:
    """A page's lines, one after the other. Its person owns the secrets; this process is root."""
    for line in block.splitlines():
        makes_secrets = line.startswith("deskbus secrets")
        if makes_secrets:
            desk.own(os.getuid())
        desk.shell(line, limit_s=400)
        if makes_secrets:
            desk.own()
            desk.set_env(DESKBUS_UID=OWNER, DESKBUS_GID=OWNER)


def tls(desk: Desk) -> None:
    """The lines of docs/tls.md: everything speaks TLS, and nothing is said in plain."""
    with_override = "--file compose.override.yaml --file deploy/compose.tls.yaml"
    (block,) = desk.page(
        "tls.md",
        "Certificates of your own",
        **{"--file deploy/compose.tls.yaml": with_override, ":8000": f":{desk.http_port}"},
    )
    _run_lines(desk, block)
    plain = desk.env["DESKBUS_NATS_URL"]
    desk.env["DESKBUS_NATS_URL"] = plain.replace("nats://", "tls://")
    decide(desk)
    status = [sys.executable, "-m", "services.cli", "status"]
    env = {**desk.env, "DESKBUS_NATS_URL": plain}
    assert "with tls://" in run(status, 60, env=env, cwd=desk.folder, check=False)


def idle(desk: Desk) -> None:
    """Say what a desk takes that does nothing."""
    used = [_used(desk)]
    time.sleep(30)
    used.append(_used(desk))
    cpu_s = used[1][0] - used[0][0]
    say(f"docker:    idle: {cpu_s / 30:.1%} of a core, {used[1][1] / 2**20:,.0f} MiB in all")


def _used(desk: Desk) -> tuple[float, int]:
    """Seconds of CPU since their start and bytes of memory of all containers, by the engine."""
    cpu, memory = 0.0, 0
    socket_path = desk.env["DOCKER_HOST"].removeprefix("unix://")

    def asked(container: str) -> Any:
        url = f"http://engine/containers/{container}/stats?stream=false"
        return json.loads(run(["curl", "--silent", "--unix-socket", socket_path, url], 20))

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(asked, [each["Id"] for each in desk.containers().values()]))
    for stats in answers:
        cpu += stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9
        memory += stats["memory_stats"]["usage"] - stats["memory_stats"]["stats"].get("cache", 0)
    return cpu, memory


SHORT = (
    (wrong_owner, WRONG_OWNER_LIMIT_S + 30),
    (up, 240),
    (first_cycle, 60),
    (scan, 60),
    (export, 60),
    (cycles_and_books, 120),
    (hang, 200),
)
LONG = (
    (idle, 90),
    (keep, 300),
    (upgrade, 900),
    (full_nats, 400),
    (full_postgres, 400),
    (kills, 1500),
)
DISKS_MB = {"nats": 128, "postgres": 700}
"""Sizes of the small disks, by volume."""
LAST = ((backup, 180), (prometheus, 180))
LONG_LAST = ((tls, 300),)
SUITES = ("console", "execution", "desk")
"""Those that run on containers too; the first also in the short form."""
SUITES_LIMIT_S = 1_500


@contextmanager
def on_containers(made: Engine, suites: Sequence[str]) -> Iterator[None]:
    """Suites of integration tests, with NATS and Postgres in containers, beside the block; it ends
    when they have passed. Most of the block is waiting, so they take what it leaves of the CPU."""
    pytest_ = ["-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--containers"]
    folders = [f"tests/integration/{suite}" for suite in suites]
    command = ["nice", sys.executable, *pytest_, "-m", "not soak", *folders]
    env = {**made.env, "TESTCONTAINERS_RYUK_DISABLED": "true"}  # its image comes from a registry
    start = time.monotonic()
    with (
        tempfile.TemporaryFile("w+") as printed,
        subprocess.Popen(
            command, env={**os.environ, **env}, cwd=ROOT, stdout=printed, stderr=subprocess.STDOUT
        ) as tests,
    ):
        try:
            yield
            tests.wait(SUITES_LIMIT_S)
        finally:
            tests.terminate()
            printed.seek(0)
        assert tests.returncode == 0, printed.read()[-6000:]
    say(f"docker: {time.monotonic() - start:6.1f} s  tests on containers, beside these steps")


def whole(long: bool) -> None:
    """All steps. Raises NoEngine, and AssertionError where the desk breaks a promise."""
    start = time.monotonic()
    with (
        engine(said=say) as made,
        tempfile.TemporaryDirectory(prefix="deskbus-kit-") as folder,
        ThreadPoolExecutor(1) as thread,
        ExitStack() as stack,
    ):
        say(f"docker: {time.monotonic() - start:6.1f} s  engine")
        servers = thread.submit(server_bases, made)
        with step("base image of Python", 400):
            version = python_base(made)
        desk = Desk(made, Path(folder) / "desk")
        desk.folder.mkdir()
        Path(folder).chmod(0o755)
        for name, size_mb in DISKS_MB.items() if long else ():
            disk = small_ext4(Path(folder) / name, size_mb)
            desk.disks[name] = stack.enter_context(disk)
        with step("set up"):
            set_up(desk)
            clear(made)
        try:
            with step("build", 420):
                build(desk)
            image_holds_compiled_library(desk)
            with step("base images of the servers, beside it", 400):
                say(f"docker:    {version}, {servers.result()}")
            steps = (*SHORT, *LONG, *LAST, *LONG_LAST) if long else (*SHORT, *LAST)
            with on_containers(made, SUITES if long else SUITES[:1]):
                for each, limit_s in steps:
                    with step(each.__name__.replace("_", " "), limit_s):
                        each(desk)
            with step("down", 60):
                down(desk)
        except AssertionError:
            say(desk.compose("ps", "--all", check=False))
            say(desk.compose("logs", "--tail", "15", check=False)[-12_000:])
            raise
        finally:
            clear(made)
            desk.docker("image", "prune", "--force")
            desk.docker("builder", "prune", "--force", "--filter", "until=336h")
    load = os.getloadavg()[2]
    say(f"docker: {time.monotonic() - start:6.1f} s  in all: passed; load average {load:.1f}")


def main(argv: Sequence[str] | None = None) -> None:
    """Run it; exit 1 where the desk fails."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the engine is ended too
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="kills, a full disk and layers too")
    try:
        whole(parser.parse_args(argv).long)
    except NoEngine as reason:
        say(f"docker: {reason}: skipped")
    except AssertionError as error:
        sys.exit(f"docker: failed: {error}")


if __name__ == "__main__":
    main()
