"""A channel: a message goes in, and its outcome comes out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from contracts.notice import Notice
from libs.runtime.errors import DeskError

REFUSALS = frozenset({"http_400", "http_413", "http_422", "smtp_552", "smtp_554"})
"""Codes of a channel that may have refused what the message holds."""


def hush(*loggers: str) -> None:
    """Silence packages that log addresses: the outcome of a message is logged instead."""
    for name in loggers:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


class ChannelUnusable(DeskError):
    """A channel's settings are invalid. The sentence never holds its address."""

    code = "channel_unusable"


@dataclass(frozen=True)
class MessageLimits:
    """How much one message may hold, in characters; `markup` is what the channel reads texts as.

    `title_chars_max` 0: there is no title, and the body begins with it.
    """

    title_chars_max: int
    body_chars_max: int
    markup: str = "text"


@dataclass(frozen=True)
class ChannelMessage:
    """A message: the text for people and, for programs, the notices that it tells."""

    title: str
    body: str
    notices: Sequence[Notice]


@dataclass(frozen=True)
class SendOutcome:
    """The channel took the message (`code` is empty), or not: `code` says why, and holds nothing of
    the address."""

    code: str = ""

    @property
    def sent(self) -> bool:
        """Whether the channel took it."""
        return not self.code


class Channel(Protocol):
    """A way to people."""

    @property
    def limits(self) -> MessageLimits:
        """How much one message may hold."""
        ...

    async def send(self, message: ChannelMessage) -> SendOutcome:
        """Send it; never raises, and takes no longer than its time limit."""
        ...
