"""Accounts of NATS: one an identity, and between them what one may say and another may hear.

A message may name any reply subject, and whoever answers publishes there: a service, or NATS itself
(an acknowledgement, the end of a pull request, a page of the JetStream API), which no permission
binds. In an account of the asker's own such an answer gets no further than what the asker may say
by itself. So nothing is shared: each account holds one identity, and what crosses is computed from
the permissions, subject by subject.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

JETSTREAM = "$JS."
JETSTREAM_WHOLE = "$JS.API.>"
SILENT, NOTHING = "silent", "nothing.>"
_NO_JETSTREAM_OF_ITS_OWN = {
    "service": {"account": SILENT, "subject": NOTHING},
    "to": JETSTREAM_WHOLE,
}
"""Where an account has no JetStream, NATS answers every call of its API by a refusal, also those
that another account answers: unless the account takes the whole API from somewhere. Here it takes
it from where nobody answers."""
CONNECTIONS_EACH_MAX = 64
"""Connections that one key may hold. A process of a service holds one or two, a console four and a
command one: so 16 consoles, 32 to 64 replicas of a service, or 64 commands at a time."""
SUBSCRIPTIONS_EACH_MAX = 256
"""Subscriptions of one connection; the console's 34 are the most that the desk uses."""
PAYLOAD_BYTES_MAX = 1024 * 1024
"""Also where the server itself takes more. Contracts allow 900 kB."""
STREAMS_MAX, CONSUMERS_MAX = 32, 512
"""Of the account that keeps the streams: the desk has 4 streams, and a consumer for each command.
The bytes of each stream are bounded where it is made (libs.bus.streams)."""
PULL = ".CONSUMER.MSG.NEXT."
"""A pull request is answered by any number of messages, every other call by one."""
_JETSTREAM = {"max_streams": STREAMS_MAX, "max_consumers": CONSUMERS_MAX}


@dataclass(frozen=True)
class NatsPermissions:
    """The rights of one identity on NATS.

    `publish` and `subscribe` are subjects (wildcards allowed); an empty tuple refuses everything.
    `keeps` are the subjects of the streams that this identity makes: JetStream is in its account.
    """

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    keeps: tuple[str, ...] = ()


def accounts(
    permissions: Mapping[str, NatsPermissions], public_keys: Mapping[str, str]
) -> dict[str, object]:
    """The `accounts` block of a nats-server configuration.

    The account of the identity that keeps the streams has JetStream, and identities that may do
    everything with the streams share it; where no identity keeps any, each account has its own
    JetStream. `limits` are the account's share of the server: a stolen key takes up its own share
    and nothing of another's.
    """
    keeper = next((name for name, allowed in permissions.items() if allowed.keeps), None)
    homes: dict[str, list[str]] = {}
    for name, allowed in permissions.items():
        whole = keeper is not None and any(covers(p, JETSTREAM_WHOLE) for p in allowed.publish)
        homes.setdefault(keeper if keeper is not None and whole else name, []).append(name)
    exports: dict[str, dict[tuple[str, str], list[str]]] = {name: {} for name in homes}
    imports: dict[str, list[object]] = {name: [] for name in homes}
    for source, target in product(homes, homes):
        if source == target:
            continue
        says = [p for name in homes[source] for p in permissions[name].publish]
        hears = [s for name in homes[target] for s in permissions[name].subscribe]
        kept = permissions[keeper].keeps if target == keeper and keeper is not None else ()
        for subject in _crossing(says, hears, kept):
            exports[source].setdefault(("stream", subject), []).append(target)
            imports[target].append({"stream": {"account": source, "subject": subject}})
        for subject in _stored(says, kept):
            exports[target].setdefault(("service", subject), []).append(source)
            imports[source].append({"service": {"account": target, "subject": subject}})
    for home in homes:
        if keeper not in (None, home):
            imports[home].append(_NO_JETSTREAM_OF_ITS_OWN)
    silent = {SILENT: {"exports": [{"service": NOTHING}]}} if keeper is not None else {}
    return silent | {
        home: {
            **({"jetstream": _JETSTREAM} if keeper in (None, home) else {}),
            "limits": _limits(len(names)),
            "users": [
                {"nkey": public_keys[name], "permissions": _rendered(permissions[name])}
                for name in names
            ],
            "exports": [
                _export(kind, subject, whom) for (kind, subject), whom in exports[home].items()
            ],
            "imports": imports[home],
        }
        for home, names in homes.items()
    }


def connections_max(identities: int) -> int:
    """The connections that so many identities may hold together."""
    return identities * CONNECTIONS_EACH_MAX


def _limits(identities: int) -> dict[str, int]:
    return {
        "max_connections": connections_max(identities),
        "max_subscriptions": SUBSCRIPTIONS_EACH_MAX,
        "max_payload": PAYLOAD_BYTES_MAX,
        "max_leafnodes": 0,
    }


def _crossing(says: Sequence[str], hears: Sequence[str], kept: Sequence[str]) -> list[str]:
    """The subjects that one publishes and another subscribes to, of which none covers another."""
    common = {both for p, s in product(says, hears) if (both := intersection(p, s))}
    return [
        candidate
        for candidate in sorted(common)
        if not candidate.startswith(JETSTREAM)
        and not any(covers(subject, candidate) for subject in kept)
        and not any(covers(other, candidate) for other in common - {candidate})
    ]


def _stored(says: Sequence[str], kept: Sequence[str]) -> list[str]:
    """The subjects that one publishes to JetStream: its API calls, and those its streams store."""
    if not kept:
        return []
    calls = [subject for subject in says if subject.startswith(JETSTREAM)]
    common = {both for p, s in product(says, kept) if (both := intersection(p, s))}
    return sorted({*calls, *(subject for subject in common if not subject.startswith(JETSTREAM))})


def covers(pattern: str, subject: str) -> bool:
    """True where the pattern matches every subject that `subject` stands for."""
    return intersection(pattern, subject) == subject


def intersection(one: str, other: str) -> str | None:
    """The pattern of the subjects that both stand for; None where there are none."""
    tokens = list(_common(one.split("."), other.split(".")))
    return None if None in tokens else ".".join(token for token in tokens if token)


def _common(one: Sequence[str], other: Sequence[str]) -> Iterator[str | None]:
    for place in range(max(len(one), len(other))):
        mine, theirs = one[place : place + 1], other[place : place + 1]
        if ">" in (*mine, *theirs):
            rest = other[place:] if mine == [">"] else one[place:]
            yield ".".join(rest) or None
            return
        if not mine or not theirs:
            yield None
        elif "*" in (mine[0], theirs[0]):
            yield theirs[0] if mine[0] == "*" else mine[0]
        else:
            yield mine[0] if mine == theirs else None


def _export(kind: str, subject: str, whom: Iterable[str]) -> dict[str, object]:
    pulled = {"response_type": "stream"} if PULL in subject else {}
    return {kind: subject, "accounts": list(whom), **pulled}


def _rendered(allowed: NatsPermissions) -> dict[str, object]:
    return {
        "publish": _subject_rule(allowed.publish),
        "subscribe": _subject_rule(allowed.subscribe),
    }


def _subject_rule(subjects: tuple[str, ...]) -> dict[str, list[str]]:
    # nats-server reads an empty allow list as "no rule", which allows everything.
    return {"allow": list(subjects)} if subjects else {"deny": [">"]}
