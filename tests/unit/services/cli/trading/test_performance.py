"""`deskbus performance`: how its figures look."""

import io
import re
from decimal import Decimal

import pytest
from rich.console import Console

from contracts.performance import PerformanceFigures, PerformanceView
from services.cli.trading import performance

RED, GREEN = "\x1b[31m", "\x1b[32m"


@pytest.mark.parametrize(
    ("pct", "colour"),
    [("-0.29", RED), ("-99.97", RED), ("2.37", GREEN)],
)
def test_a_loss_is_red_however_large(pct: str, colour: str) -> None:
    figures = PerformanceFigures(return_pct=Decimal(pct), max_drawdown_pct=Decimal(0))
    text = io.StringIO()
    console = Console(file=text, width=120, force_terminal=True, color_system="standard")
    performance.show_result("main", PerformanceView(account=figures), console)
    shown = f"{Decimal(pct):+}%"
    assert re.search(rf"{re.escape(colour)} *{re.escape(shown)}", text.getvalue())
    assert not re.search(rf"{re.escape(RED)} *-\x1b", text.getvalue()), "a dash is no loss"
