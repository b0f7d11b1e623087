"""Errors of HTTP requests, as problems (RFC 9457)."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeVar

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path
from starlette.types import ASGIApp

from contracts.cycle import RequestAnswer
from contracts.notice import ChannelTested
from contracts.schedule import JobAnswer
from contracts.study import StudyAnswer
from contracts.upkeep import LetterAnswer
from libs.bus.client import DeskNotReachable
from libs.bus.health import BUS_AWAY
from libs.postgres.pool import DatabaseUnavailable
from libs.runtime.errors import DeskError
from libs.runtime.wording import WHOLE, problems_of
from libs.web.problem import COME_AGAIN_S, HttpProblem, unavailable

REFUSALS: Mapping[str, HTTPStatus] = {
    "active_cycle_exists": HTTPStatus.CONFLICT,
    "at_work": HTTPStatus.CONFLICT,
    "budget_exhausted": HTTPStatus.TOO_MANY_REQUESTS,
    "busy": HTTPStatus.TOO_MANY_REQUESTS,
    "changed_file": HTTPStatus.CONFLICT,
    "channel_unknown": HTTPStatus.NOT_FOUND,
    "decided": HTTPStatus.CONFLICT,
    "ended": HTTPStatus.CONFLICT,
    "expired": HTTPStatus.CONFLICT,
    "key_reused": HTTPStatus.CONFLICT,
    "no_operation": HTTPStatus.CONFLICT,
    "not_a_command": HTTPStatus.CONFLICT,
    "not_a_proposer": HTTPStatus.FORBIDDEN,
    "not_found": HTTPStatus.NOT_FOUND,
    "not_set": HTTPStatus.CONFLICT,
    "not_waiting": HTTPStatus.CONFLICT,
    "proposal_changed": HTTPStatus.CONFLICT,
    "rate_limited": HTTPStatus.BAD_GATEWAY,
    "source_unavailable": HTTPStatus.BAD_GATEWAY,
    "suspect": HTTPStatus.CONFLICT,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too_late": HTTPStatus.CONFLICT,
    "too_many": HTTPStatus.CONFLICT,
    "too_often": HTTPStatus.TOO_MANY_REQUESTS,
    "unknown_account": HTTPStatus.NOT_FOUND,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "unreadable": HTTPStatus.CONFLICT,
    "waits_for_person": HTTPStatus.CONFLICT,
}
"""By the desk's own code; every other refusal is of something in the request: 422."""
NOTHING_THERE = frozenset({"not_an_equity", "not_held", "unknown_ticker"})
"""Of questions alone, 404: a request that names such a thing is refused as any other is."""
NO_SUCH_PATH = "no such path; see /api/v1/openapi.json for all paths"
CODES: Mapping[int, tuple[str, str]] = {
    404: ("not_found", NO_SUCH_PATH),
    405: ("method_not_allowed", "method not allowed; the header Allow lists the allowed ones"),
}
"""What the framework refuses by itself."""

Shown = Callable[[Request, HttpProblem], ASGIApp]

log = structlog.get_logger()


Accepted = TypeVar("Accepted", bound=RequestAnswer | LetterAnswer | JobAnswer | StudyAnswer)


def accepted(answer: Accepted) -> Accepted:
    """The desk's answer, where it is a yes. Raises `HttpProblem` where it is a no."""
    if answer.outcome == "accepted":
        return answer
    about = {name: getattr(answer, name, None) for name in ("field", "suggestion", "cycle_id")}
    again_at, status = getattr(answer, "retry_at", None), getattr(answer, "status", None)
    raise _refused(answer.code or "refused", answer.message, again_at, cycle_status=status, **about)


def sent(answer: ChannelTested) -> ChannelTested:
    """The notifier's answer, where the channel took the message. Raises `HttpProblem` where not."""
    if answer.sent:
        return answer
    status = REFUSALS.get(answer.code, HTTPStatus.BAD_GATEWAY)
    raise HttpProblem(status, answer.code or "not_sent", answer.message)


def _refused(code: str, detail: str, again_at: datetime | None = None, **more: Any) -> HttpProblem:
    """The refusal under the desk's own code."""
    status = REFUSALS.get(code, HTTPStatus.UNPROCESSABLE_ENTITY)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return unavailable(detail)
    again = {"Retry-After": str(_seconds_until(again_at))}
    headers = again if status == HTTPStatus.TOO_MANY_REQUESTS else {}
    return HttpProblem(status, code, detail, headers=headers, **more)


def _seconds_until(at: datetime | None) -> int:
    if at is None:
        return COME_AGAIN_S
    return max(math.ceil((at - datetime.now(UTC)).total_seconds()), 1)


def not_found(detail: str) -> HttpProblem:
    """Nothing has this id or name."""
    return HttpProblem(HTTPStatus.NOT_FOUND, "not_found", detail)


def invalid(errors: Sequence[Any]) -> HttpProblem:
    """Pydantic's errors of a request, with the first field at fault."""
    detail, field = problems_of(errors)
    return HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", detail, field=field)


def tell_problems(app: FastAPI, shown: Shown | None = None) -> None:
    """Answer every error of the application as a problem; `shown` says how, where not as JSON."""

    def telling(refusal: Callable[[Request, Any], HttpProblem]) -> Any:
        async def tell(request: Request, error: Exception) -> ASGIApp:
            refused = refusal(request, error)
            return refused.response if shown is None else shown(request, refused)

        return tell

    for kind, refusal in REFUSAL_OF.items():
        app.add_exception_handler(kind, telling(refusal))


def _not_valid(_: Request, error: RequestValidationError) -> HttpProblem:
    # FastAPI tells the byte at which a body stops being JSON as if that were a field.
    errors = [
        {**one, "loc": (WHOLE,)} if one["type"] == "json_invalid" else one for one in error.errors()
    ]
    return invalid(errors)


def _of_the_framework(request: Request, error: HTTPException) -> HttpProblem:
    if error.status_code == HTTPStatus.BAD_REQUEST:  # what Python's own reader of JSON gives up on
        text = f"{WHOLE}: is not valid JSON: too deep, or a number too long"
        return HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", text, field=WHOLE)
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = _allowed(request.app, request.url.path) or headers.get("Allow", "")
    unknown = ("refused", HTTPStatus(error.status_code).phrase)
    code, detail = CODES.get(error.status_code, unknown)
    return HttpProblem(error.status_code, code, detail, headers=headers)


def _allowed(app: FastAPI, path: str) -> str:
    """The methods of a path; the framework tells only those of the first function that fits."""
    rows = (
        method.upper()
        for template, methods in app.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in methods
    )
    return ", ".join(sorted(rows))


def _of_the_desk(_: Request, error: DeskError) -> HttpProblem:
    if error.code in NOTHING_THERE:
        return HttpProblem(HTTPStatus.NOT_FOUND, error.code, error.message)
    return _refused(error.code, error.message, field=error.field, suggestion=error.suggestion)


def _no_bus(_: Request, error: Exception) -> HttpProblem:
    log.warning("http.no_bus", error=f"{type(error).__name__}: {error}"[:300])
    return unavailable("NATS does not answer, so this cannot be shown now")


def _no_database(_: Request, error: Exception) -> HttpProblem:
    log.warning("http.no_database", error=f"{type(error).__name__}: {error}"[:300])
    return unavailable("Postgres does not answer, so this cannot be shown now")


def _unforeseen(request: Request, error: Exception) -> HttpProblem:
    log.error("http.failed", path=request.url.path, exc_info=error)
    text = "internal error; see the desk's log"
    return HttpProblem(HTTPStatus.INTERNAL_SERVER_ERROR, "fault", text)


REFUSAL_OF: Mapping[type[Exception], Callable[[Request, Any], HttpProblem]] = {
    HttpProblem: lambda _, error: error,
    RequestValidationError: _not_valid,
    HTTPException: _of_the_framework,
    DeskNotReachable: lambda _, error: unavailable(str(error)),
    DeskError: _of_the_desk,
    BUS_AWAY: _no_bus,
    DatabaseUnavailable: _no_database,
    Exception: _unforeseen,
}
"""By the error: the problem that it is told as."""
