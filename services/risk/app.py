"""Wiring of the risk service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from contracts.risk import (
    DecisionValidation,
    PickReview,
    ReviewPicks,
    ValidateDecision,
    ValidateExits,
)
from libs.bus.route import Route, Routes
from libs.llm.provider import Provider
from libs.llm.registry import providers_of
from libs.runtime.settings import Settings
from services.risk.handler import validate_decision, validate_exits
from services.risk.review import review_picks, review_role


def routes(providers: Mapping[str, Provider], settings: Settings) -> Routes:
    """What the service hears and says. It reads no market and holds no account."""
    review = partial(review_picks, role=review_role(providers, settings))
    return Routes(
        service="risk",
        commands=(
            Route(hears=ReviewPicks, says=PickReview, handle=review),
            Route(hears=ValidateDecision, says=DecisionValidation, handle=validate_decision),
            Route(hears=ValidateExits, says=DecisionValidation, handle=validate_exits),
        ),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with providers_of(settings) as providers:
        yield routes(providers, settings)
