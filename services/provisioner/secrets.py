"""Keys, passwords, the token of HTTP, and the servers' side of them, for servers of your own.

`deskbus secrets init DIR` makes every secret that is not there yet, and writes `nats.conf` and
`roles.sql` anew from the subject table and the secrets. Run it again after an upgrade: secrets stay
as they are, permissions become those of the new version.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from libs.bus.permissions import permissions
from libs.keys.accounts import NatsPermissions
from libs.keys.certificates import CertificatePair, ensure_certificates
from libs.keys.credentials import (
    NATS_CONFIG,
    CredentialError,
    ensure_secrets,
    ensure_token,
    mode_of,
    nats_config,
    nats_config_text,
    nkey_public_key,
    postgres_password,
)
from libs.keys.tls import CA_FILE
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime.proposers import proposer_names
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
class NatsPlace:
    """Where the NATS server listens, stores, and finds its certificate; the defaults are those of
    compose.yaml. `nodes` are the cluster's addresses (`host:port`) for one another, itself among
    them; a server without is alone."""

    listen: str = "0.0.0.0"  # noqa: S104 - inside a container; compose.yaml publishes on loopback
    port: int = 4222
    monitor_port: int = 8222
    store_dir: Path = Path("/data")
    tls_dir: Path = Path("/etc/nats")
    nodes: tuple[str, ...] = ()
    node_port: int = 6222
    name: str = "deskbus"


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
    for name in TOKENS:
        ensure_token(directory / name)
    servers = {name: (*names, *hosts) for name, names in SERVERS.items()}
    servers["nats"] += tuple(node.rpartition(":")[0] for node in place.nodes)
    expires = ensure_certificates(directory, servers) if tls or _has_tls(directory) else {}
    after = _secrets_in(directory)
    _write(directory / NATS_CONFIG, nats_conf(directory, place))
    passwords = {role: postgres_password(directory, role) for role in ROLES}
    _write(directory / ROLES_SQL, roles_sql(passwords, DATABASE, OWNER_ROLE))
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
    config = nats_config(
        allowed,
        public_keys={name: nkey_public_key(directory, name) for name in allowed},
        port=place.port,
        monitor_port=place.monitor_port,
        store_dir=place.store_dir,
        server_name=place.name,
    )
    config["host"] = place.listen
    if _has_tls(directory):
        pair = CertificatePair(place.tls_dir, "nats")
        config["tls"] = {"cert_file": str(pair.certificate), "key_file": str(pair.key)}
    if place.nodes:
        config["cluster"] = _cluster(place, config.get("tls"))
    return nats_config_text(config)


def _cluster(place: NatsPlace, own: Mapping[str, str] | None) -> Mapping[str, object]:
    """How the nodes find and believe one another: by certificates, in both directions."""
    if own is None:
        raise CredentialError(
            "The nodes of a NATS cluster know one another by certificates, and there are none: "
            "add --tls."
        )
    return {
        "name": "deskbus",
        "listen": f"{place.listen}:{place.node_port}",
        "routes": [f"nats://{node}" for node in place.nodes],
        # Clients know the nodes by the names in DESKBUS_NATS_URL, which certificates hold; the
        # addresses that nodes would tell them are in none.
        "no_advertise": True,
        "tls": {**own, "ca_file": str(place.tls_dir / CA_FILE), "verify": True},
    }


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


def _write(path: Path, text: str) -> None:
    """Put `text` in place in one step: a reader sees the old file or the new one."""
    partial = path.with_name(f"{path.name}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode_of(path.name))
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode_of(path.name))  # whatever the umask takes away
        file.write(text)
    partial.replace(path)
