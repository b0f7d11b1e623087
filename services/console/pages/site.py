"""All that the console answers over HTTP: the API below /api, pages everywhere else."""

from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from libs.market.choice import first_request
from libs.web.problem import HttpProblem
from services.console.http.api import ROOT, api
from services.console.http.problems import tell_problems
from services.console.http.requests import DeskAccess
from services.console.pages.account.performance import performance
from services.console.pages.account.portfolio import money
from services.console.pages.account.tickers import tickers
from services.console.pages.approvals import approvals
from services.console.pages.board.leaderboard import leaderboard
from services.console.pages.boards import boards
from services.console.pages.cycles import cycles
from services.console.pages.decisions import decisions
from services.console.pages.login import LOGIN, login
from services.console.pages.notifications import notifications
from services.console.pages.operations import operations
from services.console.pages.overview.page import overview
from services.console.pages.request.page import PATH as REQUEST_FORM
from services.console.pages.request.page import request_form
from services.console.pages.show import Show
from services.console.pages.statics import PREFIX, Statics
from services.console.pages.studies import studies
from services.console.pages.tail import tail
from services.console.pages.trace.cycle import cycle
from services.console.pages.trace.operation import operation
from services.console.pages.upkeep import settings_page, upkeep

PAGES = (
    overview,
    approvals,
    tail,
    cycles,
    request_form,
    cycle,
    decisions,
    operations,
    operation,
    money,
    performance,
    tickers,
    leaderboard,
    boards,
    studies,
    upkeep,
    notifications,
    settings_page,
)
"""One function a page or a few; it takes the desk and how pages are shown, and gives the paths."""


class Site:
    """The application, and the door that browsers come through."""

    def __init__(self, desk: DeskAccess) -> None:
        statics = Statics()
        self._sessions = desk.sessions
        self._show = Show(
            statics,
            desk.now,
            has_login=desk.sessions is not None,
            is_demo=desk.settings.demo,
            first_request=first_request(desk.settings),
        )
        self._api = api(desk)
        self._pages = self._app(desk, statics)

    def _app(self, desk: DeskAccess, statics: Statics) -> FastAPI:
        app = FastAPI(openapi_url=None, redirect_slashes=False)
        app.include_router(statics.router())
        app.include_router(login(desk, self._show))
        for routes in PAGES:
            app.include_router(routes(desk, self._show))
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
        return bool(scope["path"] == REQUEST_FORM)

    def knows(self, cookies: str) -> bool:
        """Whether the Cookie header bears a session."""
        return self._sessions is not None and self._sessions.holds(cookies)

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
