"""Where a browser gives the token."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from services.console.http.requests import DeskAccess
from services.console.pages.show import Show

LOGIN = "/login"


def login(desk: DeskAccess, show: Show) -> APIRouter:
    """The page; without a token set there is nothing to log in to."""
    router = APIRouter()

    @router.get(LOGIN)
    async def login_page(request: Request, next: str = "/") -> Response:  # noqa: A002 - the link's word
        target = _within(next)
        cookies = request.headers.get("cookie", "")
        if desk.sessions is None or desk.sessions.holds(cookies):
            return RedirectResponse(target, 303)
        return show(request, "login.html", next=target)

    return router


def _within(target: str) -> str:
    """The target, where it is a path of this desk: a link from elsewhere leads nowhere else."""
    is_path = target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if is_path and target.isprintable() else "/"
