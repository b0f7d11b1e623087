"""A desk as a person starts it, by its own commands, in a folder of its own."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from libs.runtime.settings import Settings
from services.cli.shell.running import RunningDesk, find_desk


async def deskbus(*words: str) -> None:
    """Run a command. Raises RuntimeError where it fails."""
    quiet = asyncio.subprocess.DEVNULL
    command = [sys.executable, "-m", "services.cli", *words]
    done = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    if await done.wait():
        raise RuntimeError(f"deskbus {' '.join(words)} exits {done.returncode}")


@asynccontextmanager
async def started_desk(
    folder: Path, *options: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[RunningDesk]:
    """`deskbus up --detach` with these options, and `deskbus down` after the block."""
    os.environ.update({"DESKBUS_DATA_DIR": str(folder), **(environment or {})})
    await deskbus("up", "--detach", *options)
    try:
        yield find_desk(Settings())
    finally:
        await deskbus("down")
