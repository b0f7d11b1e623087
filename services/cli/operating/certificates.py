"""`deskbus doctor`: the certificates that HTTP, NATS and Postgres show."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from libs.runtime.http_address import HttpRefused, http_certificate
from libs.runtime.settings import Settings
from services.cli.operating.checks import DoctorCheck, ok, problem
from services.cli.shell.running import RunningDesk

ANY_HOST = frozenset({"0.0.0.0", "::", "127.0.0.1", "::1", "localhost"})  # noqa: S104


def in_files(settings: Settings) -> Sequence[DoctorCheck]:
    """The certificate that HTTP is set up with, and those among the secrets."""
    from libs.keys.validity import RENEW, certificate_in, now_utc, problem_of  # noqa: PLC0415

    checks = []
    try:
        set_up = http_certificate(settings)
    except HttpRefused as refused:
        return [problem("certificate http", str(refused))]
    files = {path.stem: path for path in sorted(settings.secrets_path.glob("*.pem"))}
    if set_up is not None:
        files["http"] = set_up.file
    for name, path in files.items():
        host = _http_host(settings) if name == "http" and set_up is not None else None
        try:
            certificate = certificate_in(path)
            why = problem_of(certificate, host, now_utc())
        except (OSError, ValueError) as error:
            why = f"it cannot be read ({error})"
        if why:
            checks.append(problem(f"certificate {name}", f"{path}: {why}", RENEW))
        else:
            until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
            checks.append(ok(f"certificate {name}", f"{path}, valid until {until}"))
    return checks


async def shown(desk: RunningDesk, dsn: str | None) -> Sequence[DoctorCheck]:
    """The certificates that the servers show now. Where one speaks no TLS there is no line."""
    from libs.keys.validity import (  # noqa: PLC0415 - it loads the package for certificates
        RENEW,
        ServerProtocol,
        now_utc,
        places_in,
        problem_of,
        servers_in,
        shown_by,
    )

    places = [*servers_in(desk.nats_url, dsn)]
    if desk.http_url is not None and desk.http_url.startswith("https://"):
        places += places_in(desk.http_url, ServerProtocol.HTTPS, 443)
    checks = []
    for place in places:
        name = f"tls {place.speaks.value}"
        try:
            certificate = await shown_by(place)
        except (OSError, ValueError) as error:
            checks.append(problem(name, f"{place} has no certificate ({error})", RENEW))
            continue
        if certificate is None:
            continue
        host = (
            None if place.speaks is ServerProtocol.HTTPS and place.host in ANY_HOST else place.host
        )
        why = problem_of(certificate, host, now_utc())
        if why:
            checks.append(problem(name, f"the certificate of {place}: {why}", RENEW))
        else:
            until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
            checks.append(ok(name, f"{place} has a certificate valid until {until}"))
    return checks


def _http_host(settings: Settings) -> str | None:
    """The name by which people reach HTTP, where the settings say one."""
    url = settings.notify.base_url
    if url is not None and url.startswith("https://"):
        return urlsplit(url).hostname
    return None if settings.http.host in ANY_HOST else settings.http.host
