"""The real yfinance against the stand-in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.yahoo_live import Live, live_fixture


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Live]:
    with live_fixture(monkeypatch, tmp_path) as found:
        yield found
