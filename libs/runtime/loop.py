"""The event loop of every process, uvloop where it exists, and its memory once it has started."""

import asyncio
import gc
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from contracts.message import build_all

T = TypeVar("T")

GARBAGE_LOOKED_FOR_AFTER = 10_000
"""New objects, less those that are gone, before garbage is looked for. Nearly all of a cycle's are
values without a way back to themselves, which go by themselves: Python's own 700 cost a twentieth
of the desk's time and found nothing."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop  # noqa: PLC0415 - there is none for Windows

    return uvloop.run(main)


def keep_started() -> None:
    """Leave what a started process consists of out of every later search for garbage, and search
    seldom."""
    build_all()
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_LOOKED_FOR_AFTER)
