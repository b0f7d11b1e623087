"""May these pipelines begin, and what does a call of theirs cost at least? Asked before a cycle."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import structlog

from contracts.message import Pipeline
from contracts.operation import Reserve
from contracts.provider import PipelineProblem, ProvidersQuery, ProvidersView
from contracts.subjects import ORCHESTRATOR, PROVIDERS
from contracts.types import Failure
from libs.bus.codec import MessageInvalid, decode, encode
from libs.bus.connection import Client
from libs.bus.operation import UNANSWERED

OFFLINE = "rules"
"""The provider that every desk has: nobody need be asked for it."""
PROVIDERS_TIMEOUT_S = 2.0
SOMETHING = Reserve(tokens=1, cost_usd=Decimal("0.00000001"))
"""What a call of a model costs where nobody knows: more than a spent budget has."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Outlook:
    """Why pipelines could not begin, if so, and the least that a call of theirs may cost.

    `hindrance` None: nothing speaks against them, or nobody knows. `needs` None: none is counted.
    """

    hindrance: Failure | None = None
    needs: Reserve | None = None


OutlookOf = Callable[[Sequence[Pipeline]], Awaitable[Outlook]]


class Providers:
    """Asks the service in which every pipeline begins, and which has the keys: may these begin,
    and what does a call of theirs cost at least?"""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, pipelines: Sequence[Pipeline]) -> Outlook:
        """The first problem, and what a call needs. Where nobody answers the work itself will tell
        of a problem, and a call needs something at least."""
        asked = tuple(each for each in pipelines if each.provider != OFFLINE or each.models)
        if not asked:
            return Outlook()
        query = encode(ProvidersQuery(pipelines=asked))
        try:
            answer = await self._client.request(
                PROVIDERS.by(ORCHESTRATOR), query, timeout=PROVIDERS_TIMEOUT_S
            )
            view = decode(ProvidersView, answer.data)
        except (*UNANSWERED, MessageInvalid) as error:
            log.warning("orchestrator.providers_unknown", error=type(error).__name__)
            return Outlook(needs=SOMETHING)
        return Outlook(_first(view.problems), view.needs)


def _first(problems: Sequence[PipelineProblem]) -> Failure | None:
    if not problems:
        return None
    text = f"pipeline {problems[0].pipeline}: {problems[0].message}"
    return Failure(code=problems[0].code, message=text, field="pipelines")
