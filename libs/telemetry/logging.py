"""Logs: structlog events with bound ids, to stderr: JSON for machines, colour for people."""

import logging
import sys

import structlog

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
QUIET = ("anthropic", "openai", "httpx", "httpx2", "httpcore", "httpcore2", "mcp", "nats")
"""Libraries that log bodies, headers or keys when they are let."""


def configure_logging(level: str = "info", style: str = "auto") -> None:
    """Set up structlog for this process. `style` auto is console on a terminal, else JSON."""
    people = style == "console" or (style == "auto" and sys.stderr.isatty())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
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
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
