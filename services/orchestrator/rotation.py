"""Who trades the main account at which session. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import date
from functools import cache

from contracts.cycle import CycleRequest, Rotation
from libs.market.calendar import TABLE_FIRST, TABLE_LAST, exchange_calendar


def in_turn(request: CycleRequest, as_of: date) -> CycleRequest:
    """The request with the turn of as_of's session settled: who trades the account, and is main.

    As it is where it has no rotation, where it has settled the turn itself, and where whose turn it
    is has no pipeline in it.
    """
    rotation = request.rotation
    if rotation is None or request.main is not None:
        return request
    name = turn(rotation, as_of)
    if name not in {pipeline.name for pipeline in request.pipelines}:
        return request
    pipelines = tuple(
        pipeline.model_copy(update={"account": rotation.account})
        if pipeline.name == name
        else pipeline
        for pipeline in request.pipelines
    )
    return request.model_copy(update={"pipelines": pipelines, "main": name})


def turn(rotation: Rotation, as_of: date) -> str:
    """The pipeline whose turn it is: by the number of New York's sessions up to as_of, so that
    week-ends and holidays take nobody's turn. A day without a session has that of the one before.
    """
    return rotation.order[bisect_right(_sessions(), as_of) % len(rotation.order)]


@cache
def _sessions() -> Sequence[date]:
    return exchange_calendar().sessions(TABLE_FIRST, TABLE_LAST)
