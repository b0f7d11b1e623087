"""Where a browser gives the token."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from services.console.http.requests import Desk
from services.console.pages.show import ShowPage

LOGIN = "/login"


pages = APIRouter()


@pages.get(LOGIN)
async def login_page(desk: Desk, show: ShowPage, request: Request, next: str = "/") -> Response:  # noqa: A002 - the link's word
    """The page; without a token set there is nothing to log in to."""
    target = _within(next)
    cookies = request.headers.get("cookie", "")
    if not desk.sessions.are_needed or desk.sessions.holds(cookies):
        return RedirectResponse(target, 303)
    return show("login.html", next=target)


def _within(target: str) -> str:
    """The target, where it is a path of this desk: a link from elsewhere leads nowhere else."""
    is_path = target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if is_path and target.isprintable() else "/"
