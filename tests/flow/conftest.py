"""The thinking services over the bundled prices, without a socket."""

from collections.abc import Sequence

import pytest

from libs.bus.route import Route
from libs.runtime.settings import Settings
from services.assessment import app as assessment
from services.research import app as research
from services.risk import app as risk
from services.sentiment import app as sentiment
from services.trader import app as trader
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination


async def thinking_routes(settings: Settings) -> Sequence[Route]:
    found: list[Route] = []
    for app in (sentiment, research, trader, risk, assessment):
        async with app.service(settings) as routes:
            found += routes.commands
    return found


@pytest.fixture
async def desk() -> InProcessDesk:
    settings = Settings()
    routes = await thinking_routes(settings)
    return InProcessDesk([*routes, *broker_of_the_imagination()], settings)
