"""The address of the desk's HTTP API and its access: settled before anything is started."""

import errno
import ipaddress
import socket
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path

from libs.runtime.errors import DeskError
from libs.runtime.ports import choose_port
from libs.runtime.proposers import HTTP_TOKEN_FILE, ProposersUnreadable, proposer_names
from libs.runtime.settings import Settings

TOKEN_CHARS_MIN = 16
BACKLOG = 128
PORTS_TRIED = 20
"""Ports from the default one on that are tried where nobody has chosen one."""
PORT_MAX = 65_535
HOW_TO_MAKE_ONE = "python -c 'import secrets; print(secrets.token_urlsafe(32))'"


class HttpRefused(DeskError):
    """The HTTP settings are refused."""

    code = "http_refused"


class HttpPortTaken(HttpRefused):
    """Another program listens there already."""

    code = "port_taken"


@dataclass(frozen=True)
class Certificate:
    """The certificate that a server shows its callers, and its private key."""

    file: Path
    key_file: Path


@dataclass(frozen=True)
class HttpAddress:
    """A host and port; `token` is what a caller must bear, None where this machine's loopback is
    the only way in, no token was set and nobody may propose. With a certificate it speaks TLS and
    nothing else."""

    host: str
    port: int
    token: str | None = field(default=None, repr=False)
    certificate: Certificate | None = None

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """The URL by which a program on this machine reaches it."""
        return self._url({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host))  # noqa: S104

    @property
    def listening_url(self) -> str:
        """The URL of the address that it listens on, which may be all of this machine's."""
        return self._url(self.host)

    def _url(self, host: str) -> str:
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def listening(self) -> socket.socket:
        """A socket that listens there. Raises `HttpRefused` with what to do."""
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listener = socket.socket(family, kind, protocol)
        except OSError as error:
            raise HttpRefused(
                f"this machine has no address {self.host!r}: {error.strerror}; look at "
                "DESKBUS_HTTP_HOST and DESKBUS_METRICS_HOST"
            ) from error
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            refused = HttpPortTaken if error.errno == errno.EADDRINUSE else HttpRefused
            raise refused(
                f"the HTTP API cannot listen on {self.host} port {self.port} ({error.strerror}): "
                "stop what uses it, or choose another with --port (DESKBUS_HTTP_PORT; 0 takes any "
                "free port), or use --no-http"
            ) from error
        listener.setblocking(False)
        return listener

    def free_from_here(self) -> "HttpAddress":
        """The address at its own port, or at the next one that nobody listens on.

        Raises `HttpRefused` where the host is none of this machine's, `HttpPortTaken` where
        `PORTS_TRIED` ports are taken.
        """
        last = min(self.port + PORTS_TRIED - 1, PORT_MAX)
        for port in range(self.port, last):
            address = replace(self, port=port)
            try:
                address.listening().close()
            except HttpPortTaken:
                continue
            return address
        address = replace(self, port=last)
        address.listening().close()
        return address


class OwnerToken:
    """The token that the desk's owner must bear, looked for anew until there is one.

    A console that started when nobody could propose asks for it from the moment a proposer is
    added. Then it keeps it until its end, also where that proposer is revoked.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._token: str | None = None

    def __call__(self) -> str | None:
        """The token; None where nobody has to bear one now. Raises `HttpRefused`."""
        if self._token is None:
            self._token = _token(self._settings)
        return self._token


def http_address(settings: Settings) -> HttpAddress | None:
    """The address of the API; None where it is off. Raises `HttpRefused`.

    Beyond loopback it takes a token: whoever may call the API may trade on paper.
    """
    if not settings.http.enabled:
        return None
    port = settings.http.port or choose_port(None, set())
    address = HttpAddress(settings.http.host, port, _token(settings), http_certificate(settings))
    if address.token is None and not address.is_loopback:
        raise HttpRefused(
            f"DESKBUS_HTTP_HOST {address.host} can be reached from other machines: set "
            f"DESKBUS_HTTP_TOKEN or DESKBUS_HTTP_TOKEN_FILE ({HOW_TO_MAKE_ONE})"
        )
    return address


def with_free_port(settings: Settings) -> Settings:
    """The settings with the port in force: the one that was chosen, or, where none was, the default
    or the next free one. Raises `HttpRefused` where nothing could listen there."""
    if (address := http_address(settings)) is None:
        return settings
    if "port" in settings.http.model_fields_set:
        address.listening().close()
    else:
        address = address.free_from_here()
    return settings.changed(http={"port": address.port})


def http_certificate(settings: Settings) -> Certificate | None:
    """The certificate that HTTP shows; None where it speaks no TLS. Raises `HttpRefused`."""
    file, key_file = settings.http.cert_file, settings.http.key_file
    if file is None and key_file is None:
        return None
    if file is None or key_file is None:
        missing = "DESKBUS_HTTP_CERT_FILE" if file is None else "DESKBUS_HTTP_KEY_FILE"
        raise HttpRefused(f"{missing} is not set: TLS needs a certificate and its key")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file, key_file)
    except (OSError, ssl.SSLError) as error:
        raise HttpRefused(
            f"DESKBUS_HTTP_CERT_FILE {file} and DESKBUS_HTTP_KEY_FILE {key_file} cannot be used "
            f"({error}): both must be PEM, readable, and belong together; `deskbus secrets init "
            "--tls` creates such a pair"
        ) from error
    return Certificate(file, key_file)


def metrics_address(settings: Settings) -> HttpAddress | None:
    """The address of this process's own metrics port; None where it has none."""
    if settings.metrics.port is None:
        return None
    return HttpAddress(settings.metrics.host, settings.metrics.port or choose_port(None, set()))


def _token(settings: Settings) -> str | None:
    if settings.http.token is not None:
        name, token = "DESKBUS_HTTP_TOKEN", settings.http.token.get_secret_value().strip()
    elif settings.http.token_file is not None:
        name, token = "DESKBUS_HTTP_TOKEN_FILE", _read(settings.http.token_file)
    elif _has_proposers(settings) or has_programs(settings):
        # A program that may only propose, or only answer, must not be let in as the owner, also not
        # on loopback.
        path = settings.secrets_path / HTTP_TOKEN_FILE
        name, token = str(path), _read(path)
    else:
        return None
    if len(token) < TOKEN_CHARS_MIN or not token.isascii() or not token.isprintable():
        raise HttpRefused(
            f"{name} must hold {TOKEN_CHARS_MIN} or more printable ASCII characters "
            f"({HOW_TO_MAKE_ONE})"
        )
    return token


def has_programs(settings: Settings) -> bool:
    """Whether a provider is a program of this machine, which could ask the API as you do."""
    return any(provider.command for provider in settings.providers.values())


def _has_proposers(settings: Settings) -> bool:
    try:
        return bool(proposer_names(settings.secrets_path))
    except ProposersUnreadable as error:
        raise HttpRefused(error.message) from error


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise HttpRefused(
            f"the token of HTTP in {path} (DESKBUS_HTTP_TOKEN_FILE) cannot be read: {error}; with "
            f"proposers, or a provider that is a command, there must be one ({HOW_TO_MAKE_ONE})"
        ) from error
