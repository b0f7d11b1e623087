"""Files as people have them: each is read as EXPECT.toml says, or refused with its place."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from libs.files.finding import BadFile
from libs.market.calendar import exchange_calendar
from libs.market.replay.files import read_prices

FOLDER = Path(__file__).parents[2] / "data" / "own_files"
EXPECTED = tomllib.loads((FOLDER / "EXPECT.toml").read_text())


@pytest.mark.parametrize(("name", "expected"), EXPECTED["prices"].items(), ids=EXPECTED["prices"])
def test_a_file_of_prices_is_read_on_its_exchange(name: str, expected: dict[str, Any]) -> None:
    path = FOLDER / "prices" / name
    prices = read_prices(path, exchange_calendar(expected["exchange"]))
    frame = prices.frame
    assert (frame.height, frame["date"][0]) == (expected["rows"], expected["first"])
    assert frame["close"][0] == expected["close"]
    assert prices.form.name == expected.get("form", "the desk's own")
    assert prices.form.adjusted == expected.get("adjusted", "")
    if "elsewhere" in expected:
        with pytest.raises(BadFile, match=expected["says"].replace("+", r"\+")):
            read_prices(path, exchange_calendar(expected["elsewhere"]))


def test_every_case_is_expected() -> None:
    assert {path.name for path in (FOLDER / "prices").iterdir()} == set(EXPECTED["prices"])
