"""compose.yaml, Dockerfile and the pages about them, run by a real Docker engine: `make docker`.

    python -m tests.docker.kit           build, up, cycles, books, ports, a hang, backup, restore
    python -m tests.docker.kit --long    kills beside cycles, a full disk of NATS, layers too

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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from libs.runtime.ports import choose_port
from tests.chaos.books import broken
from tests.docker import ports
from tests.docker.bases import ensure_bases
from tests.docker.engine import Engine, NoEngine, engine, run

ROOT = Path(__file__).parents[2]
PROJECT = "deskbus-kit"
OWNER = 1000
"""Whom the secrets belong to and the containers run as: no root."""
STRANGER = 4242
CYCLES = 30
CYCLE = {"as_of": "2012-06-29", "universe": ["AAPL", "GOOG", "IBM", "MSFT"]}
WRONG_OWNER_LIMIT_S = 60
HUNG_LIMIT_S = 45
WELL_LIMIT_S = 90
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
        }
        self.docker = made_by.docker

    def deskbus(self, *words: str, limit_s: float = 90) -> str:
        """What the command of the host prints; it must exit 0."""
        command = [sys.executable, "-m", "services.cli", *words]
        return run(
            command, limit_s, env={**self.env, "PYTHONPATH": str(self.folder)}, cwd=self.folder
        )

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
        return len(states) >= 17 and all(
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


def set_up(desk: Desk, nats_disk: Path | None) -> None:
    """The files as in docs/deployment.md, in a copy of this clone; NATS on a disk of its own."""
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
    for path in (desk.folder, *desk.folder.rglob("*")):
        os.chown(path, OWNER, OWNER)
    desk.set_env(DESKBUS_NATS_PORT=desk.nats_port, DESKBUS_HTTP_PORT=desk.http_port)
    # Only this engine has no network of its own for builds.
    override: dict[str, Any] = {"services": {"migrations": {"build": {"network": "host"}}}}
    if nats_disk:
        at = {"type": "none", "o": "bind", "device": str(nats_disk)}
        override["volumes"] = {"nats": {"driver_opts": at}}
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
    image = json.loads(desk.compose("config", "--format", "json"))["services"]["risk"]["image"]
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
        desk.compose("up", "--detach", "--wait", limit_s=150)
    except AssertionError as error:
        if "is unhealthy" not in str(error):
            raise
        say("docker:    a service was unhealthy while it started")
    until("all containers are well", desk.all_well, WELL_LIMIT_S)


def first_cycle(desk: Desk) -> None:
    """A decision by the command, and doctor finds nothing wrong."""
    said = desk.deskbus(
        *(
            "cycle",
            "request",
            "--as-of",
            CYCLE["as_of"],
            "--universe",
            ",".join(CYCLE["universe"]),
            "--wait",
        )
    )
    assert "AAPL" in said, said
    desk.deskbus("doctor")
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


# --- the long ones --------------------------------------------------------------------------------


@contextmanager
def small_ext4(at: Path) -> Iterator[Path]:
    """A disk of 128 MB that can be filled. A tmpfs would go with its container."""
    at.mkdir()
    image = at.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(128 * 2**20)
    run(["mkfs.ext4", "-q", str(image)], 30)
    run(["mount", "-o", "loop", str(image), str(at)], 30)
    try:
        yield at
    finally:
        run(["umount", "--lazy", str(at)], 30)


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


def full_disk(desk: Desk) -> None:
    """NATS without room stays up and routes a halt; with room it stores again by itself."""
    began = desk.containers()["nats"]["State"]["StartedAt"]
    (data,) = (
        m["Source"] for m in desk.containers()["nats"]["Mounts"] if m["Destination"] == "/data"
    )
    assert os.path.ismount(data)
    filling = Path(data) / "filling"
    with filling.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"0" * 65_536)
        except OSError:
            pass
    for _ in range(3):
        desk.http("cycles", CYCLE)

    def nats_unwell() -> bool:
        return desk.containers()["nats"]["State"]["Health"]["Status"] == "unhealthy"

    until("a NATS without room is unhealthy", nats_unwell, 90)
    for _ in range(10):
        desk.deskbus("halt", "--reason", "full disk")
        desk.deskbus("resume", "--reason", "it was tried")
        time.sleep(2)
    assert desk.containers()["nats"]["State"]["StartedAt"] == began, "it was restarted without room"
    filling.unlink()
    took = until("all is well again", desk.all_well, WELL_LIMIT_S)
    say(f"docker:    with room again all is well after {took:.0f} s")
    until("what waited is done", lambda: desk.count("running") == 0, 120)
    desk.cycles(3)
    desk.books()


def layers(desk: Desk) -> None:
    """A changed line brings a small layer, and the image before stays under its tag."""
    image = json.loads(desk.compose("config", "--format", "json"))["services"]["risk"]["image"]

    def kept(name: str) -> list[str]:
        found: list[str] = json.loads(desk.docker("inspect", name))[0]["RootFS"]["Layers"]
        return found

    before = kept(image)
    line = desk.folder / "services/__init__.py"
    line.write_text("# changed\n")
    desk.set_env(DESKBUS_IMAGE="deskbus:changed")
    desk.compose("build", limit_s=400)
    changed = [now for now in kept("deskbus:changed") if now not in before]
    assert kept(image) == before
    assert 1 <= len(changed) <= 2, f"{len(changed)} layers changed: code and health check are two"
    desk.set_env(DESKBUS_IMAGE=image)


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
    (up, 150),
    (first_cycle, 60),
    (scan, 60),
    (export, 60),
)
SUITES = ("console", "execution", "desk")
"""Those that run on containers too; the first also in the short form."""
LONG = ((idle, 90), (layers, 400), (full_disk, 400), (kills, 1500))


def on_containers(made: Engine, suite: str) -> None:
    """A suite of integration tests, with NATS and Postgres in containers."""
    pytest_ = ["-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--containers"]
    command = [sys.executable, *pytest_, "-m", "not soak", f"tests/integration/{suite}"]
    env = {**made.env, "TESTCONTAINERS_RYUK_DISABLED": "true"}  # its image comes from a registry
    run(command, 1_500, env=env, cwd=ROOT)


def whole(long: bool) -> None:
    """All steps. Raises NoEngine, and AssertionError where the desk breaks a promise."""
    start = time.monotonic()
    with (
        engine(said=say) as made,
        tempfile.TemporaryDirectory(prefix="deskbus-kit-") as folder,
        ExitStack() as stack,
    ):
        say(f"docker: {time.monotonic() - start:6.1f} s  engine")
        with step("base images", 400):
            versions = ensure_bases(made)
        say("docker:    " + ", ".join(versions.split("\n")))
        desk = Desk(made, Path(folder) / "desk")
        desk.folder.mkdir()
        Path(folder).chmod(0o755)
        disk = stack.enter_context(small_ext4(Path(folder) / "disk")) if long else None
        with step("set up"):
            set_up(desk, disk)
            # What a run that was ended from outside left.
            desk.compose("--profile", "watch", "down", "--volumes", "--remove-orphans")
        try:
            with step("build", 420):
                build(desk)
            image_holds_compiled_library(desk)
            for each, limit_s in SHORT:
                with step(each.__name__.replace("_", " "), limit_s):
                    each(desk)
            with step(f"{CYCLES} cycles and the books", 120):
                desk.cycles(CYCLES)
                desk.books()
            with step("hang", 200):
                hang(desk)
            for each, limit_s in LONG if long else ():
                with step(each.__name__.replace("_", " "), limit_s):
                    each(desk)
            for each in (backup, prometheus, down):
                with step(each.__name__, 180):
                    each(desk)
            for suite in SUITES if long else SUITES[:1]:
                with step(f"tests/integration/{suite} on containers", 1_500):
                    on_containers(made, suite)
        except AssertionError:
            say(desk.compose("ps", "--all", check=False))
            say(desk.compose("logs", "--tail", "15", check=False)[-12_000:])
            raise
        finally:
            desk.compose("--profile", "watch", "down", "--volumes", "--timeout", "5", check=False)
            desk.docker("image", "prune", "--force")
            desk.docker("builder", "prune", "--force", "--filter", "until=336h")
    say(f"docker: {time.monotonic() - start:6.1f} s  in all: passed")


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
