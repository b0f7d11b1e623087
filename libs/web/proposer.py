"""Proposers over HTTP: a token of their own, and a few paths that it opens."""

from collections.abc import Sequence
from contextvars import ContextVar
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from libs.runtime.proposers import TOKEN_START, Proposers, ProposersUnreadable
from libs.web.problem import HttpProblem, unavailable

BODY_BYTES_MAX = 65_536
"""Of a proposer's request: twenty trades with their reasons take a third of it."""
_KEY = "deskbus.proposer"
calling: ContextVar[str] = ContextVar("proposer")
"""Whose token came with the request that is being answered, behind `Named`."""


class ProposerTokens:
    """Lets proposers in at `paths` and below them, and nowhere else."""

    def __init__(self, proposers: Proposers, paths: Sequence[str]) -> None:
        self._proposers = proposers
        self._paths = paths

    def admit(self, scope: Scope, headers: Headers) -> bool:
        """Whether a proposer's token came, which opens this path; who it is stands in the scope
        then. Raises `HttpProblem`: 401 for a token of nobody, 403 for another path."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token.startswith(TOKEN_START):
            return False
        try:
            found = self._proposers.bearing(token)
        except ProposersUnreadable as error:
            raise unavailable(error.message) from error
        if found is None:
            raise HttpProblem(
                HTTPStatus.UNAUTHORIZED,
                "unauthorized",
                "this proposer's token is revoked, or of another desk",
                headers={"WWW-Authenticate": "Bearer"},
            )
        path = scope["path"]
        if not any(path == own or path.startswith(f"{own}/") for own in self._paths):
            raise HttpProblem(
                HTTPStatus.FORBIDDEN,
                "not_for_proposers",
                f"a proposer's token opens {', '.join(self._paths)} and nothing else",
            )
        scope[_KEY] = found.name
        return True


def proposer_in(scope: Scope) -> str:
    """The proposer whose token came. Raises `HttpProblem` (403) where another one did, or none."""
    name = scope.get(_KEY)
    if not isinstance(name, str):
        raise HttpProblem(
            HTTPStatus.FORBIDDEN,
            "not_a_proposer",
            "only a proposer proposes, with a token of its own: `deskbus proposer add`",
        )
    return name


class Named:
    """Keeps whose token came, for what answers and has no request at hand (`calling`)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            calling.set(proposer_in(scope))
        await self._app(scope, receive, send)
