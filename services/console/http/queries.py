"""The query of a request: every name that it has must be one that its path takes."""

from collections.abc import Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from libs.runtime.errors import few
from libs.runtime.nearest import did_you_mean, nearest
from libs.web.problem import HttpProblem


def known_names(request: Request) -> None:
    """Refuse a query with a name that the path does not take.

    Left alone it would be answered as if it were not there: `acount=mine` with the books of `main`.
    """
    route: APIRoute = request.scope["route"]
    taken = tuple(dict.fromkeys(_names(route.dependant)))
    unknown = next((name for name in request.query_params if name not in taken), None)
    if unknown is None:
        return
    there = f"the path takes {few(taken)}" if taken else "the path takes no query"
    raise HttpProblem(
        422,
        "invalid",
        f"query.{unknown[:40]}: unknown; {there}{did_you_mean(nearest(unknown, taken))}",
        field=f"query.{unknown[:40]}",
    )


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for part in dependant.dependencies:
        yield from _names(part)
