"""Least privilege, read off the permissions themselves: who may publish and hear what."""

import pytest

from contracts.subjects.accounts import (
    ACCOUNT,
    IMPORT_HOLDINGS,
    MOVE_CASH,
    PERFORMANCE,
    PORTFOLIO,
    SET_LIMIT,
)
from contracts.subjects.approvals import DECISIONS
from contracts.subjects.commands import COMMANDS
from contracts.subjects.cycles import CYCLE, CYCLES, REQUEST_CYCLE
from contracts.subjects.events import EVENTS
from contracts.subjects.exits import EXIT_DISTANCES, EXIT_SIGNALS
from contracts.subjects.notices import (
    CHANNELS,
    KEEP_NOTICES,
    NOTIFIER,
    SETTLE_NOTICES,
    TEST_CHANNEL,
)
from contracts.subjects.operations import CLAIM, OPERATION, OPERATIONS, RECORD, RESULT
from contracts.subjects.preflight import PROVIDERS
from contracts.subjects.proposals import (
    OF_PROPOSERS,
    PROPOSAL,
    PROPOSAL_LIMITS,
    PROPOSE,
)
from contracts.subjects.strategies import BODY_PART, KEEP_PART, STRATEGIES
from contracts.subjects.studies import (
    RUN_STUDY,
    STUDIES,
    STUDY_CALLS,
    STUDY_CELLS,
    STUDY_SCORE,
)
from contracts.subjects.subject import (
    AGENTS,
    BACKBONE,
    CLI,
    MCP,
    MCP_REQUESTER,
    ORCHESTRATOR,
    PREFIX,
    SERVICES,
    STUDY,
    USERS,
    AnySubject,
    identity_of,
)
from contracts.subjects.table import QUERIES, REQUESTS
from contracts.subjects.venue import BIND, RECONCILE
from libs.bus.client import PING, discovered_as
from libs.bus.permissions import (
    ASKED,
    CONSOLE,
    DISCOVERY,
    OF_ALL_SERVICES,
    PROVISIONER,
    permissions,
)
from libs.bus.streams import COMMAND_STREAM, DEAD_LETTER_STREAM, NOTICE_STREAM, streams

ALL = permissions()
THINKERS = ("assessment", "research", "risk", "sentiment", "strategy", "trader")
EVERYONE = sorted(ALL)
SERVICES_ALL = (
    "assessment",
    "execution",
    "exit_signal",
    "reporter",
    "research",
    "risk",
    "sentiment",
    "strategy",
    "trader",
)
OTHERS = [name for name in EVERYONE if name != ORCHESTRATOR]
CHANGES = (
    "STREAM.CREATE.*",
    "STREAM.UPDATE.*",
    "STREAM.DELETE.*",
    "STREAM.PURGE.*",
    "STREAM.MSG.DELETE.*",
    "CONSUMER.DELETE.*.*",
    "CONSUMER.CREATE.>",
    "CONSUMER.DURABLE.CREATE.*.*",
)
DESK = [name for name in EVERYONE if name not in {*USERS, *AGENTS}]


def overlap(one: str, other: str) -> bool:
    """Whether some subject matches both patterns."""
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return len(left) == len(right)


def may_publish(identity: str, subject: str) -> bool:
    return any(overlap(allowed, subject) for allowed in ALL[identity].publish)


def may_hear(identity: str, subject: str) -> bool:
    return any(overlap(allowed, subject) for allowed in ALL[identity].subscribe)


@pytest.mark.parametrize(
    ("one", "other", "do"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.>", "a.b.c", True),
        ("a.*", "a.b.c", False),
        ("a.b", "a.c", False),
        ("a.*.c", "a.b.*", True),
        ("a.*.c", "a.b.d", False),
    ],
)
def test_patterns_overlap_as_in_nats(one: str, other: str, do: bool) -> None:
    assert overlap(one, other) is do
    assert overlap(other, one) is do


def test_every_process_has_an_identity_of_its_own() -> None:
    assert set(EVERYONE) == {*BACKBONE, *SERVICES, *USERS, *AGENTS}


@pytest.mark.parametrize("identity", OTHERS)
@pytest.mark.parametrize("kind", ["cmd", "evt", "ntc", "ctl"])
def test_only_the_orchestrator_publishes_commands_events_and_controls(
    identity: str, kind: str
) -> None:
    assert not may_publish(identity, f"{PREFIX}.{kind}.>")
    assert may_publish(ORCHESTRATOR, f"{PREFIX}.{kind}.>")


@pytest.mark.parametrize("identity", THINKERS)
def test_a_service_that_talks_to_models_publishes_its_own_answers_and_nothing_else(
    identity: str,
) -> None:
    own = {row.by(identity) for row in (CLAIM, RECORD, RESULT, PORTFOLIO)}
    if identity == "strategy":  # its trained models
        own |= {KEEP_PART.by(identity), BODY_PART.by(identity)}
    durables = [row.durable for row in COMMANDS if row.owner == identity]
    pulls = {
        subject
        for durable in durables
        for subject in (
            f"$JS.API.CONSUMER.INFO.{COMMAND_STREAM}.{durable}",
            f"$JS.API.CONSUMER.MSG.NEXT.{COMMAND_STREAM}.{durable}",
            f"$JS.ACK.{COMMAND_STREAM}.{durable}.>",
        )
    }
    letters = {f"{PREFIX}.dlq.{row.owner}.{row.what}" for row in COMMANDS if row.owner == identity}
    others = {each for each in ALL[identity].publish if not each.startswith("_INBOX_")}
    assert others == own | pulls | letters


@pytest.mark.parametrize("identity", THINKERS)
def test_no_model_is_near_executions_commands(identity: str) -> None:
    for row in COMMANDS:
        if row.owner == "execution":
            assert not may_publish(identity, row.address)
            assert not may_publish(identity, f"$JS.API.CONSUMER.MSG.NEXT.*.{row.durable}")


@pytest.mark.parametrize("identity", OTHERS)
def test_nobody_asks_or_requests_in_anothers_name(identity: str) -> None:
    others = [name for name in EVERYONE if name != identity]
    for row in (*REQUESTS, *QUERIES, CLAIM, RECORD, RESULT):
        for other in others:
            assert not may_publish(identity, row.by(other)), row.by(other)


@pytest.mark.parametrize("identity", EVERYONE)
def test_nobody_listens_on_anothers_inbox(identity: str) -> None:
    assert may_hear(identity, f"_INBOX_{identity}.x")
    for other in EVERYONE:
        if other != identity:
            assert not may_hear(identity, f"_INBOX_{other}.x")


@pytest.mark.parametrize("identity", EVERYONE)
def test_commands_are_pulled_never_listened_to(identity: str) -> None:
    assert not may_hear(identity, f"{PREFIX}.cmd.>")


@pytest.mark.parametrize(
    ("identity", "call"),
    [
        (name, call)
        for name in EVERYONE
        for call in CHANGES
        # The orchestrator throws away dead letters: the next test says how far that goes.
        if name != PROVISIONER and (name, call) != (ORCHESTRATOR, "STREAM.MSG.DELETE.*")
    ],
)
def test_only_the_provisioner_changes_streams_and_consumers(identity: str, call: str) -> None:
    assert not may_publish(identity, f"$JS.API.{call}")


@pytest.mark.parametrize("stream", [each.name for each in streams()])
def test_the_orchestrator_deletes_dead_letters_and_nothing_else(stream: str) -> None:
    deletes = may_publish(ORCHESTRATOR, f"$JS.API.STREAM.MSG.DELETE.{stream}")
    assert deletes is (stream == DEAD_LETTER_STREAM)


@pytest.mark.parametrize("user", USERS)
def test_a_user_may_request_ask_and_hear_events_and_nothing_else(user: str) -> None:
    asks = {row.by(user) for row in (*REQUESTS, *QUERIES) if user in row.senders}
    assert {row for row in REQUESTS if user not in row.senders} <= {*OF_THE_OWNER, PROPOSE}
    looks = {f"$SRV.{verb}{rest}" for verb in DISCOVERY for rest in ("", ".>")}
    assert set(ALL[user].publish) == asks | looks
    assert all(may_hear(user, row.by("x")) for row in EVENTS)


OF_THE_OWNER = (IMPORT_HOLDINGS, MOVE_CASH, SET_LIMIT, BIND, RECONCILE)


@pytest.mark.parametrize("row", OF_THE_OWNER)
def test_only_the_command_line_of_the_owner_moves_the_owners_money_and_sets_limits(
    row: AnySubject,
) -> None:
    allowed = {name for name in ALL for caller in ALL if may_publish(name, row.by(caller))}
    assert allowed == {CLI}


READ_BY_AGENTS = (
    CYCLE,
    CYCLES,
    OPERATION,
    OPERATIONS,
    DECISIONS,
    ACCOUNT,
    PERFORMANCE,
    EXIT_SIGNALS,
    STUDIES,
    STUDY_SCORE,
    STUDY_CALLS,
    STRATEGIES,
)
REQUESTED_BY_AGENTS = (REQUEST_CYCLE, RUN_STUDY)


@pytest.mark.parametrize(
    ("agent", "may_request"), [(MCP, ()), (MCP_REQUESTER, REQUESTED_BY_AGENTS)]
)
def test_an_agent_from_outside_may_look_and_where_a_person_said_so_request_cycles(
    agent: str, may_request: tuple[AnySubject, ...]
) -> None:
    assert set(ALL[agent].publish) == {row.by(agent) for row in (*READ_BY_AGENTS, *may_request)}


WITH_PROPOSERS = permissions(proposers=("alpha", "beta"))
ALPHA, BETA = identity_of("alpha"), identity_of("beta")


def test_a_proposer_says_its_own_three_rows_under_its_own_name_and_hears_its_answers() -> None:
    mine = WITH_PROPOSERS[ALPHA]
    assert set(mine.publish) == {row.by(ALPHA) for row in (PROPOSE, PROPOSAL, PROPOSAL_LIMITS)}
    assert set(mine.subscribe) == {f"_INBOX_{ALPHA}.>"}
    assert mine.keeps == ()


def test_a_proposer_reaches_no_other_subject_that_the_desk_has() -> None:
    mine = WITH_PROPOSERS[ALPHA]
    own = {row.by(ALPHA) for row in OF_PROPOSERS}
    every = {row.by(name) for row in (*ASKED, *OF_ALL_SERVICES) for name in WITH_PROPOSERS}
    every |= {row.by("x") for row in (*COMMANDS, *EVENTS)}
    every |= {each for it in WITH_PROPOSERS.values() for each in (*it.publish, *it.subscribe)}
    said = {each for each in every if any(overlap(ours, each) for ours in mine.publish)}
    assert {each for each in said if not each.endswith((">", "*"))} == own
    heard = {each for each in every if any(overlap(ours, each) for ours in mine.subscribe)}
    assert heard == {f"_INBOX_{ALPHA}.>"}


def test_a_proposer_changes_nobody_elses_rights_but_whose_answers_it_gets() -> None:
    for name, before in ALL.items():
        now = WITH_PROPOSERS[name]
        more = (
            {f"_INBOX_{ALPHA}.>", f"_INBOX_{BETA}.>"} if name in {ORCHESTRATOR, CONSOLE} else set()
        )
        assert (set(now.publish) - set(before.publish), now.subscribe) == (more, before.subscribe)


def test_no_proposer_may_propose_as_another_or_answer_it() -> None:
    for row in OF_PROPOSERS:
        may = {
            name
            for name, it in WITH_PROPOSERS.items()
            if any(overlap(ours, row.by(ALPHA)) for ours in it.publish)
        }
        assert may == {ALPHA}


@pytest.mark.parametrize("agent", AGENTS)
def test_no_agent_from_outside_answers_proposals_halts_or_cancels(agent: str) -> None:
    for row in REQUESTS:
        allowed = agent == MCP_REQUESTER and row in REQUESTED_BY_AGENTS
        assert may_publish(agent, row.by(agent)) is allowed
    assert not any(may_hear(agent, row.by("x")) for row in EVENTS)


def test_the_console_passes_on_what_came_over_http_and_writes_nothing_else() -> None:
    requests = [row for row in REQUESTS if row not in {*OF_THE_OWNER, PROPOSE}]
    told = (
        *requests,
        STUDIES,
        STUDY_CELLS,
        STUDY_SCORE,
        EXIT_SIGNALS,
        EXIT_DISTANCES,
        TEST_CHANNEL,
        CHANNELS,
        PROVIDERS,
    )
    passes_on = {row.by(CONSOLE) for row in told}
    reads = {
        *(f"$JS.API.STREAM.INFO.{each.name}" for each in streams()),
        *(f"$JS.API.CONSUMER.LIST.{each.name}" for each in streams()),
        *(f"$JS.API.STREAM.MSG.GET.{name}" for name in (COMMAND_STREAM, DEAD_LETTER_STREAM)),
    }
    others = {each for each in ALL[CONSOLE].publish if not each.startswith("_INBOX_")}
    assert others == passes_on | reads | {PING}


ANSWERS = {
    "orchestrator": (*SERVICES_ALL, "cli", "user", "console", "mcp_requester", "notifier", "study"),
    "execution": (*SERVICES_ALL, "cli", "user", "console"),
    "console": ("cli", "user", "console", "mcp", "mcp_requester", "reporter"),
    "exit_signal": ("cli", "user", "console", "mcp", "mcp_requester"),
    "study": ("cli", "user", "console", "mcp", "mcp_requester"),
    "sentiment": ("cli", "user", "console", "orchestrator"),
    **dict.fromkeys((*USERS, *AGENTS), ()),
}
"""Whose inboxes each may publish into, by hand; whoever is not named: those who look for it."""


@pytest.mark.parametrize("identity", EVERYONE)
def test_whoever_answers_may_publish_into_the_inboxes_of_those_who_may_ask(identity: str) -> None:
    inboxes = {each for each in ALL[identity].publish if each.startswith("_INBOX")}
    asked_by = ANSWERS.get(identity, ("cli", "user", "console"))
    assert inboxes == {f"_INBOX_{each}.>" for each in asked_by}


@pytest.mark.parametrize("identity", [name for name in DESK if name not in {CONSOLE, STUDY}])
def test_no_part_of_the_desk_but_the_console_and_studies_requests_cycles(identity: str) -> None:
    assert not may_publish(identity, f"{PREFIX}.req.>")


def test_studies_request_cycles_hear_their_ends_and_nothing_else() -> None:
    others = {each for each in ALL[STUDY].publish if not each.startswith("_INBOX_")}
    assert others == {REQUEST_CYCLE.by(STUDY)}
    heard = {row.what for row in EVENTS if may_hear(STUDY, row.by("x"))}
    assert heard == {"cycle_ended"}


@pytest.mark.parametrize("identity", EVERYONE)
def test_only_the_strategy_service_keeps_models_and_reads_them(identity: str) -> None:
    keeps = may_publish(identity, KEEP_PART.by(identity))
    reads = may_publish(identity, BODY_PART.by(identity))
    assert keeps is reads is (identity == "strategy")


def test_the_notifier_pulls_the_durables_of_channels_asks_its_own_questions_and_nothing_else() -> (
    None
):
    asks = {row.by(NOTIFIER) for row in (KEEP_NOTICES, SETTLE_NOTICES)}
    pulls = {
        f"$JS.API.CONSUMER.INFO.{NOTICE_STREAM}.*",
        f"$JS.API.CONSUMER.MSG.NEXT.{NOTICE_STREAM}.*",
        f"$JS.ACK.{NOTICE_STREAM}.*.>",
    }
    others = {each for each in ALL[NOTIFIER].publish if not each.startswith("_INBOX_")}
    assert others == asks | pulls
    assert not any(may_hear(NOTIFIER, row.by("x")) for row in EVENTS)
    for name in EVERYONE:
        asked = {subject for subject in asks if may_publish(name, subject)}
        assert asked == (asks if name == NOTIFIER else set())
        pulled = {subject for subject in pulls if may_publish(name, subject.replace(">", "1"))}
        assert (pulled == set()) is (name not in {NOTIFIER, PROVISIONER})


@pytest.mark.parametrize("identity", DESK)
@pytest.mark.parametrize("verb", DISCOVERY)
def test_a_service_is_found_under_its_own_name_alone(identity: str, verb: str) -> None:
    assert may_hear(identity, f"$SRV.{verb}")
    assert may_hear(identity, f"$SRV.{verb}.{discovered_as(identity)}.x")
    for other in DESK:
        if other != identity:
            assert not may_hear(identity, f"$SRV.{verb}.{discovered_as(other)}")
            assert not may_hear(identity, f"$SRV.{verb}.{discovered_as(other)}.x")


@pytest.mark.parametrize("identity", EVERYONE)
def test_people_look_for_services_and_of_the_desk_the_console_alone_sees_who_is_there(
    identity: str,
) -> None:
    assert may_publish(identity, "$SRV.PING") is (identity in {*USERS, CONSOLE})
    for subject in ("$SRV.PING.x", "$SRV.INFO", "$SRV.STATS", "$SRV.STATS.x"):
        assert may_publish(identity, subject) is (identity in USERS)
    if identity in {*USERS, *AGENTS}:
        assert not may_hear(identity, "$SRV.>")
