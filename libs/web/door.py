"""The door for browsers: what is open to everyone, whose session counts, how a no is shown."""

from typing import Protocol

from starlette.types import ASGIApp, Scope

from libs.web.problem import Refused


class Door(Protocol):
    """What the guard asks an application that browsers come to."""

    def is_open(self, scope: Scope) -> bool:
        """Whether this may be read without the token: the login page itself, say."""
        ...

    def knows(self, cookies: str) -> bool:
        """Whether the Cookie header bears a session."""
        ...

    def refusal(self, scope: Scope, refused: Refused) -> ASGIApp:
        """What to answer where the guard refuses."""
        ...
