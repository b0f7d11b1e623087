"""Dropped messages: counted each time, logged the first, second, fourth, eighth ... time."""

from collections import Counter
from collections.abc import Sequence

import structlog

from libs.bus.connection import inbox_prefix
from libs.telemetry import metrics

_drops: Counter[tuple[str, str]] = Counter()

log = structlog.get_logger()


def replies_to(reply: str, callers: Sequence[str]) -> bool:
    """True where an answer on this subject goes into the inbox of one of these identities."""
    return any(reply.startswith(f"{inbox_prefix(caller)}.") for caller in callers)


def drop_message(why: str, caller: str, subject: str) -> None:
    """Tell that a message was dropped unread: `foreign_inbox`, `overflow`, or `no_command`."""
    metrics.DROPPED.add(why)
    _drops[why, caller] += 1
    times = _drops[why, caller]
    # Whoever floods must not fill the log too.
    if times & (times - 1) == 0:
        log.warning("bus.message_dropped", why=why, caller=caller, subject=subject, times=times)
