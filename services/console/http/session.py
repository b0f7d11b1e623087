"""The HTTP API's path for browsers: the token once, then a cookie."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Request, Response

from contracts.http import LogIn
from services.console.http.bodies import Body, problems
from services.console.http.requests import Desk

HTTPS = "https"


session = APIRouter(prefix="/session", tags=["session"])


@session.post(
    "",
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
    responses=problems(413, 415, 429),
)
async def log_in(desk: Desk, request: Request, login: Annotated[LogIn, Body(LogIn)]) -> Response:
    """Log in with the desk's token; a cookie then replaces it. Without a token in the settings, no
    login is needed and no cookie is set."""
    answer = Response(status_code=HTTPStatus.NO_CONTENT)
    sessions = desk.sessions
    if sessions.are_needed:
        caller = request.client.host if request.client else ""
        value = sessions.begin(login.token.get_secret_value(), caller)
        answer.set_cookie(
            sessions.cookie,
            value,
            max_age=int(sessions.lifetime_s),
            httponly=True,
            samesite="strict",
            secure=_is_https(request),
        )
    return answer


@session.delete("", status_code=HTTPStatus.NO_CONTENT, response_class=Response)
async def log_out(desk: Desk, request: Request) -> Response:
    """End the session of the request's cookie."""
    answer = Response(status_code=HTTPStatus.NO_CONTENT)
    if desk.sessions.are_needed:
        desk.sessions.end(request.headers.get("cookie", ""))
        answer.delete_cookie(desk.sessions.cookie, httponly=True, samesite="strict")
    return answer


def _is_https(request: Request) -> bool:
    """Whether the browser speaks TLS, here or with a proxy that says so. Whoever says so falsely
    only keeps their own browser from sending the cookie back."""
    return HTTPS in {request.url.scheme, request.headers.get("x-forwarded-proto", "").lower()}
