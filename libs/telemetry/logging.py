"""Logs: structlog events with bound ids, to stderr: JSON for machines, colour for people.

A log never stops what it tells of: where a line cannot be written (a full disk, a reader that is
gone), the desk goes on, and the next line that can be written says how many are missing.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TextIO, cast

import structlog

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
QUIET = ("anthropic", "openai", "httpx", "httpx2", "httpcore", "httpcore2", "mcp", "nats")
"""Libraries that log bodies, headers or keys when they are let."""

HARMLESS = "returning true from eof_received() has no effect when using ssl"
"""asyncio's warning at the end of each TLS connection of nats-py, whose protocol object was made
before the connection became TLS. Nothing follows from it."""


class Sink(Protocol):
    """Where lines of a log go: a stream, or a file that begins a new one when it has grown."""

    def write(self, text: str, /) -> int:
        """Append a text."""

    def flush(self) -> None:
        """Hand it over to the system."""


class _LossySink:
    """Writes to a sink, and counts the lines that it does not take."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lost = 0

    def write(self, text: str) -> int:
        """Append a text and hand it over, if that is possible."""
        try:
            written = self._sink.write(text)
            self._sink.flush()
        except (OSError, ValueError):  # a ValueError: the file is closed
            self._lost += 1
            return 0
        self._lost = 0
        return written

    def flush(self) -> None:
        """Nothing is left to hand over: `write` has done it."""

    def count_lost(self, _logger: Any, _level: str, event: Any) -> Any:
        """A processor of structlog: how many lines before this one are missing."""
        return {**event, "lines_lost": self._lost} if self._lost else event


def configure_logging(
    level: str = "info",
    style: str = "auto",
    file: Sink | None = None,
    on_error: Callable[[str], None] | None = None,
) -> None:
    """Set up structlog for this process. `style` auto is console on a terminal, else JSON.

    With a `file` events go there, as JSON, and not to stderr; `on_error` hears the name of each
    that is an error.
    """
    sink = _LossySink(file or sys.stderr)
    people = file is None and (style == "console" or (style == "auto" and sys.stderr.isatty()))
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("asyncio").addFilter(_is_worth_a_line)
    renderer: structlog.typing.Processor = (
        # The default for consoles prints the variables of every frame, and a key may be one.
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if people
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            *([] if people else [structlog.processors.format_exc_info]),
            *([] if on_error is None else [_telling(on_error)]),
            sink.count_lost,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, sink)),
        cache_logger_on_first_use=True,
    )


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    return record.msg != HARMLESS


def _telling(on_error: Callable[[str], None]) -> "structlog.typing.Processor":
    def tell(_logger: Any, level: str, event: Any) -> Any:
        if level in {"error", "critical", "exception"}:
            with suppress(OSError):  # the terminal is gone
                on_error(str(event.get("event", "")))
        return event

    return tell
