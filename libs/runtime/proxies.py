"""Which proxy a request goes through: one rule for every HTTP client of the desk.

    loopback         never through a proxy
    NO_PROXY         hosts (also `.x.org` and `*.x.org`, with or without a port), addresses,
                     networks and `*`, by commas or blanks: not through a proxy
    HTTP_PROXY, HTTPS_PROXY     for addresses of that scheme
    ALL_PROXY        for the others
    schemes          http, https, socks5, socks5h; `socks` is taken for socks5, none for http

A variable in lower case counts before the same one in upper case. Where no variable is set, the
settings of macOS or Windows count.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from libs.runtime.errors import DeskError

SCHEMES = ("http", "https", "socks5", "socks5h")
DEFAULT_PORTS = {"http": 80, "https": 443}
_WITH_PORT = re.compile(r"(\[.+\]|[^:]+):(\d+)")
_LOGIN = re.compile(r"(?<=//).*@|^[^/]*@")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
OF_SYSTEM = "the system's settings"


class ProxyUnusable(DeskError):
    """A proxy variable has an invalid value."""

    code = "proxy_unusable"


@dataclass(frozen=True)
class Proxy:
    """A proxy and the variable that sets it. `url` may hold a password: never show it."""

    url: str
    variable: str

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"{self.variable} {parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def proxy_for(url: str) -> Proxy | None:
    """The proxy for a request to `url`; None where it goes there directly.

    Raises `ProxyUnusable`.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".").lower()
    if is_loopback(host):
        return None
    proxies = getproxies()
    name = next((name for name in (parts.scheme, "all") if proxies.get(name)), None)
    if name is None or _is_exempt(host, parts, proxies.get("no", "")):
        return None
    variable = _variable(name)
    if variable == OF_SYSTEM and proxy_bypass(host):
        return None
    return Proxy(_usable(proxies[name].strip(), variable), variable)


def set_proxies() -> Mapping[str, str]:
    """The proxies that are set, without logins, by the variable that sets each; empty where none
    is."""
    return {
        _variable(name): _LOGIN.sub("", value)
        for name, value in sorted(getproxies().items())
        if name in (*DEFAULT_PORTS, "all") and value
    }


def is_loopback(host: str) -> bool:
    """True for this machine itself, by name or by address."""
    host = host.lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    if address is None:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:  # 127.1 and 0x7f000001, which the system takes for addresses
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _is_exempt(host: str, parts: SplitResult, no_proxy: str) -> bool:
    port = str(parts.port or DEFAULT_PORTS.get(parts.scheme))
    address = _address(host)
    for entry in no_proxy.lower().replace(",", " ").split():
        with_port = _WITH_PORT.fullmatch(entry)
        if with_port is not None and with_port[2] != port:
            continue
        name = (with_port[1] if with_port else entry).strip("[]")
        if name == "*":
            return True
        if _matches(name, host, address):
            return True
    return False


def _matches(name: str, host: str, address: _Address | None) -> bool:
    if address is not None:
        try:
            return address in ipaddress.ip_network(name, strict=False)
        except ValueError:
            return False
    name = name.removeprefix("*").removeprefix(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _variable(name: str) -> str:
    variables = (f"{name}_proxy", f"{name.upper()}_PROXY")
    return next((variable for variable in variables if os.environ.get(variable)), OF_SYSTEM)


def _usable(value: str, variable: str) -> str:
    url = value if "://" in value else f"http://{value}"
    scheme, _, rest = url.partition("://")
    scheme = {"socks": "socks5"}.get(scheme.lower(), scheme.lower())
    try:
        usable = scheme in SCHEMES and urlsplit(f"http://{rest}").hostname
        urlsplit(f"http://{rest}").port  # noqa: B018 - raises where it is no number
    except ValueError:
        usable = ""
    if not usable:
        shown = _LOGIN.sub("", value)[:100]
        raise ProxyUnusable(
            f"{variable} is not a proxy that the desk can use ({shown}): set it to "
            "http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT, or unset it"
        )
    return f"{scheme}://{rest}"
