"""The desk's own client against the stand-in of Alpaca's data host."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.alpaca_live import AlpacaLive, alpaca_serving


@pytest.fixture
def alpaca(tmp_path: Path) -> Iterator[AlpacaLive]:
    with alpaca_serving(tmp_path) as live:
        yield live
