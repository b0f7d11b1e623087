"""The lines of `deskbus doctor` on what the environment of this machine changes."""

import os
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path

from libs.llm.endpoints.endpoint import endpoints_of
from libs.llm.registry import NotUsable, all_providers
from libs.market.choice import DataKind, PartName, SourceName, chosen
from libs.runtime.errors import DeskError
from libs.runtime.proxies import proxy_for, set_proxies
from libs.runtime.settings import Settings
from services.cli.operating.checks import DoctorCheck, off, ok, problem

OF_SOURCE = {
    SourceName.YAHOO: "https://query1.finance.yahoo.com",
    PartName.EDGAR: "https://data.sec.gov",
}
AUTHORITIES = {
    "SSL_CERT_FILE": "models, EDGAR and webhooks",
    "SSL_CERT_DIR": "models, EDGAR and webhooks",
    "REQUESTS_CA_BUNDLE": "messages",
    "CURL_CA_BUNDLE": "messages",
}
"""Variables that name certificates of authorities, and for whose servers."""
KEY_LOG = "SSLKEYLOGFILE"
OF_POSTGRES = frozenset(
    {
        "PGHOST",
        "PGPORT",
        "PGUSER",
        "PGPASSWORD",
        "PGPASSFILE",
        "PGDATABASE",
        "PGSERVICE",
        "PGSERVICEFILE",
        "PGSSLMODE",
        "PGSSLNEGOTIATION",
        "PGSSLROOTCERT",
        "PGSSLCRL",
        "PGSSLKEY",
        "PGSSLCERT",
        "PGSSLMINPROTOCOLVERSION",
        "PGSSLMAXPROTOCOLVERSION",
        "PGTARGETSESSIONATTRS",
        "PGKRBSRVNAME",
        "PGGSSLIB",
    }
)
"""Variables that asyncpg reads."""
MESSAGES = "https://messages.example.org"
"""Stands for whoever takes messages over HTTPS: their addresses are secret."""


def proxies(settings: Settings) -> Sequence[DoctorCheck]:
    """The proxies that are set here, and what goes through each; nothing where none is set."""
    shown = set_proxies()
    if not shown:
        return []
    directly = ["alpaca"] if SourceName.ALPACA in _sources(settings) else []
    through: dict[str, list[str]] = {f"{name} {url}": [] for name, url in shown.items()}
    try:
        for name, url in _addresses(settings):
            proxy = proxy_for(url)
            if proxy is None:
                directly.append(name)
            else:
                through.setdefault(str(proxy), []).append(name)
    except DeskError as error:
        return [problem("proxy", error.message)]
    lines = [f"{name} for {', '.join(users) or 'nothing here'}" for name, users in through.items()]
    lines += [f"directly to {', '.join(directly)}"] if directly else []
    return [ok("proxy", "; ".join(lines))]


def variables(settings: Settings) -> Sequence[DoctorCheck]:
    """Other variables of the environment that change how the desk speaks to servers; nothing where
    none is set."""
    checks = [_certificates(name) for name in AUTHORITIES if os.environ.get(name)]
    if path := os.environ.get(KEY_LOG):
        checks.append(
            problem(
                "environment",
                f"{KEY_LOG} {path}: who reads that file can decrypt this machine's connections",
                f"unset {KEY_LOG}",
            )
        )
    names = sorted(OF_POSTGRES & os.environ.keys())
    if names and settings.postgres.dsn is not None:
        finding = f"{', '.join(names)}: each sets a part that DESKBUS_POSTGRES_DSN does not have"
        checks.append(off("environment", finding))
    return checks


def _certificates(name: str) -> DoctorCheck:
    path = os.environ[name]
    whom = AUTHORITIES[name]
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(
            **{"capath" if Path(path).is_dir() else "cafile": path}
        )
    except OSError as error:  # ssl.SSLError is one
        finding = f"{name} {path}: no certificates for {whom} ({error.strerror or error})"
        return problem("environment", finding, f"correct or unset {name}")
    return ok("environment", f"{name} {path}: its CAs are trusted for {whom}")


def _addresses(settings: Settings) -> Iterator[tuple[str, str]]:
    """Whom the desk speaks HTTP to, and an address of each."""
    endpoints = endpoints_of(settings)
    for name, provider in all_providers(settings).items():
        if name in endpoints and not isinstance(provider, NotUsable):
            yield name, endpoints[name].base_url
    for source in sorted(_sources(settings)):
        if source in OF_SOURCE:
            yield source, OF_SOURCE[source]
    if settings.notify.channels:
        yield "messages", MESSAGES


def _sources(settings: Settings) -> set[SourceName | PartName]:
    return {chosen(settings, kind) for kind in DataKind}
