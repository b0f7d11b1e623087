"""The rights of each identity on NATS, derived from the subject table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from contracts.subjects.accounts import PORTFOLIO
from contracts.subjects.commands import COMMANDS
from contracts.subjects.notices import NOTIFIER
from contracts.subjects.operations import CLAIM, RECORD, RESULT
from contracts.subjects.proposals import OF_PROPOSERS
from contracts.subjects.studies import CYCLE_ENDS
from contracts.subjects.subject import (
    AGENTS,
    ORCHESTRATOR,
    PREFIX,
    PROPOSER,
    STUDY,
    USERS,
    WEB,
    AnySubject,
    identity_of,
)
from contracts.subjects.table import OF_SERVICES, QUERIES, REQUESTS
from libs.bus.client import PING, discovered_as
from libs.bus.connection import inbox_prefix
from libs.bus.streams import (
    COMMAND_STREAM,
    DEAD_LETTER_STREAM,
    NOTICE_STREAM,
    STORED,
    streams,
)
from libs.keys.accounts import NatsPermissions

PROVISIONER = "provisioner"
CONSOLE = WEB
BUS_READS = ("STREAM.INFO", "CONSUMER.LIST")
"""What shows how streams and consumers fare; neither changes them or gives a message."""
DISCOVERY = ("PING", "INFO", "STATS")
"""What whoever looks for services asks, of all (`$SRV.PING`) or of one by its name."""
OF_ALL_SERVICES = (CLAIM, RECORD, RESULT, PORTFOLIO)
"""What any service may ask."""
ASKED = (*REQUESTS, *QUERIES, *OF_SERVICES)
"""What those may ask that its row names."""
LOOKERS = (*USERS, WEB)
"""Who may look for services."""


def permissions(
    commands: Sequence[AnySubject] = COMMANDS, proposers: Sequence[str] = ()
) -> Mapping[str, NatsPermissions]:
    """The permissions of every identity by name; `proposers` are the names of those that may
    propose trades now."""
    programs = tuple(map(identity_of, proposers))
    allowed = _of_the_desk(commands)
    answering = {row.owner for row in OF_PROPOSERS}
    return {
        **{
            name: replace(it, publish=(*it.publish, *map(_inbox, programs)))
            if name in answering
            else it
            for name, it in allowed.items()
        },
        **{program: _proposer(program) for program in programs},
    }


def _proposer(identity: str) -> NatsPermissions:
    """What it proposes and asks, under its own name; it hears its answers."""
    return NatsPermissions(
        publish=tuple(row.by(identity) for row in OF_PROPOSERS), subscribe=(_inbox(identity),)
    )


def _of_the_desk(commands: Sequence[AnySubject]) -> Mapping[str, NatsPermissions]:
    services = sorted({row.owner for row in commands})
    return {
        ORCHESTRATOR: _orchestrator(commands),
        PROVISIONER: NatsPermissions(
            publish=("$JS.API.>", STORED, *_answers(PROVISIONER, commands)),
            subscribe=(_inbox(PROVISIONER), *_discovery(PROVISIONER)),
            keeps=tuple(subject for stream in streams() for subject in stream.subjects or ()),
        ),
        CONSOLE: _console(commands),
        NOTIFIER: _notifier(commands),
        STUDY: _study(commands),
        **{service: _service(service, commands) for service in services},
        **{user: _user(user) for user in USERS},
        **{agent: _agent(agent) for agent in AGENTS},
    }


def _inbox(identity: str) -> str:
    return f"{inbox_prefix(identity)}.>"


def _answers(identity: str, commands: Sequence[AnySubject]) -> tuple[str, ...]:
    """The inboxes of those who may ask it something: all that whoever answers may say there."""
    askers = {*LOOKERS, *(name for row in ASKED if row.owner == identity for name in row.senders)}
    askers.discard(PROPOSER)  # each proposer has an inbox of its own
    if any(row.owner == identity for row in OF_ALL_SERVICES):
        askers |= {row.owner for row in commands}
    return tuple(_inbox(name) for name in sorted(askers))


def _discovery(identity: str) -> tuple[str, ...]:
    """The discovery subjects that a service listens on: its own, and those of all services."""
    name = discovered_as(identity)
    suffixes = ("", f".{name}", f".{name}.*")
    return tuple(f"$SRV.{verb}{who}" for verb in DISCOVERY for who in suffixes)


def _orchestrator(commands: Sequence[AnySubject]) -> NatsPermissions:
    return NatsPermissions(
        publish=(
            *(f"{PREFIX}.{kind}.>" for kind in ("cmd", "evt", "ntc", "ctl", "dlq")),
            *(row.by(ORCHESTRATOR) for row in QUERIES if ORCHESTRATOR in row.senders),
            # Of streams it may read two by number, and throw away single dead letters.
            f"$JS.API.STREAM.MSG.GET.{DEAD_LETTER_STREAM}",
            f"$JS.API.STREAM.MSG.GET.{COMMAND_STREAM}",
            f"$JS.API.STREAM.MSG.DELETE.{DEAD_LETTER_STREAM}",
            f"$JS.API.STREAM.INFO.{DEAD_LETTER_STREAM}",
            f"$JS.API.STREAM.INFO.{COMMAND_STREAM}",
            *_answers(ORCHESTRATOR, commands),
        ),
        subscribe=(
            f"{PREFIX}.req.{ORCHESTRATOR}.>",
            f"{PREFIX}.qry.{ORCHESTRATOR}.>",
            _inbox(ORCHESTRATOR),
            *_discovery(ORCHESTRATOR),
        ),
    )


def _console(commands: Sequence[AnySubject]) -> NatsPermissions:
    passes_on = [row.by(CONSOLE) for row in (*REQUESTS, *QUERIES) if CONSOLE in row.senders]
    health = [f"$JS.API.{call}.{stream.name}" for call in BUS_READS for stream in streams()]
    return NatsPermissions(
        publish=(
            *passes_on,
            *health,
            PING,
            f"$JS.API.STREAM.MSG.GET.{DEAD_LETTER_STREAM}",
            f"$JS.API.STREAM.MSG.GET.{COMMAND_STREAM}",
            *_answers(CONSOLE, commands),
        ),
        subscribe=(
            f"{PREFIX}.evt.>",
            f"{PREFIX}.qry.{CONSOLE}.>",
            _inbox(CONSOLE),
            *_discovery(CONSOLE),
        ),
    )


def _service(service: str, commands: Sequence[AnySubject]) -> NatsPermissions:
    durables = [row.durable for row in commands if row.owner == service]
    pulls = [subject for durable in durables for subject in _pulls(COMMAND_STREAM, durable)]
    # Each by its name: as many subjects as there may be, as many shares of the stream.
    letters = [f"{PREFIX}.dlq.{row.owner}.{row.what}" for row in commands if row.owner == service]
    hears = [f"{PREFIX}.ctl.{service}.>", f"{PREFIX}.qry.{service}.>"]
    if any(row.owner == service for row in REQUESTS):
        hears.append(f"{PREFIX}.req.{service}.>")
    asks = [row.by(service) for row in OF_ALL_SERVICES]
    asks += [row.by(service) for row in OF_SERVICES if service in row.senders]
    return NatsPermissions(
        publish=(*asks, *pulls, *letters, *_answers(service, commands)),
        subscribe=(_inbox(service), *hears, *_discovery(service)),
    )


def _notifier(commands: Sequence[AnySubject]) -> NatsPermissions:
    asks = [row.by(NOTIFIER) for row in OF_SERVICES if NOTIFIER in row.senders]
    return NatsPermissions(
        publish=(
            *asks,
            *_pulls(NOTICE_STREAM, "*"),
            *_answers(NOTIFIER, commands),
        ),
        subscribe=(_inbox(NOTIFIER), f"{PREFIX}.qry.{NOTIFIER}.>", *_discovery(NOTIFIER)),
    )


def _study(commands: Sequence[AnySubject]) -> NatsPermissions:
    """A client that answers questions of its own; it hears when cycles end."""
    return NatsPermissions(
        publish=(*_asks(STUDY), *_answers(STUDY, commands)),
        subscribe=(
            CYCLE_ENDS,
            f"{PREFIX}.req.{STUDY}.>",
            f"{PREFIX}.qry.{STUDY}.>",
            _inbox(STUDY),
            *_discovery(STUDY),
        ),
    )


def _pulls(stream: str, durable: str) -> tuple[str, ...]:
    """The subjects on which a service pulls and acknowledges a durable; `*` is all of a stream."""
    return (
        f"$JS.API.CONSUMER.INFO.{stream}.{durable}",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}",
        f"$JS.ACK.{stream}.{durable}.>",
    )


def _user(user: str) -> NatsPermissions:
    looks = [f"$SRV.{verb}{rest}" for verb in DISCOVERY for rest in ("", ".>")]
    return NatsPermissions(
        publish=(*_asks(user), *looks), subscribe=(f"{PREFIX}.evt.>", _inbox(user))
    )


def _agent(agent: str) -> NatsPermissions:
    return NatsPermissions(publish=_asks(agent), subscribe=(_inbox(agent),))


def _asks(identity: str) -> tuple[str, ...]:
    return tuple(row.by(identity) for row in (*REQUESTS, *QUERIES) if identity in row.senders)
