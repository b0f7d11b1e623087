"""The version of the market data that the code running now reads: fixed for the work of a cycle."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_version: ContextVar[str | None] = ContextVar("data_version", default=None)


@contextmanager
def reading(version: str | None) -> Iterator[None]:
    """Read this version while the block runs; None reads the newest one."""
    before = _version.set(version)
    try:
        yield
    finally:
        _version.reset(before)


def version_read() -> str | None:
    """The version to read; None for the newest."""
    return _version.get()
