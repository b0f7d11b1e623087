"""The event loop of every process, uvloop where it exists, and its memory once it has started."""

import asyncio
import gc
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from contracts.message import build_all

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop  # noqa: PLC0415 - there is none for Windows

    return uvloop.run(main)


def keep_started() -> None:
    """Leave what a started process consists of out of every later search for garbage."""
    build_all()
    gc.collect()
    gc.freeze()
