"""Apprise's channels: mail, Slack, Telegram, ntfy and a hundred more, by one address each.

Each call of Apprise runs in a child process (`libs.channels.apprise_child`): it is killed at the
time limit, has a limit of memory, and nothing that it logs is kept. The address goes over stdin.
One address is one recipient: of several, some may have a message that others have not.
"""

import asyncio
import os
import sys
from typing import Any

import orjson
from pydantic import SecretStr

from libs.channels.channel import ChannelMessage, ChannelUnusable, MessageLimits, SendOutcome
from libs.runtime.proxies import ProxyUnusable, proxy_for

CHECK_S = 60.0
"""How long Apprise may take to load and read an address, beside the try itself."""
OPEN_TRIES = 3
"""Of reading an address at the start, where the answer is a passing fault."""
CHILD = "libs.channels.apprise_child"
ANY_HOST = "host.invalid"
THIS_MACHINE = "localhost,127.0.0.0/8,::1"
NEEDED = (
    "PATH",
    "PYTHON",
    "HOME",
    "LANG",
    "LC_",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "SSL_CERT_",
    "REQUESTS_CA_BUNDLE",
)
"""How the variables begin that a child gets: others may hold keys, ours and other programs'."""
CHILDREN_MAX = 6
"""At once, about 55 MB each: an alarm may go to twenty channels."""

_CHILDREN = asyncio.Semaphore(CHILDREN_MAX)


class AppriseChannel:
    """One address of Apprise's."""

    def __init__(self, address: SecretStr, timeout_s: float, limits: MessageLimits) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._limits = limits

    @classmethod
    async def opened(cls, name: str, address: SecretStr, timeout_s: float) -> "AppriseChannel":
        """The channel; nothing is sent. Raises ChannelUnusable where Apprise does not know the
        address, or where it leads to no one or to several."""
        for _ in range(OPEN_TRIES):
            answer = await _call({"url": address.get_secret_value()}, CHECK_S)
            if "code" not in answer:  # which says nothing of the address
                break
        problem = answer.get("problem") or answer.get("code")
        if problem:
            raise ChannelUnusable(f"channel {name}: {problem}")
        return cls(address, timeout_s, MessageLimits(**answer["limits"]))

    @property
    def limits(self) -> MessageLimits:
        """The service's own limits."""
        return self._limits

    async def send(self, message: ChannelMessage) -> SendOutcome:
        """Send the text."""
        request = {
            "url": self._address.get_secret_value(),
            "title": message.title,
            "body": message.body,
            "timeout_s": self._timeout_s,
        }
        answer = await _call(request, CHECK_S + self._timeout_s)
        return SendOutcome(str(answer.get("code", "plugin_failed")))


async def _call(request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """The child's answer; a `code` where there is none. The child has ended when this returns."""
    try:
        environment = _environment()
    except ProxyUnusable:
        return {"code": "proxy"}
    async with _CHILDREN:
        return await _answer_of_child(request, timeout_s, environment)


async def _answer_of_child(
    request: dict[str, Any], timeout_s: float, environment: dict[str, str]
) -> dict[str, Any]:
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            CHILD,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
        )
    except OSError:
        return {"code": "plugin_failed"}  # no memory, no process left: it is tried again
    try:
        async with asyncio.timeout(timeout_s):
            words, _ = await process.communicate(orjson.dumps(request))
        answer: dict[str, Any] = orjson.loads(words)
    except TimeoutError:
        return {"code": "timeout"}
    except orjson.JSONDecodeError:
        return {"code": "plugin_failed"}
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return answer


def _environment() -> dict[str, str]:
    """The child's variables: those that programs need, and the proxies as libs.runtime.proxies
    reads them. Raises ProxyUnusable."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(NEEDED)}
    for scheme in ("http", "https"):
        proxy = proxy_for(f"{scheme}://{ANY_HOST}")
        if proxy is not None:
            kept[f"{scheme}_proxy"] = proxy.url
    exempt = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    return {**kept, "no_proxy": ",".join(filter(None, (exempt, THIS_MACHINE)))}
