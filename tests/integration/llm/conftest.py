"""The loop over each of the two SDKs."""

import asyncio

import pytest

from libs.runtime.journal import Journal
from tests.fakes.model_bench import WIRES, Speaking, bench_of


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries are not slept."""

    async def no_pause(_journal: Journal, _wait_s: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(Journal, "pause", no_pause)


@pytest.fixture(params=WIRES)
def speaking(request: pytest.FixtureRequest, no_waits: None) -> Speaking:
    """Makes a bench over one of the two SDKs."""
    return bench_of(request.param)


@pytest.fixture
def on_claude(no_waits: None) -> Speaking:
    """Makes a bench over Anthropic's."""
    return bench_of("claude")


@pytest.fixture
def on_openai(no_waits: None) -> Speaking:
    """Makes a bench over OpenAI's."""
    return bench_of("openai")
