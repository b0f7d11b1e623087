"""Which source the settings choose: each of the four parts says so where there is none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from libs.market.choice import BUNDLED_SESSION, SourceName, first_request
from libs.market.errors import UnknownSource
from libs.market.replay.market import ReplayFills, ReplayMarket
from libs.market.sources import fills_of, latest_session_of, market_of, rates_of, sessions_of
from libs.runtime.settings import Settings

PARTS: tuple[Callable[[Settings], Any], ...] = (market_of, fills_of, rates_of, latest_session_of)


@pytest.mark.parametrize("part", PARTS)
def test_a_source_that_there_is_not_is_refused_with_those_that_there_are(
    part: Callable[[Settings], Any],
) -> None:
    settings = Settings().model_copy(update={"market": "bloomberg"})
    says = r"DESKBUS_MARKET is 'bloomberg', which is not a market source; set it to replay or yahoo"
    with pytest.raises(UnknownSource, match=says) as refused:
        part(settings)
    assert (refused.value.code, refused.value.field) == ("unknown_source", "market")


def test_the_settings_take_every_source_that_there_is_and_no_other() -> None:
    for name in SourceName:
        assert Settings(market=name).market == name
    with pytest.raises(ValueError, match="market"):
        Settings(market="bloomberg")


def test_without_a_choice_the_recorded_data_are_read() -> None:
    assert isinstance(market_of(Settings()), ReplayMarket)
    assert isinstance(fills_of(Settings()), ReplayFills)


def test_a_first_request_is_of_the_newest_session_but_of_the_bundled_prices(tmp_path: Path) -> None:
    newest = "deskbus cycle request --wait"
    assert first_request(Settings(replay_dir=tmp_path)) == newest
    assert first_request(Settings(market="yahoo")) == newest
    assert first_request(Settings()) == "deskbus cycle request --as-of 2012-06-29 --wait"


async def test_the_session_that_a_first_request_names_is_one_of_the_bundled_prices() -> None:
    await sessions_of(Settings()).require(BUNDLED_SESSION)
