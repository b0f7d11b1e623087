"""Who may say what on the desk's NATS: written by hand, so that a mistake in the table shows.

Nothing here is computed from `libs.bus.permissions`. A subject that nobody is named for is refused
to everybody.
"""

from collections.abc import Iterator, Sequence
from itertools import product

PEOPLE = ("cli", "user")
OVER_HTTP = (*PEOPLE, "console")
AGENTS = ("mcp", "mcp_requester")
PROPOSERS = ("proposer-alpha", "proposer-beta")
STEPS = {
    "sentiment": ("digest", "sentiment"),
    "execution": ("books", "execute"),
    "research": ("plan", "quant", "analyst"),
    "trader": ("picks",),
    "risk": ("review", "validate", "preview", "validate_exits"),
    "exit_signal": ("check_exits",),
    "assessment": ("memorize", "assess"),
    "strategy": ("design", "train", "backtest"),
    "reporter": ("report",),
}
SERVICES = tuple(STEPS)
DESK = ("orchestrator", "provisioner", "console", "notifier", "study", *SERVICES)
IDENTITIES = (*DESK, *PEOPLE, *AGENTS, *PROPOSERS)
STREAMS = ("COMMANDS", "DECISIONS", "NOTICES", "DEAD_LETTERS")

REQUESTS = {
    "orchestrator.propose": PROPOSERS,
    "orchestrator.cycle": (*OVER_HTTP, "mcp_requester", "study"),
    "study.run_study": (*OVER_HTTP, "mcp_requester"),
    "study.stop_study": OVER_HTTP,
    **dict.fromkeys(
        (
            "orchestrator.cancel",
            "orchestrator.approval",
            "orchestrator.retry_letter",
            "orchestrator.discard_letter",
            "orchestrator.pause_job",
            "orchestrator.resume_job",
            "orchestrator.run_job",
            "execution.halt",
            "execution.resume",
        ),
        OVER_HTTP,
    ),
    **dict.fromkeys(("execution.import_holdings", "execution.move_cash"), ("cli",)),
}
QUESTIONS = {
    **dict.fromkeys(("console.proposal", "console.proposal_limits"), PROPOSERS),
    **dict.fromkeys(("orchestrator.claim", "orchestrator.record", "orchestrator.result"), SERVICES),
    "orchestrator.keep_part": ("strategy",),
    "orchestrator.body_part": ("strategy",),
    "orchestrator.keep_notices": ("notifier",),
    "orchestrator.settle_notices": ("notifier",),
    "notifier.test": ("cli", "console"),
    "notifier.channels": OVER_HTTP,
    "execution.portfolio": (*SERVICES, *PEOPLE),
    "execution.holdings": ("exit_signal",),
    "exit_signal.check": (*OVER_HTTP, *AGENTS),
    "exit_signal.distances": OVER_HTTP,
    "sentiment.providers": (*PEOPLE, "console", "orchestrator"),
    "sentiment.reach": (*PEOPLE, "orchestrator"),
    "console.report": (*PEOPLE, "reporter"),
    **dict.fromkeys(("study.studies", "study.study_score"), (*OVER_HTTP, *AGENTS)),
    "study.study_cells": OVER_HTTP,
    "study.study_calls": (*PEOPLE, *AGENTS),
    **dict.fromkeys(
        (
            "console.cycle",
            "console.cycles",
            "console.operations",
            "console.operation",
            "console.account",
            "console.decisions",
            "console.performance",
            "console.strategies",
        ),
        (*PEOPLE, *AGENTS),
    ),
    **dict.fromkeys(
        (
            "console.events",
            "console.dead_letters",
            "console.equity",
            "console.halts",
            "console.recording",
            "console.approvals",
            "console.budget",
            "console.leaderboard",
            "console.schedule",
            "console.storing",
            "console.events_since",
            "console.notifications",
            "console.sent",
        ),
        PEOPLE,
    ),
}
EVENTS = ("orchestrator.decision", "orchestrator.cycle_ended", "execution.order_filled")
STREAM_CALLS = (
    "CREATE",
    "UPDATE",
    "DELETE",
    "PURGE",
    "INFO",
    "MSG.GET",
    "MSG.DELETE",
    "SNAPSHOT",
    "RESTORE",
    "LEADER.STEPDOWN",
    "PEER.REMOVE",
)
CONSUMER_CALLS = (
    "CREATE",
    "DURABLE.CREATE",
    "DELETE",
    "INFO",
    "MSG.NEXT",
    "PAUSE",
    "RESET",
    "UNPIN",
    "LEADER.STEPDOWN",
)
READS = {
    "STREAM.MSG.GET.COMMANDS": ("orchestrator", "console"),
    "STREAM.MSG.GET.DEAD_LETTERS": ("orchestrator", "console"),
    "STREAM.MSG.DELETE.DEAD_LETTERS": ("orchestrator",),
    "STREAM.INFO.DEAD_LETTERS": ("orchestrator", "console"),
    "STREAM.INFO.COMMANDS": ("orchestrator", "console"),
    "STREAM.INFO.DECISIONS": ("console",),
    "STREAM.INFO.NOTICES": ("console",),
    **{f"CONSUMER.LIST.{stream}": ("console",) for stream in STREAMS},
}
ANSWERS_TO = {
    "orchestrator": (*SERVICES, *OVER_HTTP, "mcp_requester", "notifier", "study", *PROPOSERS),
    "execution": (*SERVICES, *OVER_HTTP),
    "console": (*OVER_HTTP, *AGENTS, "reporter", *PROPOSERS),
    "exit_signal": (*OVER_HTTP, *AGENTS),
    "study": (*OVER_HTTP, *AGENTS),
    "sentiment": (*OVER_HTTP, "orchestrator"),
}
"""Whose inboxes each may publish into; all others of the desk: of those who look for services."""


def everything() -> Iterator[tuple[str, frozenset[str]]]:
    """Every subject that anything on the desk hears, and who may publish it."""
    for kind, rows in (("req", REQUESTS), ("qry", QUESTIONS)):
        for what, callers in rows.items():
            for name in IDENTITIES:
                yield f"desk.v1.{kind}.{what}.{name}", frozenset({name} & set(callers))
    for service, steps in STEPS.items():
        yield f"desk.v1.ctl.{service}.cancel", frozenset({"orchestrator"})
        for step in steps:
            yield f"desk.v1.cmd.{service}.{step}", frozenset({"orchestrator"})
            yield f"desk.v1.dlq.{service}.{step}", frozenset({"orchestrator", service})
        yield f"desk.v1.dlq.{service}.other", frozenset({"orchestrator"})
    for event in EVENTS:
        yield f"desk.v1.evt.{event}.7", frozenset({"orchestrator"})
        yield f"desk.v1.ntc.{event}.7", frozenset({"orchestrator"})
    for name in IDENTITIES:
        may = {who for who in DESK if name in ANSWERS_TO.get(who, OVER_HTTP)}
        yield f"_INBOX_{name}.forged", frozenset(may)
        yield f"desk.v1.dlq.orchestrator.request.{name}", frozenset({"orchestrator"})
    yield "desk.v1.stored.commands", frozenset({"provisioner"})
    yield from _jetstream()
    yield from _discovery()
    yield from (
        (each, frozenset[str]()) for each in ("anything", "$SYS.REQ.SERVER.PING", "nothing.x")
    )


def _jetstream() -> Iterator[tuple[str, frozenset[str]]]:
    keeper = {"provisioner"}
    calls = [f"STREAM.{call}.{stream}" for call, stream in product(STREAM_CALLS, STREAMS)]
    calls += [f"CONSUMER.LIST.{stream}" for stream in STREAMS]
    calls += ["STREAM.NAMES", "STREAM.LIST", "STREAM.CREATE.MINE", "INFO", "DIRECT.GET.COMMANDS"]
    calls += ["META.LEADER.STEPDOWN", "SERVER.REMOVE", "ACCOUNT.PURGE.provisioner"]
    for call in calls:
        yield f"$JS.API.{call}", frozenset(keeper | set(READS.get(call, ())))
    for service, steps in STEPS.items():
        for step, call in product(steps, CONSUMER_CALLS):
            own = {service} if call in {"INFO", "MSG.NEXT"} else set()
            yield f"$JS.API.CONSUMER.{call}.COMMANDS.{service}-{step}", frozenset(keeper | own)
        for step in steps:
            yield f"$JS.ACK.COMMANDS.{service}-{step}.1.1.1.1.0", frozenset({service})
    for call in CONSUMER_CALLS:
        own = {"notifier"} if call in {"INFO", "MSG.NEXT"} else set()
        yield f"$JS.API.CONSUMER.{call}.NOTICES.notifier_phone", frozenset(keeper | own)
    yield "$JS.ACK.NOTICES.notifier_phone.1.1.1.1.0", frozenset({"notifier"})


def _discovery() -> Iterator[tuple[str, frozenset[str]]]:
    for verb in ("PING", "INFO", "STATS"):
        lookers = OVER_HTTP if verb == "PING" else PEOPLE
        yield f"$SRV.{verb}", frozenset(lookers)
        for name in DESK:
            yield f"$SRV.{verb}.deskbus-{name}", frozenset(PEOPLE)


def heard_by(subject: str) -> Sequence[str]:
    """Which identities hear a subject that is no stream's."""
    tokens = subject.split(".")
    if subject.startswith("_INBOX_"):
        return [tokens[0].removeprefix("_INBOX_")]
    if subject.startswith("desk.v1.evt."):
        return ["cli", "user", "console"]
    if subject.startswith("$SRV."):
        named = tokens[2:]
        return [each.removeprefix("deskbus-") for each in named] if named else DESK
    is_told = subject.startswith(("desk.v1.req.", "desk.v1.qry.", "desk.v1.ctl."))
    return [tokens[3]] if is_told else []
