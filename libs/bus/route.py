"""The routes of a service: its commands and questions with their handlers, as one table."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from contracts.message import Command, Contract, Message
from contracts.subjects.subject import Answered, AnySubject, Asked, Subject
from libs.runtime.journal import Journal

CommandT = TypeVar("CommandT", bound=Command)
ResultT = TypeVar("ResultT", bound=Contract)
Wiring = ParamSpec("Wiring")


@dataclass(frozen=True)
class Route:
    """One command: `handle(command, journal)` returns the contract that answers it.

    Made by `on_command`, which checks the handler's types against the row's.
    """

    hears: AnySubject
    handle: Callable[[Any, Journal], Awaitable[Contract]]


@dataclass(frozen=True)
class QuestionRoute:
    """One question or request: `handle(caller, message)` returns the answer.

    The caller is who NATS says it is: the last token of the subject. Made by `on_query` and
    `on_request`, which check the handler's types against the row's.
    """

    hears: AnySubject
    handle: Callable[[str, Any], Awaitable[Message]]


def on_command(
    hears: Subject[CommandT, ResultT],
    handle: Callable[Concatenate[CommandT, Journal, Wiring], Awaitable[ResultT]],
    /,
    *args: Wiring.args,
    **wiring: Wiring.kwargs,
) -> Route:
    """A command's route, to `handle(command, journal, **wiring)`.

    A handler that says no raises a `DeskError`; any other exception means that it could not answer.
    """

    def wired(command: CommandT, journal: Journal) -> Awaitable[ResultT]:
        return handle(command, journal, *args, **wiring)

    return Route(hears, wired)


def on_query(
    hears: Subject[Asked, Answered],
    handle: Callable[Concatenate[Asked, Wiring], Awaitable[Answered]],
    /,
    *args: Wiring.args,
    **wiring: Wiring.kwargs,
) -> QuestionRoute:
    """A question's route, to `handle(query, **wiring)`, whoever asks."""

    def wired(_caller: str, query: Asked) -> Awaitable[Answered]:
        return handle(query, *args, **wiring)

    return QuestionRoute(hears, wired)


def on_request(
    hears: Subject[Asked, Answered],
    handle: Callable[Concatenate[str, Asked, Wiring], Awaitable[Answered]],
    /,
    *args: Wiring.args,
    **wiring: Wiring.kwargs,
) -> QuestionRoute:
    """A user's request's route, to `handle(caller, request, **wiring)`, which does it."""

    def wired(caller: str, request: Asked) -> Awaitable[Answered]:
        return handle(caller, request, *args, **wiring)

    return QuestionRoute(hears, wired)


@dataclass(frozen=True)
class Routes:
    """All that one service hears. Raises ValueError for a row of another service."""

    service: str
    commands: Sequence[Route] = ()
    questions: Sequence[QuestionRoute] = ()

    def __post_init__(self) -> None:
        hears = [route.hears for route in self.commands] + [route.hears for route in self.questions]
        for row in hears:
            if row.owner != self.service:
                raise ValueError(f"{self.service} does not own {row.address}")
