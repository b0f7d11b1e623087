"""The filters of lists in an address, as the queries that they stand for."""

from typing import Annotated

from fastapi import Query

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleSort, CyclesQuery
from contracts.message import PAGE_MAX
from contracts.operation import OperationsQuery, OperationStatus
from contracts.types import IdDigits, Name, ShortText, Sought
from services.console.http.bodies import Day

Limit = Annotated[int, Query(ge=1, le=PAGE_MAX)]
Count = Annotated[int, Query(ge=0, le=PAGE_MAX)]
Points = Annotated[int, Query(ge=2, le=PAGE_MAX)]
Since = Annotated[Day | None, Query(description="As of this session or a later one.")]
Until = Annotated[Day | None, Query(description="As of this session or an earlier one.")]
Text = Annotated[
    Sought | None,
    Query(description="A ticker, a word of the outcome or result, the first digits of an id."),
]
Before = Annotated[
    IdDigits | None,
    Query(description="Those behind this one in the list: the id that an answer has as `before`."),
]


def cycles_query(
    status: CycleStatus | None = None,
    kind: Name | None = None,
    account: Name | None = None,
    provider: Name | None = None,
    since: Since = None,
    until: Until = None,
    text: Text = None,
    sort: CycleSort = CycleSort.STARTED,
    ascending: bool = False,
    before: Before = None,
    limit: Limit = 20,
) -> CyclesQuery:
    """Which cycles are asked for."""
    return CyclesQuery(
        status=status,
        kind=kind,
        account=account,
        provider=provider,
        since=since,
        until=until,
        text=text,
        sort=sort,
        ascending=ascending,
        before=before,
        limit=limit,
    )


def operations_query(
    type: Annotated[  # noqa: A002 - the query's own word
        ShortText | None,
        Query(description="`cycle`, `agent_research`, `training`, or a step such as `plan`."),
    ] = None,
    status: OperationStatus | None = None,
    account: Name | None = None,
    since: Since = None,
    until: Until = None,
    text: Text = None,
    before: Before = None,
    limit: Limit = 50,
) -> OperationsQuery:
    """Which operations are asked for."""
    return OperationsQuery(
        type=type.lower() if type else None,
        status=status,
        account=account,
        since=since,
        until=until,
        text=text,
        before=before,
        limit=limit,
    )
