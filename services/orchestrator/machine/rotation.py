"""Who trades the main account at which session. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import date
from functools import cache

from contracts.cycle import CycleRequest, Rotation
from contracts.message import Pipeline
from libs.market.calendar import TABLE_FIRST, TABLE_LAST, exchange_calendar


def in_turn(request: CycleRequest, as_of: date) -> CycleRequest:
    """The request with the turn of as_of's session settled: who trades the account, and is main.

    As it is where it has no rotation, or has settled the turn itself. A pipeline that names an
    account trades that one, also in its turn; nobody trades the rotation's account then, nor where
    whose turn it is has no pipeline.
    """
    rotation = request.rotation
    if rotation is None or request.main is not None:
        return request
    name = turn(rotation, as_of)

    def settled(pipeline: Pipeline) -> Pipeline:
        if pipeline.account_named:
            return pipeline
        account = rotation.account if pipeline.name == name else pipeline.name
        return pipeline.model_copy(update={"account": account, "account_named": True})

    pipelines = tuple(map(settled, request.pipelines))
    trades = any(pipeline.account == rotation.account for pipeline in pipelines)
    update = {"pipelines": pipelines, "main": name if trades else None}
    return request.model_copy(update=update)


def turn(rotation: Rotation, as_of: date) -> str:
    """The pipeline whose turn it is: by the number of New York's sessions up to as_of, so that
    week-ends and holidays take nobody's turn. A day without a session has that of the one before.
    """
    return rotation.order[bisect_right(_sessions(), as_of) % len(rotation.order)]


@cache
def _sessions() -> Sequence[date]:
    return exchange_calendar().sessions(TABLE_FIRST, TABLE_LAST)
