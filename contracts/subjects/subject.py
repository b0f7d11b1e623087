"""A row of the subject table, and who may speak and hear on it."""

from dataclasses import dataclass
from enum import StrEnum
from types import NoneType
from typing import Any, Generic, TypeVar

from contracts.message import Message

PREFIX = "desk.v1"
ORCHESTRATOR = "orchestrator"


class Class(StrEnum):
    """The third token of a subject."""

    REQUEST = "req"
    COMMAND = "cmd"
    EVENT = "evt"
    NOTICE = "ntc"
    CONTROL = "ctl"
    QUERY = "qry"
    DEAD_LETTER = "dlq"


Asked = TypeVar("Asked", bound=Message)
Reply = TypeVar("Reply", bound=Message | None)
Answered = TypeVar("Answered", bound=Message)
"""Of a row that is answered; for whoever asks and whoever answers."""


@dataclass(frozen=True)
class Subject(Generic[Asked, Reply]):
    """One row: `message` travels to `owner` (or, for events, from it) and `reply` comes back.

    Whoever sends and whoever handles a row is checked against its two types. `reply` is `NoneType`
    where nobody answers, as an event; for commands it is the contract that the service's result
    must hold. `senders` are the identities that may publish it; empty for `qry` rows that any
    service may ask. `claimed` commands do paid or long work: they are claimed, journalled,
    acknowledged after the claim. `must_answer` commands have effects: no deadline, no cancel; sent
    until they are answered.
    """

    kind: Class
    owner: str
    what: str
    message: type[Asked]
    reply: type[Reply]
    senders: tuple[str, ...] = (ORCHESTRATOR,)
    claimed: bool = False
    must_answer: bool = False

    @property
    def address(self) -> str:
        """The subject without its last, variable token."""
        return f"{PREFIX}.{self.kind}.{self.owner}.{self.what}"

    @property
    def is_answered(self) -> bool:
        """True where a reply comes back."""
        return self.reply is not NoneType

    @property
    def gives(self) -> str:
        """The name under which later commands take this command's contract, e.g. `daily_picks`."""
        return snake(self.reply.__name__) if self.is_answered else ""

    @property
    def durable(self) -> str:
        """The durable consumer of a command."""
        return f"{self.owner}-{self.what}"

    def by(self, caller: str) -> str:
        """The whole subject: of a request or query by one caller, of an event of one cycle."""
        return f"{self.address}.{caller}"


AnySubject = Subject[Any, Any]
"""A row whose types do not matter: its address, its permissions, its place in the documents."""


def snake(name: str) -> str:
    """`DailyPicks` as `daily_picks`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


BACKBONE = ("provisioner", ORCHESTRATOR)
"""Services that move the work; they start first."""
SERVICES = (
    "sentiment",
    "research",
    "trader",
    "risk",
    "execution",
    "assessment",
    "exit_signal",
    "strategy",
    "reporter",
    "console",
    "notifier",
    "study",
)
"""Services that hear commands, answer questions or tell people."""

STUDY = "study"
"""The service of studies, which requests their cells."""

CLI = "cli"
USERS = (CLI, "user")
"""Identities of people and their programs: `cli` is ours, `user` is anyone's own code."""

WEB = "console"
"""The console's identity, in whose name it passes on what came over HTTP; it requests nothing of
its own accord."""
REQUESTERS = (*USERS, WEB)
MCP, MCP_REQUESTER = AGENTS = ("mcp", "mcp_requester")
"""Models of other programs, over MCP: both may ask what is listed with them; the second one may
request cycles and studies too, where a person has said so. Neither can answer a proposal."""

PROPOSER = "proposer"
"""Stands among a row's senders for every proposer: `identity_of` gives the identity of one."""


def identity_of(proposer: str) -> str:
    """The identity on NATS of a program that may propose trades."""
    return f"{PROPOSER}-{proposer}"


def is_proposer(identity: str) -> bool:
    """Whether an identity is one of a proposer."""
    return identity.startswith(f"{PROPOSER}-")


def request(
    what: str,
    message: type[Asked],
    reply: type[Answered],
    senders: tuple[str, ...] = REQUESTERS,
) -> Subject[Asked, Answered]:
    """A row of what people ask the orchestrator to do."""
    return Subject(Class.REQUEST, ORCHESTRATOR, what, message, reply, senders)


def console(
    what: str, message: type[Asked], reply: type[Answered], *, agents: bool = False
) -> Subject[Asked, Answered]:
    """A question that the console answers from its read-only view of the tables."""
    senders = (*USERS, *AGENTS) if agents else USERS
    return Subject(Class.QUERY, "console", what, message, reply, senders)
