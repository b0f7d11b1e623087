"""How a page is made: a template with what all have in common, and headers that keep it safe."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse

from libs.facts import amounts
from libs.report.templates import templates_in
from libs.web.problem import HttpProblem
from services.console.http.problems import NO_SUCH_PATH
from services.console.pages import words
from services.console.pages.nav import FORMS, NAV
from services.console.pages.statics import Statics

TEMPLATES = Path(__file__).parent / "templates"
HEADERS = {
    # Nothing inline, nothing from elsewhere: what models and news write can run nowhere.
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
WHAT_TO_DO = {
    401: ("Log in first", "Your session has ended. Enter the desk's token."),
    404: ("Page not found", "Choose a page from the menu."),
    421: ("Wrong host name", "Open the desk as http://localhost or http://127.0.0.1."),
    422: ("Invalid address", "One of its parts is not valid; see the detail."),
    500: (
        "Internal error",
        "See the desk's log, and run `deskbus doctor`.",
    ),
    503: (
        "The desk does not answer",
        "This page reloads when the desk answers. If it does not, run `deskbus doctor`.",
    ),
}
"""By status: what it is called on the page, and what a person can do."""


class Show:
    """Makes pages. In each template: `now`, `static(name)`, `nav`, `forms`,
    `has_login`, `is_demo`, `first_request` (the command for a first cycle), and `words`."""

    def __init__(
        self,
        statics: Statics,
        now: Callable[[], datetime],
        *,
        has_login: Callable[[], bool],
        is_demo: bool,
        first_request: str,
    ) -> None:
        self._now = now
        self.environment = templates_in(TEMPLATES)
        self.environment.globals.update(
            amounts=amounts,
            words=words,
            static=statics.url,
            nav=NAV,
            forms=FORMS,
            has_login=has_login,
            is_demo=is_demo,
            first_request=first_request,
        )
        self.environment.filters.update(words.FILTERS)
        self.environment.filters["spent"] = partial(words.spent, is_demo=is_demo)
        self.environment.tests["curve"] = words.is_curve

    def __call__(
        self,
        request: Request,
        template: str,
        /,
        http_status: HTTPStatus = HTTPStatus.OK,
        **facts: Any,
    ) -> Response:
        """The page `template` with its facts."""
        return HTMLResponse(self._html(request, template, facts), http_status, HEADERS)

    def _html(self, request: Request, template: str, facts: Mapping[str, Any]) -> str:
        page = self.environment.get_template(template)
        return page.render(now=self._now(), path=request.url.path, **facts)

    def problem(self, request: Request, refused: HttpProblem) -> Response:
        """A refusal as a page that says what to do."""
        problem = refused.problem
        title, todo = WHAT_TO_DO.get(problem.status, (problem.title.capitalize(), ""))
        # What a program is told of a path that is none helps no person.
        detail = "" if problem.detail == NO_SUCH_PATH else words.capitalize_first(problem.detail)
        facts = {"problem": problem, "title": title, "detail": detail, "todo": todo}
        headers = {**HEADERS, **refused.headers}
        return HTMLResponse(self._html(request, "problem.html", facts), problem.status, headers)


async def show_of(request: Request) -> Callable[..., Response]:
    """For `Depends`: how the page that is asked for is shown."""
    show: Show = request.app.state.show
    return partial(show, request)


ShowPage = Annotated[Callable[..., Response], Depends(show_of)]
"""Takes the name of a template, a status where it is not 200, and the page's facts."""
