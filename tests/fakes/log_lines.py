"""The log lines of a test, whoever set up the logs of its process before."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from structlog.testing import LogCapture
from structlog.typing import EventDict

OURS = ("contracts.", "libs.", "services.")


@contextmanager
def log_lines() -> Iterator[list[EventDict]]:
    """Collect what every module of ours logs, at any level.

    A logger keeps the set-up of its first line for good (`configure_logging`), so structlog's own
    `capture_logs` hears nothing of a logger that another test of the same process has used. Here
    each module has another logger meanwhile.
    """
    capture = LogCapture()
    logger = structlog.wrap_logger(
        None,
        processors=[structlog.contextvars.merge_contextvars, capture],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        cache_logger_on_first_use=False,
    )
    theirs = {
        name: module.log
        for name, module in list(sys.modules.items())
        # Some have the logarithm under that name.
        if name.startswith(OURS) and hasattr(getattr(module, "log", None), "bind")
    }
    for name in theirs:
        sys.modules[name].log = logger  # type: ignore[attr-defined]
    try:
        yield capture.entries
    finally:
        for name, log in theirs.items():
            sys.modules[name].log = log  # type: ignore[attr-defined]


def forget_log_setup() -> None:
    """Take back a set-up of the log, from loggers that keep it too: its stream is a test's own, and
    closed after that test."""
    if not structlog.is_configured():
        return
    structlog.reset_defaults()
    for name, module in list(sys.modules.items()):
        if name.startswith(OURS) and hasattr(log := getattr(module, "log", None), "bind"):
            vars(log).pop("bind", None)
