"""Tasks beside a block."""

import asyncio

import pytest

from libs.runtime import background
from libs.runtime.background import Background

WAIT_S = 10


async def test_a_task_whose_cancellation_came_out_as_a_lost_connection_ends_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "CANCEL_EVERY_S", 0.01)
    lost = 0

    async def tries_again() -> None:
        nonlocal lost
        while True:
            try:
                try:
                    await asyncio.Event().wait()
                finally:
                    if lost < 2:
                        lost += 1
                        raise ConnectionError("the server has gone")
            except ConnectionError:
                continue

    async with asyncio.timeout(WAIT_S):
        async with Background(tries_again()):
            await asyncio.sleep(0)

    assert lost == 2


async def test_what_ends_a_task_is_told_and_the_others_end_with_the_block() -> None:
    ended = asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def fails() -> None:
        raise ValueError("broken")

    async with asyncio.timeout(WAIT_S):
        with pytest.raises(ValueError, match="broken"):
            async with Background(waits(), fails()) as running:
                await running.failed()

    assert ended.is_set()
