"""A channel: a message goes in, and its outcome comes out."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from contracts.notice import NEXT_MAX, Notice
from libs.runtime.errors import DeskError

RETRY_AFTER_S_MAX = 3_600.0
"""The longest wait that a channel may ask for: it is tried again after that, whatever it says."""
BAD_BODY = frozenset({400, 413, 422})
"""Statuses that say no to what was sent, and would again; any other may be put right elsewhere."""
_SECONDS = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


def hush(*loggers: str) -> None:
    """Have packages that log the addresses they speak to log nothing: what there is to say of a
    message is its outcome."""
    for name in loggers:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


class ChannelUnusable(DeskError):
    """A channel cannot be used as it is set. The sentence never holds its address."""

    code = "channel_unusable"


@dataclass(frozen=True)
class Limits:
    """How much one message may hold, in characters; `markup` is what the channel reads texts as.

    `title_chars_max` 0: there is no title, and the body begins with it.
    """

    title_chars_max: int
    body_chars_max: int
    markup: str = "text"
    notices_max: int = NEXT_MAX


@dataclass(frozen=True)
class Message:
    """A message: the text for people and, for programs, the notices that it tells."""

    title: str
    body: str
    notices: Sequence[Notice]


@dataclass(frozen=True)
class Sent:
    """The channel took it."""


@dataclass(frozen=True)
class Failed:
    """It did not, or nobody knows. `code` is for machines and holds nothing of the address.

    `refused`: the channel reads no such message, now or later. `retry_after_s` is what it asked
    for.
    """

    code: str
    refused: bool = False
    retry_after_s: float | None = None


Outcome = Sent | Failed


class Channel(Protocol):
    """A way to people."""

    @property
    def limits(self) -> Limits:
        """How much one message may hold."""
        ...

    async def send(self, message: Message) -> Outcome:
        """Send it; never raises, and takes no longer than its time limit."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


def by_status(status: int, retry_after: str | None) -> Outcome:
    """How a message fared by the status that an HTTP server answered with."""
    if 200 <= status < 300:
        return Sent()
    return Failed(f"http_{status}", status in BAD_BODY, _seconds(retry_after))


def _seconds(text: str | None) -> float | None:
    """Of a Retry-After header; a date, or what cannot be read, is None: the usual wait will do."""
    if text is None or not _SECONDS.fullmatch(text.strip()):
        return None
    return min(float(text), RETRY_AFTER_S_MAX)
