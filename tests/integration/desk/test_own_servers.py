"""A plain NATS and a plain Postgres, with one user who may do all: two addresses are enough."""

import json
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from libs.keys.accounts import NatsPermissions
from libs.keys.nats_config import NatsPlace
from libs.postgres.pool import ROLES
from libs.runtime.ports import LOOPBACK, choose_port
from libs.servers.binaries import find_nats_server
from libs.servers.embedded import embedded_servers
from libs.servers.embedded_thread import held_in_thread
from libs.servers.postgres_server import SUPERUSER
from services.provisioner.secrets import nats_conf, provision_secrets
from tests.integration.desk.command_line import PATIENCE_S, CommandLine, ended, up

WANTED = "cycle request --as-of 2012-06-29 --wait --json"
NOBODY = {"nobody": NatsPermissions(publish=(), subscribe=())}  # this embedded NATS is not used


@contextmanager
def plain_nats(folder: Path) -> Iterator[str]:
    """A NATS server with JetStream and without any authentication; its address."""
    port = choose_port(None, set())
    with nats_server("-js", "-sd", folder / "js", "-a", LOOPBACK, "-p", str(port)):
        yield f"nats://{LOOPBACK}:{port}"


@contextmanager
def nats_server(*options: str | Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [find_nats_server(), *options], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        while "Server is ready" not in server.stderr.readline():
            assert server.poll() is None
        try:
            yield server
        finally:
            server.terminate()
            server.stderr.read()


@pytest.fixture(scope="module")
def own_servers(make_open_dir: Callable[[], Path]) -> Iterator[tuple[str, str]]:
    """Their addresses; Postgres knows its superuser only and none of our roles."""
    folder = make_open_dir()
    with (
        held_in_thread(lambda: embedded_servers(folder / "pg", NOBODY, ())) as servers,
        plain_nats(folder) as nats_url,
    ):
        yield nats_url, servers.postgres_dsn(SUPERUSER)


@pytest.fixture
def deskbus(own_servers: tuple[str, str], tmp_path: Path) -> CommandLine:
    nats_url, dsn = own_servers
    settings = (("DESKBUS_NATS_URL", nats_url), ("DESKBUS_POSTGRES_DSN", dsn))
    return CommandLine(tmp_path / "data", tmp_path, settings)


def test_the_tables_are_made_and_the_desk_runs_on_them(deskbus: CommandLine) -> None:
    migrated = deskbus("db migrate --json")
    again = deskbus("db migrate --json")
    with up(deskbus) as (process, ready):
        cycle = deskbus(WANTED)
        doctor = deskbus("doctor --json")
        stopped = ended(process, signal.SIGINT)

    assert (migrated.code, [row["version"] for row in migrated.rows][:1]) == (0, [1])
    assert (again.code, again.out) == (0, "")
    assert (cycle.code, cycle.rows[0]["status"]) == (0, "completed"), cycle.err
    assert doctor.code == 0, doctor.out
    assert stopped.code == 0
    password = re.search(r":([^:@]+)@", dict(deskbus.settings)["DESKBUS_POSTGRES_DSN"])
    assert password is not None
    for said in (str(ready), doctor.out, deskbus("config").out, stopped.err, migrated.err):
        assert password[1] not in said
    # The servers are the operator's: they run on, and know all.
    with up(deskbus):
        assert deskbus(f"cycle show {cycle.rows[0]['cycle_id']} --json").rows == cycle.rows


def test_while_nats_refuses_a_key_the_desk_says_so_and_goes_on_once_it_does_not(
    own_servers: tuple[str, str], tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    provision_secrets(secrets)
    port, monitor_port, metrics_port = (choose_port(None, set()) for _ in range(3))
    config = nats_conf(secrets, NatsPlace(LOOPBACK, port, monitor_port, tmp_path / "store"))
    without = json.loads(config)
    without["accounts"]["risk"]["users"] = []
    settings = (
        ("DESKBUS_NATS_URL", f"nats://{LOOPBACK}:{port}"),
        ("DESKBUS_POSTGRES_DSN", own_servers[1]),
        ("DESKBUS_SECRETS_DIR", str(secrets)),
        ("DESKBUS_METRICS_PORT", str(metrics_port)),
    )
    deskbus = CommandLine(tmp_path / "data", tmp_path, settings)
    conf = tmp_path / "nats.conf"
    conf.write_text(config)

    def until(condition: Callable[[str], bool]) -> str:
        for _ in range(PATIENCE_S * 5):
            said = readyz(metrics_port)
            if condition(said):
                return said
            time.sleep(0.2)
        raise AssertionError(said)

    for role in ROLES:
        (secrets / f"postgres_{role}.password").unlink()  # Postgres knows its superuser only
    with nats_server("--config", conf) as server, up(deskbus) as (process, _):
        conf.write_text(json.dumps(without))
        server.send_signal(signal.SIGHUP)
        said = until(lambda said: "(6 tries" in said)  # for longer than it once took to give up
        doctor = deskbus("doctor --json")
        conf.write_text(config)
        server.send_signal(signal.SIGHUP)
        until(lambda said: said == "")
        cycle = deskbus(WANTED)
        stopped = ended(process, signal.SIGINT)

    assert "nats risk: NATS refuses this key" in said
    assert doctor.code == 1
    problems = {row["name"]: row["said"] for row in doctor.rows if row["verdict"] == "problem"}
    assert problems == {"services": "missing: risk"}
    assert (cycle.code, cycle.rows[0]["status"]) == (0, "completed"), cycle.err
    assert stopped.code == 0
    assert "bus.refused" in stopped.err


def readyz(port: int) -> str:
    """What the process says is wrong with it; empty where it is ready."""
    try:
        urllib.request.urlopen(f"http://{LOOPBACK}:{port}/readyz", timeout=5).close()
    except urllib.error.HTTPError as error:
        return error.read().decode()
    return ""


def test_one_address_without_the_other_is_refused(
    own_servers: tuple[str, str], tmp_path: Path
) -> None:
    half = (("DESKBUS_NATS_URL", own_servers[0]),)
    said = CommandLine(tmp_path / "data", tmp_path, half)("up")

    assert said.code in {1, 2}
    assert "DESKBUS_POSTGRES_DSN" in said.err


def test_a_wrong_password_is_told_without_it(deskbus: CommandLine) -> None:
    dsn = re.sub(r":[^:@]+@", ":wr0ng@", dict(deskbus.settings)["DESKBUS_POSTGRES_DSN"])
    for typed in ("up", "db migrate"):
        said = deskbus(typed, DESKBUS_POSTGRES_DSN=dsn)
        assert said.code == 5
        assert "password authentication failed" in said.err
        assert "wr0ng" not in said.err
        assert "Traceback" not in said.err


def test_servers_that_do_not_answer_are_named(tmp_path: Path) -> None:
    dead, login = f"{LOOPBACK}:{choose_port(None, set())}", "me:hunter2"
    settings = (
        ("DESKBUS_NATS_URL", f"nats://{dead}"),
        ("DESKBUS_POSTGRES_DSN", f"postgresql://{login}@{dead}/deskbus"),
    )
    deskbus = CommandLine(tmp_path / "data", tmp_path, settings)

    for typed in ("up", "db migrate", "cycle list"):
        said = deskbus(typed)
        assert (said.code, said.out) == (5, "")
        assert dead in said.err
        assert "hunter2" not in said.err
        assert "Traceback" not in said.err
