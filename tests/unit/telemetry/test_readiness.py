"""Checks and samples: a part that is broken is named, and hides no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from math import isnan

import pytest
from structlog.testing import CapturingLogger

from libs.servers.embedded_thread import held_in_thread
from libs.telemetry import metrics, readiness
from libs.telemetry.metric import REGISTRY


async def fine() -> str:
    return ""


async def broken() -> str:
    raise ConnectionError("gone")


async def hanging() -> str:
    await asyncio.Event().wait()
    return ""


async def test_all_is_well_where_every_check_passes() -> None:
    with readiness.checked("t one", fine), readiness.checked("t two", fine):
        assert await readiness.problems() == {}
        assert REGISTRY.get_sample_value("deskbus_ready", {"check": "t one"}) == 1


async def test_what_is_wrong_is_said_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "WATCH_TIMEOUT_S", 0.02)
    with (
        readiness.checked("t a", fine),
        readiness.checked("t b", broken),
        readiness.checked("t c", hanging),
    ):
        said = await readiness.problems()
        assert said == {"t b": "ConnectionError: gone", "t c": "no answer within 0.02 s"}
        assert REGISTRY.get_sample_value("deskbus_ready", {"check": "t b"}) == 0


async def test_what_hangs_and_cannot_be_cancelled_is_not_waited_for_nor_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "WATCH_TIMEOUT_S", 0.02)
    thawed, asked = asyncio.Event(), 0

    async def frozen() -> str:
        nonlocal asked
        asked += 1
        while not thawed.is_set():
            with suppress(asyncio.CancelledError):  # as asyncpg with a frozen server
                await thawed.wait()
        return ""

    with readiness.checked("t frozen", frozen):
        for _ in range(3):
            assert await readiness.problems() == {"t frozen": "no answer within 0.02 s"}
        assert asked == 1
        thawed.set()
        # The check that hung ends by itself; the next question is a new one.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await readiness.problems() == {}


async def test_a_check_that_is_asked_often_answers_once_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "FRESH_S", 3_600.0)
    asked = 0

    async def costly() -> str:
        nonlocal asked
        asked += 1
        return ""

    with readiness.checked("t costly", costly):
        await asyncio.gather(*(readiness.problems() for _ in range(20)))
    assert asked == 1


async def test_a_part_is_asked_in_the_loop_that_it_lives_in() -> None:
    asked_in = []

    async def where() -> str:
        asked_in.append(asyncio.get_running_loop())
        return ""

    @asynccontextmanager
    async def elsewhere() -> AsyncIterator[asyncio.AbstractEventLoop]:
        with readiness.checked("t elsewhere", where):
            yield asyncio.get_running_loop()

    with held_in_thread(elsewhere) as its_loop:
        assert await readiness.problems() == {}
    assert asked_in == [its_loop]
    assert its_loop is not asyncio.get_running_loop()


async def test_a_part_that_has_ended_is_not_asked() -> None:
    with readiness.checked("t a", broken):
        pass
    assert await readiness.problems() == {}
    assert REGISTRY.get_sample_value("deskbus_ready", {"check": "t a"}) is None


async def test_a_figure_that_cannot_be_read_is_left_out_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "log", CapturingLogger())
    readable = True

    async def halts() -> None:
        if not readable:
            raise ConnectionError
        metrics.HALTS.set(2)

    async def letters() -> None:
        metrics.LETTERS.set(3)

    with (
        readiness.sampled("t halts", halts, (metrics.HALTS,)),
        readiness.sampled("t letters", letters, (metrics.LETTERS,)),
    ):
        await readiness.sample()
        assert REGISTRY.get_sample_value("deskbus_halts") == 2
        readable = False
        await readiness.sample()
        assert isnan(REGISTRY.get_sample_value("deskbus_halts") or 0)
        assert REGISTRY.get_sample_value("deskbus_dead_letters_kept") == 3
    failed = REGISTRY.get_sample_value("deskbus_samples_failed_total", {"sample": "t halts"})
    assert failed == 1
