"""The lines of `deskbus doctor` on what the environment of this machine changes."""

from collections.abc import Iterator, Sequence

from libs.llm.endpoints.endpoint import endpoints_of
from libs.llm.registry import NotUsable, all_providers
from libs.market.choice import Kind, PartName, SourceName, chosen
from libs.runtime.errors import DeskError
from libs.runtime.proxies import proxy_for, set_proxies
from libs.runtime.settings import Settings
from services.cli.operating.checks import Check, ok, problem

OF_SOURCE = {
    SourceName.YAHOO: "https://query1.finance.yahoo.com",
    PartName.EDGAR: "https://data.sec.gov",
}
MESSAGES = "https://messages.example.org"
"""Stands for whoever takes messages over HTTPS: their addresses are secret."""


def proxies(settings: Settings) -> Sequence[Check]:
    """The proxies that are set here, and what goes through each; nothing where none is set."""
    shown = set_proxies()
    if not shown:
        return []
    through: dict[str, list[str]] = {f"{name} {url}": [] for name, url in shown.items()}
    directly = []
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


def _addresses(settings: Settings) -> Iterator[tuple[str, str]]:
    """Whom the desk speaks HTTP to, and an address of each."""
    endpoints = endpoints_of(settings)
    for name, provider in all_providers(settings).items():
        if name in endpoints and not isinstance(provider, NotUsable):
            yield name, endpoints[name].base_url
    for source in sorted({chosen(settings, kind) for kind in Kind}):
        if source in OF_SOURCE:
            yield source, OF_SOURCE[source]
    if settings.notify.channels:
        yield "messages", MESSAGES
