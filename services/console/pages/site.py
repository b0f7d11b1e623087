"""All that the console answers over HTTP: the API below /api, pages everywhere else."""

from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from libs.market.choice import first_request
from libs.web.problem import HttpProblem
from services.console.http.api import api
from services.console.http.bodies import ROOT
from services.console.http.problems import tell_problems
from services.console.http.requests import DeskAccess
from services.console.pages import (
    approvals,
    boards,
    cycles,
    decisions,
    login,
    notifications,
    operations,
    studies,
    tail,
    upkeep,
)
from services.console.pages.account import performance, portfolio, tickers
from services.console.pages.board import leaderboard
from services.console.pages.login import LOGIN
from services.console.pages.overview import page as overview
from services.console.pages.request import page as request
from services.console.pages.show import Show
from services.console.pages.statics import PREFIX, Statics
from services.console.pages.trace import cycle, operation

PAGES = (
    overview,
    approvals,
    tail,
    cycles,
    request,
    cycle,
    decisions,
    operations,
    operation,
    portfolio,
    performance,
    tickers,
    leaderboard,
    boards,
    studies,
    upkeep,
    notifications,
)
"""Modules of pages, each with its paths in `pages`. The form of a cycle goes before a cycle: it is
none."""


class Site:
    """The application, and the door that browsers come through."""

    def __init__(self, desk: DeskAccess) -> None:
        statics = Statics()
        self._sessions = desk.sessions
        self._show = Show(
            statics,
            desk.now,
            has_login=lambda: desk.sessions.are_needed,
            is_demo=desk.settings.demo,
            first_request=first_request(desk.settings),
        )
        self._api = api(desk)
        self._pages = self._app(desk, statics)

    def _app(self, desk: DeskAccess, statics: Statics) -> FastAPI:
        app = FastAPI(openapi_url=None, redirect_slashes=False)
        app.include_router(statics.router())
        for module in (login, *PAGES):
            app.include_router(module.pages)
        app.state.desk, app.state.show = desk, self._show
        tell_problems(app, self._answer)
        return app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        app = self._api if _is_api(scope) else self._pages
        await app(scope, receive, send)

    def is_open(self, scope: Scope) -> bool:
        """The login page, what it loads, and what it calls."""
        path: str = scope["path"]
        if path == f"{ROOT}/session":
            return bool(scope["method"] == "POST")
        return path == LOGIN or path.startswith(f"{PREFIX}/")

    def goes_first(self, scope: Scope) -> bool:
        """The kill switch."""
        return _is_at_or_below(scope["path"], f"{ROOT}/halts")

    def takes_form(self, scope: Scope) -> bool:
        """The one page whose form is sent without a script."""
        return bool(scope["path"] == request.PATH)

    def knows(self, cookies: str) -> bool:
        """Whether the Cookie header bears a session."""
        return self._sessions.holds(cookies)

    def refusal(self, scope: Scope, refused: HttpProblem) -> ASGIApp:
        """A refusal as a page where a person asked, to log in first where that is all."""
        return self._answer(Request(scope), refused)

    def _answer(self, request: Request, refused: HttpProblem) -> ASGIApp:
        if _is_api(request.scope) or not _is_for_a_person(request.scope):
            return refused.response
        if refused.problem.code == "unauthorized":
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{LOGIN}?next={quote(target, safe='')}", 303)
        return self._show.problem(request, refused)


def _is_api(scope: Scope) -> bool:
    path: str = scope["path"]
    return path.startswith("/api/")


def _is_at_or_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def _is_for_a_person(scope: Scope) -> bool:
    method: str = scope["method"]
    return method in {"GET", "HEAD"} and "text/html" in Headers(scope=scope).get("accept", "")
