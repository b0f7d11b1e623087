"""The configuration of a NATS server: where it listens, and who may do what there."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libs.keys.accounts import PAYLOAD_BYTES_MAX, NatsPermissions, accounts, connections_max
from libs.keys.certificates import CertificatePair
from libs.keys.credentials import CredentialError
from libs.keys.tls import CA_FILE

NATS_MEMORY_STORE_BYTES_MAX = 64 * 1024 * 1024
NATS_FILE_STORE_BYTES_MAX = 4 * 1024 * 1024 * 1024
NATS_CONNECTIONS_MAX = 4096
"""More than the shares of all keys together (libs.keys.accounts). The rest is for connections that
have not logged in, which NATS closes after two seconds."""
# A frozen orchestrator stays in the queue group, and gets its share of the questions, until the
# server gives it up: after three unanswered pings instead of the default's six minutes.
NATS_PING_EVERY_S = 2
NATS_PINGS_MAX = 2

_ESCAPE = re.compile(r"\\.")


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


def nats_config(
    permissions: Mapping[str, NatsPermissions],
    public_keys: Mapping[str, str],
    place: NatsPlace,
    *,
    tls: bool = False,
) -> dict[str, Any]:
    """The configuration of a nats-server: JetStream, nkeys, allow lists, and for each identity an
    account with its share of the server (libs.keys.accounts); with `tls` its certificate.

    It holds public keys only. `public_keys` must have an entry for each identity in `permissions`.
    Raises CredentialError for nodes of a cluster without `tls`.
    """
    if not permissions:
        raise ValueError("nats-server lets everyone in when it knows no user: name at least one.")
    pair = CertificatePair(place.tls_dir, "nats")
    own = {"cert_file": str(pair.certificate), "key_file": str(pair.key)} if tls else None
    return {
        "server_name": place.name,
        "host": place.listen,
        "port": place.port,
        "http": f"127.0.0.1:{place.monitor_port}",
        "max_payload": PAYLOAD_BYTES_MAX,
        "max_connections": max(NATS_CONNECTIONS_MAX, 2 * connections_max(len(permissions))),
        "ping_interval": f"{NATS_PING_EVERY_S}s",
        "ping_max": NATS_PINGS_MAX,
        "jetstream": {
            "store_dir": str(place.store_dir),
            "max_memory_store": NATS_MEMORY_STORE_BYTES_MAX,
            "max_file_store": NATS_FILE_STORE_BYTES_MAX,
        },
        "accounts": accounts(permissions, public_keys),
        **({"tls": own} if own else {}),
        **({"cluster": _cluster(place, own)} if place.nodes else {}),
    }


def nats_config_text(config: Mapping[str, Any]) -> str:
    """A configuration as the text that nats-server reads, to be written in UTF-8: JSON.

    Of JSON's escapes nats-server reads `\\"` and `\\\\` as they are meant, so all other characters
    are written as they are. Raises CredentialError for a control character, which cannot be.
    """
    text = json.dumps(config, indent=2, ensure_ascii=False)
    refused = next((e for e in _ESCAPE.finditer(text) if e[0] not in (r"\"", r"\\")), None)
    if refused is not None:
        line = text.count("\n", 0, refused.start())
        raise CredentialError(
            f"a path for nats-server has a control character: {text.splitlines()[line].strip()}. "
            "Name another folder."
        )
    return f"{text}\n"


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
