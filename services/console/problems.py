"""What goes wrong with an HTTP request, told as a problem (RFC 9457)."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from contracts.cycle import RequestAnswer
from libs.bus.client import DeskNotReachable, QuestionRefused
from libs.bus.codec import MessageInvalid, MessageTooLarge, problems_of
from libs.postgres.pool import NO_CONNECTION
from libs.runtime.errors import DeskError
from libs.web.problem import COME_AGAIN_S, Refused, unavailable

REFUSALS: Mapping[str, HTTPStatus] = {
    "active_cycle_exists": HTTPStatus.CONFLICT,
    "budget_exhausted": HTTPStatus.TOO_MANY_REQUESTS,
    "busy": HTTPStatus.TOO_MANY_REQUESTS,
    "decided": HTTPStatus.CONFLICT,
    "expired": HTTPStatus.CONFLICT,
    "key_reused": HTTPStatus.CONFLICT,
    "not_found": HTTPStatus.NOT_FOUND,
    "not_waiting": HTTPStatus.CONFLICT,
    "proposal_changed": HTTPStatus.CONFLICT,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too_late": HTTPStatus.CONFLICT,
}
"""By the desk's own code; every other refusal is of something in the request: 422."""
CODES: Mapping[int, tuple[str, str]] = {
    404: ("not_found", "there is nothing at this path; /api/v1/openapi.json lists what there is"),
    405: ("method_not_allowed", "this path does not take this method; Allow lists those it takes"),
}
"""What the framework refuses by itself."""

log = structlog.get_logger()


def accepted(answer: RequestAnswer) -> RequestAnswer:
    """The desk's answer, where it is a yes. Raises `Refused` where it is a no."""
    if answer.outcome == "accepted":
        return answer
    code = answer.code or "refused"
    status = REFUSALS.get(code, HTTPStatus.UNPROCESSABLE_ENTITY)
    headers = {}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        headers["Retry-After"] = str(_seconds_until(answer.retry_at))
    raise Refused(
        status,
        code,
        answer.message,
        headers=headers,
        field=answer.field,
        cycle_id=answer.cycle_id,
        cycle_status=answer.status,
    )


def _seconds_until(at: datetime | None) -> int:
    if at is None:
        return COME_AGAIN_S
    return max(math.ceil((at - datetime.now(UTC)).total_seconds()), 1)


def not_found(detail: str) -> Refused:
    """Nothing has this id or name."""
    return Refused(HTTPStatus.NOT_FOUND, "not_found", detail)


def invalid(errors: Sequence[Any]) -> Refused:
    """Pydantic's errors of a request, with the first field at fault."""
    detail, field = problems_of(errors)
    return Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", detail, field=field)


def tell_problems(app: FastAPI) -> None:
    """Answer every error of the application as a problem."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _of_the_framework)
    app.add_exception_handler(MessageInvalid, _no_message)
    app.add_exception_handler(MessageTooLarge, _no_message)
    app.add_exception_handler(QuestionRefused, _desk_refused)
    app.add_exception_handler(DeskNotReachable, _not_reachable)
    for kind in NO_CONNECTION:
        app.add_exception_handler(kind, _no_database)
    app.add_exception_handler(Exception, _unforeseen)


async def _refused(_: Request, error: Exception) -> Response:
    return error.response if isinstance(error, Refused) else await _unforeseen(_, error)


async def _not_valid(_: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else ()
    return invalid(found).response


async def _of_the_framework(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = _allowed(request.app, request.url.path) or headers.get("Allow", "")
    code, detail = CODES.get(status, ("refused", HTTPStatus(status).phrase))
    return Refused(status, code, detail, headers=headers).response


def _allowed(app: FastAPI, path: str) -> str:
    """The methods of a path; the framework tells only those of the first function that fits."""
    found = (
        method.upper()
        for template, methods in app.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in methods
    )
    return ", ".join(sorted(found))


async def _no_message(_: Request, error: Exception) -> Response:
    code = error.code if isinstance(error, DeskError) else "invalid"
    field = error.field if isinstance(error, DeskError) else None
    status = REFUSALS.get(code, HTTPStatus.UNPROCESSABLE_ENTITY)
    return Refused(status, code, str(error), field=field).response


async def _desk_refused(_: Request, error: Exception) -> Response:
    code = error.code if isinstance(error, QuestionRefused) else "refused"
    status = REFUSALS.get(code, HTTPStatus.UNPROCESSABLE_ENTITY)
    return Refused(status, code, str(error)).response


async def _not_reachable(_: Request, error: Exception) -> Response:
    return unavailable(str(error)).response


async def _no_database(_: Request, error: Exception) -> Response:
    log.warning("http.no_database", error=f"{type(error).__name__}: {error}"[:300])
    return unavailable("Postgres does not answer; what was asked is not known now").response


async def _unforeseen(request: Request, error: Exception) -> Response:
    log.error("http.failed", path=request.url.path, exc_info=error)
    text = "the desk has a fault; its log says more"
    return Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "fault", text).response
