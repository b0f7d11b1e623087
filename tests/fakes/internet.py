"""An internet of one machine: the names of services lead to stand-ins over loopback, no other name
leads anywhere, and an authority of the test's own vouches for them.

Nothing of the desk's, of Apprise's or of its HTTP and mail clients is replaced: they look up the
true names, speak TLS, and check the certificates.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from libs.keys.certificates import ensure_certificates

HOSTS = (
    "api.telegram.org",
    "discord.com",
    "hooks.slack.com",
    "ntfy.sh",
    "slack.com",
    "smtp.example.org",
)
HTTPS, SUBMISSION = 443, 587
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost", "", None})


@dataclass(frozen=True)
class Authority:
    """The certificate of all of HOSTS, and who vouches for it."""

    certificate: tuple[Path, Path]
    authority: Path

    def is_trusted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Until the test ends, by requests and by ssl."""
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(self.authority))
        monkeypatch.setenv("SSL_CERT_FILE", str(self.authority))


def authority(folder: Path) -> Authority:
    """Make one in the folder."""
    folder.mkdir(exist_ok=True)
    ensure_certificates(folder, {"internet": HOSTS})
    return Authority((folder / "internet.pem", folder / "internet.key"), folder / "ca.pem")


def names_lead_to(
    monkeypatch: pytest.MonkeyPatch, https: int | None = None, mail: int | None = None
) -> None:
    """Have the names of HOSTS lead to these ports, and nothing but loopback be reached."""
    places: Mapping[int, int | None] = {HTTPS: https, SUBMISSION: mail}
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name in LOOPBACK:
            return real(host, port, *args, **kwargs)
        place = places.get(int(port)) if name in HOSTS else None
        if place is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real("127.0.0.1", place, *args, **kwargs)

    monkeypatch.setattr("socket.getaddrinfo", look_up)
