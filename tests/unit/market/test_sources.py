"""Which source the settings choose: each of the four parts says so where there is none."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from libs.market.choice import BUNDLED_SESSION, SourceName, first_request
from libs.market.errors import UnknownSource
from libs.market.replay.market import ReplayFills, ReplayMarket
from libs.market.sources import (
    bad_files_of,
    fills_of,
    latest_session_of,
    market_of,
    rates_of,
    sessions_of,
)
from libs.runtime.settings import Settings

PARTS: tuple[Callable[[Settings], Any], ...] = (market_of, fills_of, rates_of, latest_session_of)


@pytest.mark.parametrize("part", PARTS)
def test_a_source_that_there_is_not_is_refused_with_those_that_there_are(
    part: Callable[[Settings], Any],
) -> None:
    settings = Settings().changed(market={"source": "bloomberg"})
    says = "DESKBUS_MARKET_SOURCE is 'bloomberg', which is not a market source; set it to replay or"
    with pytest.raises(UnknownSource, match=says) as refused:
        part(settings)
    assert (refused.value.code, refused.value.field) == ("unknown_source", "market.source")


def test_the_settings_take_every_source_that_there_is_and_no_other() -> None:
    for name in SourceName:
        assert Settings(market={"source": name}).market.source == name
    with pytest.raises(ValueError, match="market"):
        Settings(market={"source": "bloomberg"})


def test_without_a_choice_the_recorded_data_are_read() -> None:
    assert isinstance(market_of(Settings()), ReplayMarket)
    assert isinstance(fills_of(Settings()), ReplayFills)


def test_a_first_request_is_of_the_newest_session_but_of_the_bundled_prices(tmp_path: Path) -> None:
    newest = "deskbus cycle request --wait"
    assert first_request(Settings(market={"replay_dir": tmp_path})) == newest
    assert first_request(Settings(market={"source": "yahoo"})) == newest
    assert first_request(Settings()) == "deskbus cycle request --as-of 2012-06-29 --wait"


async def test_the_session_that_a_first_request_names_is_one_of_the_bundled_prices() -> None:
    await sessions_of(Settings()).require(BUNDLED_SESSION)


async def test_a_bad_row_of_records_costs_no_file(tmp_path: Path) -> None:
    header = "date,open,high,low,close,volume\n"
    (tmp_path / "AAA.csv").write_text(f"{header}2024-01-02,10,11,9,10.5,1000\n")
    (tmp_path / "fx.csv").write_text(
        "date,pair,rate\n2024-01-02,EURUSD,1.1\n2024-01-02,GBPUSD,abc\n"
    )
    settings = Settings(market={"replay_dir": tmp_path}, data_dir=tmp_path / "desk")
    await rates_of(settings).into("USD", datetime(2024, 1, 3, tzinfo=UTC))
    bad = await bad_files_of(settings)
    assert (set(bad.unused), set(bad.earlier), set(bad.rows)) == (set(), set(), {"fx"})
