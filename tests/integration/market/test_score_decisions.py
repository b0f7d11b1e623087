"""Decisions scored on a live source: the same money as on its recorded prices."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.studies.command import app
from tests.fakes.yahoo_live import AS_OF, FIXTURE, Live

WEIGHTS = "time,ticker,weight\n" + "".join(
    f"{day},{ticker},0.5\n"
    for day, pair in {
        "2023-11-01": ("ALFA", "BRVO"),
        "2023-11-20": ("BRVO", "ECHO"),
        "2023-12-11": ("ECHO", "ALFA"),
        "2024-01-02": ("ALFA", "ZZZZ"),
    }.items()
    for ticker in pair
)
TRADES = (
    "time,ticker,action,quantity\n2023-11-01,ALFA,buy,400\n2023-12-01,BRVO,buy,100\n"
    "2024-02-01,ALFA,sell,400\n"
)


def money(prices: str, tmp_path: Path, text: str) -> tuple[list[float], dict[str, Any]]:
    file = tmp_path / "d.csv"
    file.write_text(text)
    words = ["score-decisions", str(file), "--prices", prices, "--until", AS_OF.isoformat()]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.exception
    score = json.loads(result.stdout)
    return [it["money"] for it in score["paths"]], score


@pytest.mark.parametrize("text", [WEIGHTS, TRADES], ids=["weights", "trades"])
def test_a_live_source_gives_the_money_of_its_recorded_prices(
    live: Live, tmp_path: Path, text: str
) -> None:
    asked, by_yahoo = money("yahoo", tmp_path, text)
    read, by_folder = money(str(FIXTURE), tmp_path, text)

    assert asked == pytest.approx(read, rel=1e-4)
    assert "Yahoo" in by_yahoo["prices"]
    assert set(by_yahoo["absent"]) == set(by_folder["absent"])
