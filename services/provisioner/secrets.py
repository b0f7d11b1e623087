"""Keys, passwords, the token of HTTP, and the servers' side of them, for servers of your own.

`deskbus secrets init DIR` makes every secret that is not there yet, and a register of proposers
with nobody in it. It writes `nats.conf` and `roles.sql` anew from the subject table and the
secrets. Run it again after an upgrade: secrets stay as they are, permissions become those of the
new version.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from libs.bus.permissions import permissions
from libs.keys.accounts import NatsPermissions
from libs.keys.certificates import ensure_certificates
from libs.keys.credentials import (
    NATS_CONFIG,
    CredentialError,
    ensure_secrets,
    ensure_token,
    nkey_public_key,
    postgres_password,
)
from libs.keys.nats_config import NatsPlace, nats_config, nats_config_text
from libs.keys.tls import CA_FILE
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime.proposers import Proposers, proposer_names
from libs.runtime.whole_file import OWN, write_whole
from libs.servers.embedded import DATABASE
from libs.servers.postgres_roles import roles_sql
from libs.servers.postgres_server import SUPERUSER

ROLES_SQL = "roles.sql"
TOKENS = ("http.token", "grafana.password")
"""What people give: to HTTP, and as `admin` to Grafana."""


SEED_SUFFIX = ".nk"
HERE = ("localhost", "127.0.0.1", "::1")
SERVERS: Mapping[str, Sequence[str]] = {
    # As compose.yaml and deploy/kubernetes name them. Each pod of a StatefulSet by its whole name:
    # `*.nats` would do for NATS' own nodes, but OpenSSL takes no pattern with a single dot.
    "nats": ("nats", *HERE),
    "postgres": ("postgres", "postgres-0.postgres", "postgres-1.postgres", *HERE),
    "http": ("console", "console.deskbus.svc", "console.deskbus.svc.cluster.local", *HERE),
}
"""Servers with a certificate, and the names that each one has in it at least; NATS those of its
nodes too."""


@dataclass(frozen=True)
class Provisioned:
    """The files of the secrets: those that were made this time, and when certificates expire."""

    made: tuple[str, ...]
    kept: int
    expires: Mapping[str, datetime]


def provision_secrets(
    directory: Path,
    place: NatsPlace | None = None,
    *,
    tls: bool = False,
    hosts: Sequence[str] = (),
) -> Provisioned:
    """Make what is missing below `directory` and write the two servers' files.

    Without a `place` it is the one of the nats.conf that is there. `tls` makes certificates too,
    with `hosts` beside the usual names; where there are some, NATS is set up with its own. Raises
    `CredentialError` where the directory is not ours or a secret in it is spoiled.
    """
    place = place or kept_place(directory)
    before = _secrets_in(directory)
    allowed = permissions(proposers=proposer_names(directory))
    ensure_secrets(directory, nats_identities=allowed, postgres_roles=(*ROLES, SUPERUSER))
    Proposers(directory).ensure()
    for name in TOKENS:
        ensure_token(directory / name)
    servers = {name: (*names, *hosts) for name, names in SERVERS.items()}
    servers["nats"] += tuple(node.rpartition(":")[0] for node in place.nodes)
    expires = ensure_certificates(directory, servers) if tls or _has_tls(directory) else {}
    after = _secrets_in(directory)
    passwords = {role: postgres_password(directory, role) for role in ROLES}
    write_whole(directory / NATS_CONFIG, nats_conf(directory, place).encode())
    write_whole(directory / ROLES_SQL, roles_sql(passwords, DATABASE, OWNER_ROLE).encode(), OWN)
    return Provisioned(tuple(sorted(after - before)), len(before), expires)


def kept_place(directory: Path) -> NatsPlace:
    """Where the server of the directory's nats.conf listens, stores and finds the others; the
    defaults where there is none of ours."""
    try:
        config = json.loads((directory / NATS_CONFIG).read_text(encoding="utf-8"))
        cluster = config.get("cluster")
        place = NatsPlace(
            listen=config["host"],
            port=config["port"],
            monitor_port=_port(config["http"]),
            store_dir=Path(config["jetstream"]["store_dir"]),
            name=config["server_name"],
        )
        if "tls" in config:
            place = replace(place, tls_dir=Path(config["tls"]["cert_file"]).parent)
        if cluster:
            nodes = tuple(route.removeprefix("nats://") for route in cluster["routes"])
            place = replace(place, nodes=nodes, node_port=_port(cluster["listen"]))
    except (FileNotFoundError, ValueError, KeyError):
        return NatsPlace()
    return place


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def nats_conf(
    directory: Path, place: NatsPlace, allowed: Mapping[str, NatsPermissions] | None = None
) -> str:
    """The NATS server's configuration: who may do what (`permissions()`). It holds public keys
    only."""
    allowed = allowed or permissions(proposers=proposer_names(directory))
    keys = {name: nkey_public_key(directory, name) for name in allowed}
    return nats_config_text(nats_config(allowed, keys, place, tls=_has_tls(directory)))


def _has_tls(directory: Path) -> bool:
    return (directory / CA_FILE).exists()


def _secrets_in(directory: Path) -> set[str]:
    """The secrets of a desk in a folder. Raises `CredentialError` for a folder of other things."""
    if not directory.exists():
        return set()
    if not directory.is_dir():
        raise CredentialError(f"{directory} is not a folder. Name a new or empty one.")
    names = {path.name for path in directory.iterdir()}
    suffixes = (SEED_SUFFIX, ".password", ".pem", ".key", ".token")
    if names and not any(name.endswith(suffixes) for name in names):
        raise CredentialError(
            f"{directory} holds other things and no secrets of a desk; only this user could enter "
            "it afterwards. Name a new or empty folder."
        )
    return {name for name in names if name.endswith(suffixes)}
