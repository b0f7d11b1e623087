"""The door for browsers: what is open to everyone, whose session counts, how a no is shown."""

from typing import Protocol

from starlette.types import ASGIApp, Scope

from libs.web.problem import HttpProblem


class BrowserLogin(Protocol):
    """The questions of the guard to an application that browsers come to."""

    def is_open(self, scope: Scope) -> bool:
        """True where this may be read without the token: the login page itself, say."""
        ...

    def goes_first(self, scope: Scope) -> bool:
        """True for what waits behind nothing else: the kill switch."""
        ...

    def takes_form(self, scope: Scope) -> bool:
        """True where the body may be a form, as a page of this server sends it without a script."""
        ...

    def knows(self, cookies: str) -> bool:
        """True where the Cookie header bears a session."""
        ...

    def refusal(self, scope: Scope, refused: HttpProblem) -> ASGIApp:
        """The answer where the guard refuses."""
        ...
