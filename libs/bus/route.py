"""What a service hears and says, as one table."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from contracts.message import Command, Contract, Message
from contracts.subjects import COMMANDS, Subject
from libs.runtime.journal import Journal

# A handler takes exactly the command its route names; the table, not the type, ties them together.
CommandHandler = Callable[[Any, Journal], Awaitable[Contract]]
QueryHandler = Callable[[Any], Awaitable[Message]]
RequestHandler = Callable[[str, Any], Awaitable[Message]]


@dataclass(frozen=True)
class Route:
    """One command: `handle(command, journal)` returns the contract that answers it.

    A handler that says no raises a `DeskError`; any other exception means that it could not answer.
    """

    hears: type[Command]
    says: type[Contract]
    handle: CommandHandler


@dataclass(frozen=True)
class QueryRoute:
    """One question that the service answers by request and reply: `handle(query)` returns it."""

    hears: Subject
    handle: QueryHandler


@dataclass(frozen=True)
class RequestRoute:
    """One request of a user's: `handle(caller, request)` does it and returns the answer.

    The caller is who NATS says it is: the last token of the subject.
    """

    hears: Subject
    handle: RequestHandler


@dataclass(frozen=True)
class Routes:
    """All that one service hears."""

    service: str
    commands: Sequence[Route] = ()
    queries: Sequence[QueryRoute] = field(default=())
    requests: Sequence[RequestRoute] = field(default=())


def subject_of(route: Route, service: str, table: Sequence[Subject] = COMMANDS) -> Subject:
    """The row of the subject table that a route serves.

    Raises LookupError where the table does not have it: a wiring mistake, seen at start.
    """
    for row in table:
        if row.owner == service and row.message is route.hears and row.reply is route.says:
            return row
    raise LookupError(
        f"{service}: no command in contracts.subjects takes {route.hears.__name__} "
        f"and answers {route.says.__name__}"
    )
