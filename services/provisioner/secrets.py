"""Keys, passwords and the servers' side of them, for NATS and Postgres servers of your own.

`python -m services.provisioner.secrets DIR` makes every secret that is not there yet, and writes
`nats.conf` and `roles.sql` anew from the subject table and the secrets. Run it again after an
upgrade: secrets stay as they are, permissions become those of the new version.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from libs.bus.permissions import permissions
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime.credentials import (
    FILE_MODE,
    ensure_secrets,
    nats_config,
    nkey_public_key,
    postgres_password,
)
from libs.runtime.embedded import DATABASE
from libs.runtime.postgres_roles import roles_sql
from libs.runtime.postgres_server import SUPERUSER
from libs.runtime.start_error import StartError

NATS_CONFIG = "nats.conf"
ROLES_SQL = "roles.sql"
CONFIG_MODE = 0o644


@dataclass(frozen=True)
class NatsPlace:
    """Where the NATS server listens and stores; the defaults are those of compose.yaml."""

    listen: str = "0.0.0.0"  # noqa: S104 - inside a container; compose.yaml publishes on loopback
    port: int = 4222
    monitor_port: int = 8222
    store_dir: Path = Path("/data")


def provision_secrets(directory: Path, place: NatsPlace | None = None) -> None:
    """Make what is missing below `directory` and write the two servers' files.

    Raises `CredentialError` where the directory is not ours or a secret in it is spoiled.
    """
    ensure_secrets(directory, nats_identities=permissions(), postgres_roles=(*ROLES, SUPERUSER))
    _write(directory / NATS_CONFIG, nats_conf(directory, place or NatsPlace()), CONFIG_MODE)
    passwords = {role: postgres_password(directory, role) for role in ROLES}
    _write(directory / ROLES_SQL, roles_sql(passwords, DATABASE, OWNER_ROLE), FILE_MODE)


def nats_conf(directory: Path, place: NatsPlace) -> str:
    """The NATS server's configuration: who may do what. It holds public keys only."""
    allowed = permissions()
    config = json.loads(
        nats_config(
            allowed,
            public_keys={name: nkey_public_key(directory, name) for name in allowed},
            port=place.port,
            monitor_port=place.monitor_port,
            store_dir=place.store_dir,
        )
    )
    config |= {"host": place.listen, "http": f"{place.listen}:{place.monitor_port}"}
    return json.dumps(config, indent=2) + "\n"


def _write(path: Path, text: str, mode: int) -> None:
    """Put `text` in place in one step: a reader sees the old file or the new one."""
    partial = path.with_name(f"{path.name}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    partial.replace(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Provision the directory that is named; exits 1 with what stands in the way."""
    default = NatsPlace()
    parser = argparse.ArgumentParser(prog="python -m services.provisioner.secrets")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--listen", default=default.listen)
    parser.add_argument("--port", type=int, default=default.port)
    parser.add_argument("--monitor-port", type=int, default=default.monitor_port)
    parser.add_argument("--store-dir", type=Path, default=default.store_dir)
    given = parser.parse_args(arguments)
    place = NatsPlace(given.listen, given.port, given.monitor_port, given.store_dir)
    try:
        provision_secrets(given.directory, place)
    except StartError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
