"""A Docker engine of its own for a test run, from Debian's packages.

It listens on a socket of its own, keeps its data in a folder of its own and is ended by its pid
file. Compose and buildx are unpacked beside the system. What a machine is set to (mirror, registry,
certificates) is read when it runs and goes into the engine's images only.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
NEEDED = {"dockerd": "docker.io", "debootstrap": "debootstrap", "iptables": "iptables"}
START_LIMIT_S = 60
INSTALL_LIMIT_S = 240


class NoEngine(Exception):
    """None can be had on this machine, for the reason that is its text."""


def run(
    argv: Sequence[str],
    limit_s: float,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = True,
    text: str | None = None,
) -> str:
    """What a command prints, both ways. Raises AssertionError where it fails or takes too long."""
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            input=text,
            stdin=None if text is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")
        raise AssertionError(f"{' '.join(argv)} takes more than {limit_s} s:\n{said}") from late
    if check and done.returncode:
        raise AssertionError(f"{' '.join(argv)} exits {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


@dataclass(frozen=True)
class Engine:
    """A running engine; `bases` tells whether its base images are those of this code."""

    folder: Path
    env: Mapping[str, str]

    def docker(self, *words: str, limit_s: float = 60, text: str | None = None) -> str:
        """What `docker` prints. Raises AssertionError."""
        return run(["docker", *words], limit_s, env=self.env, text=text)


def cache() -> Path:
    """Where engines' data are kept between runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "deskbus-docker"


def fingerprint() -> str:
    """Of what the base images are made of: the code here, the lock's NATS, the machine's pip."""
    whole = hashlib.sha256()
    for path in (HERE / "engine.py", HERE / "bases.py", *sorted((HERE / "images").iterdir())):
        whole.update(path.read_bytes())
    lock = (HERE.parents[1] / "requirements.lock").read_text()
    whole.update("".join(line for line in lock.splitlines() if "nats-server" in line).encode())
    whole.update(json.dumps(pip_settings()).encode())
    return whole.hexdigest()[:16]


def pip_settings() -> dict[str, str]:
    """How pip is told on this machine to find packages; folders of this machine left out."""
    lines = run([sys.executable, "-m", "pip", "config", "list"], 30).splitlines()
    settings = {}
    for name, _, value in (line.partition("=") for line in lines):
        key = name.rpartition(".")[2]
        if key in {"index-url", "extra-index-url", "trusted-host", "cert"}:
            words = [word for word in value.strip("'").split() if not word.startswith("file:")]
            settings |= {key: " ".join(words)} if words else {}
    return settings


def mirror() -> str:
    """Where apt gets Debian from. Raises NoEngine."""
    form = "$(REPO_URI) $(LABEL)"
    for line in run(["apt-get", "indextargets", "--format", form], 30).splitlines():
        uri, _, label = line.partition(" ")
        if label == "Debian":
            return uri
    raise NoEngine("apt knows no Debian mirror here")


@contextmanager
def engine(*, said: Callable[[str], None] = print) -> Iterator[Engine]:
    """An engine, started and ended. Raises NoEngine, and AssertionError where it breaks later."""
    _install()
    home = cache()
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.write("held")
        if lock.tell() == 0:
            said("another run holds the engine: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        folder = home / fingerprint()
        for other in home.iterdir():
            if other.is_dir() and other != folder:
                _end(other / "dockerd.pid")
                # In the background: it takes minutes, and one that is not done goes on next time.
                subprocess.Popen(["nice", "-n", "19", "rm", "-rf", str(other)])
        _end(folder / "dockerd.pid")
        (folder / "data").mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix="deskbus-docker-", ignore_cleanup_errors=True) as at,
            _network_as_before(),
        ):
            yield from _started(folder, Path(at))


def _install() -> None:
    if os.geteuid() != 0:
        raise NoEngine("only root starts an engine")
    if shutil.which("apt-get") is None:
        raise NoEngine(
            "the engine and its images are made of Debian's packages, and there is no apt-get"
        )
    missing = [package for tool, package in NEEDED.items() if shutil.which(tool) is None]
    if shutil.which("docker") is None and not missing:
        missing = ["docker-cli"]
    try:
        if missing:
            quiet = {"DEBIAN_FRONTEND": "noninteractive"}
            run(["apt-get", "update", "--quiet=2"], INSTALL_LIMIT_S, env=quiet)
            install = ["apt-get", "install", "--quiet=2", "--yes", "--no-install-recommends"]
            run([*install, *missing], INSTALL_LIMIT_S, env=quiet)
    except AssertionError as error:
        raise NoEngine(f"apt-get can't install {', '.join(missing)}: {error}") from error
    running = [path for path in Path("/proc").glob("[0-9]*") if _is_dockerd(path)]
    mine = {file.read_text().strip() for file in cache().glob("*/dockerd.pid")}
    if any(path.name not in mine for path in running):
        raise NoEngine(
            "another engine runs on this machine, and two would change the same iptables"
        )


def _is_dockerd(process: Path) -> bool:
    with suppress(OSError):
        return (process / "comm").read_text().strip() == "dockerd"
    return False


@contextmanager
def _network_as_before() -> Iterator[None]:
    """Give this machine its rules back. Forwarding is on before the engine starts: one that has to
    turn it on also forbids everybody else's."""
    forward = Path("/proc/sys/net/ipv4/ip_forward")
    before, rules = forward.read_text(), run(["iptables-save"], 20)
    forward.write_text("1")
    try:
        yield
    finally:
        for table in ("filter", "nat"):
            rules += "" if f"*{table}" in rules else f"*{table}\nCOMMIT\n"
        run(["iptables-restore"], 20, text=rules)
        forward.write_text(before)


def _started(folder: Path, at: Path) -> Iterator[Engine]:
    env = {
        "DOCKER_HOST": f"unix://{at}/docker.sock",
        "DOCKER_CONFIG": str(folder / "config"),
        "DOCKER_BUILDKIT": "1",
    }
    command = ["dockerd", "--host", env["DOCKER_HOST"], "--data-root", str(folder / "data")]
    command += ["--exec-root", str(at / "exec"), "--pidfile", str(folder / "dockerd.pid")]
    command += ["--bridge", "none", "--log-level", "warn"]
    log = folder / "dockerd.log"
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    try:
        until = time.monotonic() + START_LIMIT_S
        while subprocess.run(
            ["docker", "version"], env={**os.environ, **env}, capture_output=True, check=False
        ).returncode:
            if process.poll() is not None or time.monotonic() > until:
                raise NoEngine(f"dockerd does not start: {log.read_text()[-1500:]}")
            time.sleep(0.2)
        yield Engine(folder, env)
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)


def _end(pid_file: Path) -> None:
    """End the engine that a run before left, if it still runs."""
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    process = Path(f"/proc/{pid}")
    if _is_dockerd(process):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + START_LIMIT_S
        while process.exists() and time.monotonic() < until:
            time.sleep(0.2)
    pid_file.unlink(missing_ok=True)
