"""The two sources that every market test can use: real bundled prices and the made-up fixture."""

from pathlib import Path

import pytest

from libs.market.replay.market import ReplayFills, ReplayMarket, ReplayStore

FIXTURE_DIRECTORY = Path(__file__).parents[2] / "data" / "fixture_market"


@pytest.fixture(scope="session")
def bundled_store() -> ReplayStore:
    return ReplayStore()


@pytest.fixture(scope="session")
def fixture_store() -> ReplayStore:
    return ReplayStore(FIXTURE_DIRECTORY)


@pytest.fixture(scope="session")
def bundled(bundled_store: ReplayStore) -> ReplayMarket:
    return ReplayMarket(bundled_store)


@pytest.fixture(scope="session")
def fixture(fixture_store: ReplayStore) -> ReplayMarket:
    return ReplayMarket(fixture_store)


@pytest.fixture(scope="session")
def bundled_fills(bundled_store: ReplayStore) -> ReplayFills:
    return ReplayFills(bundled_store)


@pytest.fixture(scope="session")
def fixture_fills(fixture_store: ReplayStore) -> ReplayFills:
    return ReplayFills(fixture_store)
