"""TLS on the client's side: whose certificates are believed.

Where the secrets directory has a `ca.pem`, servers must show a certificate that one of its
authorities has signed, and no other will do; without one the system's authorities count. The
server's name is checked in either case.
"""

import ssl
from pathlib import Path

from libs.runtime.errors import DeskError

CA_FILE = "ca.pem"
TIMES = frozenset({9, 10})
"""X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED of OpenSSL."""


class CaUnreadable(DeskError):
    """The file with the CA certificates cannot be used."""

    code = "ca_unreadable"


def ca_file(secrets_dir: Path) -> Path | None:
    """The file with our authorities; None where the system's count."""
    path = secrets_dir / CA_FILE
    return path if path.exists() else None


def client_context(secrets_dir: Path) -> ssl.SSLContext:
    """For connections to servers. Raises `CaUnreadable`."""
    path = ca_file(secrets_dir)
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise CaUnreadable(
            f"{path} is not a readable certificate file (PEM): {error}. Put back the "
            f"{CA_FILE} that `deskbus secrets init --tls` made, or remove it to believe this "
            "system's authorities."
        ) from error


def wrong_time(error: ssl.SSLCertVerificationError) -> str:
    """The advice for a certificate that has expired or is not valid yet; empty for all others."""
    if error.verify_code not in TIMES:
        return ""
    return (
        "the server shows a certificate whose time is over or has not begun: compare the clocks of "
        "both machines, or give the server a new one (docs/tls.md)"
    )


def todo(secrets_dir: Path, error: ssl.SSLCertVerificationError) -> str:
    """The advice for a certificate that was not trusted."""
    if text := wrong_time(error):
        return text
    path = ca_file(secrets_dir)
    if path is None:
        return (
            f"this system's authorities do not vouch for it; copy the server's {CA_FILE} to "
            f"{secrets_dir / CA_FILE}, and reach the server by a name of its certificate"
        )
    return (
        f"take the {CA_FILE} of the same `deskbus secrets init --tls` as the server's certificate "
        f"(here: {path}), and reach the server by a name of that certificate"
    )
