"""`deskbus performance`: how its figures look."""

import re
from decimal import Decimal

import pytest

from contracts.performance import PerformanceFigures, PerformanceView
from services.cli.trading import performance
from tests.unit.services.cli.screens import printed

RED, GREEN = "\x1b[31m", "\x1b[32m"


@pytest.mark.parametrize(
    ("pct", "colour"),
    [("-0.29", RED), ("-99.97", RED), ("2.37", GREEN)],
)
def test_a_loss_is_red_however_large(pct: str, colour: str) -> None:
    figures = PerformanceFigures(return_pct=Decimal(pct), max_drawdown_pct=Decimal(0))
    parts = performance.result("main", PerformanceView(account=figures))
    text = printed(parts, 120, colour=True)
    shown = f"{Decimal(pct):+}%"
    assert re.search(rf"{re.escape(colour)} *{re.escape(shown)}", text)
    assert not re.search(rf"{re.escape(RED)} *-\x1b", text), "a dash is no loss"
