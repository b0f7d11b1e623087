"""A request that is not done, told as a problem (RFC 9457)."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from contracts.http import PROBLEM_TYPE, Problem
from contracts.types import shortened
from libs.runtime.setting_names import as_set

PROBLEM_JSON = "application/problem+json"
COME_AGAIN_S = 2
"""Told with a 503: servers and services that were lost are back within seconds."""
DETAIL_CHARS_MAX = 2_000


class HttpProblem(Exception):
    """Ends a request with a problem."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(
            type=f"{PROBLEM_TYPE}:{code}",
            title=code.replace("_", " "),
            status=status,
            detail=shortened(as_set(detail), DETAIL_CHARS_MAX),
            code=code,
            **more,
        )
        self.headers = dict(headers or {})

    @property
    def response(self) -> Response:
        """The problem as it is sent."""
        body = self.problem.model_dump_json(exclude_none=True)
        return Response(body, self.problem.status, self.headers, PROBLEM_JSON)


def unavailable(detail: str) -> HttpProblem:
    """A part of the desk does not answer."""
    return HttpProblem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "unavailable",
        detail,
        headers={"Retry-After": str(COME_AGAIN_S)},
    )
