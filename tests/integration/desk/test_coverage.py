"""One cycle on the made-up market, three that follow it: every rule, tool and end is reached.

What there is to reach is read from the code: a rule, a tool or an end that is added and that no
case here reaches makes this fail.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from contracts.account import Side
from contracts.cycle import CycleStatus
from contracts.operation import CallKind
from contracts.risk import RuleOutcome
from contracts.sentiment import DropRule, Slot
from libs.quant.risk.evaluation import ONE_PICK_PER_TICKER, WHOLE_SHARES
from libs.quant.risk.rules import BUY_CEILINGS, BUY_GATES, LEAST_SIZE, SELL_GATES
from services.orchestrator.machine.workflows import DECISION, PLAN_ATTEMPTS_MAX
from services.research.tools import ANALYST_TOOLS
from services.risk.logic import REVIEW
from services.sentiment.logic import SLOT_SHARES
from services.sentiment.sources import REGISTRY
from services.trader.tools import TRADER_TOOLS
from tests.fakes import crowded_market as market
from tests.fakes import rumours
from tests.fakes.scripted_rules import Parts, Script, played
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, Json, calling, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk, desk_in

PAIR, UNRESEARCHED, RISKY = "BTC/USD", "DLTA", market.GAINERS[0]
REMOVED, HALVED = market.LOSERS[0], market.LOSERS[1]
ASSETS = ("ALFA", "BRVO", "CHRL", "ECHO", "FOXT", RISKY, REMOVED, HALVED)
SPECK = "0.0001"
"""The smallest share there is: whatever cuts it, cuts it to nothing."""
LIMITS = {
    "forbidden": {
        "position_pct_max": Decimal(0),
        "order_pct_max": Decimal(0),
        "risk_per_trade_pct_max": Decimal(0),
        "cluster_pct_max": Decimal(0),
    },
    "odd": {"report_sessions": Decimal(20), "exits_veto_buys": False},
    "greedy": {"exits_veto_buys": False},
}

WHOLE_S = 240.0
"""Of a cycle with many pipelines, on a busy machine."""
DAY, MONDAY, NEXT = market.AS_OF, date(2024, 3, 18), market.LATER
PARTS = Parts(
    assets=(*ASSETS, market.RISEN, market.FALLING),
    lost="lost",
    risky=RISKY,
    reviews={REMOVED: Decimal(0), HALVED: Decimal(5)},
    added=["CHRL"],
    picks={
        # Four times over every limit, and two specks of which nothing can be left.
        ("greedy", DAY): Script(
            [("ALFA", "60"), ("BRVO", "60"), ("ECHO", "50"), ("FOXT", SPECK), ("CHRL", SPECK)]
        ),
        ("odd", DAY): Script(
            [
                (PAIR, "5"),
                (UNRESEARCHED, "5"),
                (RISKY, "5"),
                ("BRVO", "0.01"),
                ("CHRL", "0.4"),
                ("FOXT", "10"),
                ("FOXT", "5"),
                (REMOVED, "5"),
                (HALVED, "10"),
            ],
            sells=[(PAIR, "100"), ("ALFA", "100")],
        ),
        ("forbidden", DAY): Script([("ALFA", "10")]),
        # Of two share classes of one issuer the larger buy stays.
        ("falling", DAY): Script([(market.FALLING, "40"), (market.RISEN, "5")]),
        ("rejected", DAY): Script([("ALFA", "10")]),
        ("expired", DAY): Script([("ALFA", "10")]),
        ("greedy", NEXT): Script([("ALFA", "10")]),
        ("falling", NEXT): Script([("FOXT", "10")]),
        ("idle", NEXT): Script([("FOXT", "10")]),
        ("again", DAY): Script([("ALFA", "10")]),
        ("again", MONDAY): Script([("ALFA", "10")], sells=[("ALFA", "100")]),
        ("again", NEXT): Script([("ALFA", "10")]),
        ("abroad", DAY): Script([]),
        ("abroad", NEXT): Script([("FOXT", "10")]),
    },
)
FIRST = ("greedy", "odd", "forbidden", "falling", "rejected", "expired", "lost", "idle")
SECOND = ("greedy", "falling", "idle", "abroad", "again")
EURO = {"abroad": {"currency": "EUR"}}
"""There is a rate of the euro on DAY; on NEXT it is too old."""


def lanes(*accounts: str) -> list[Json]:
    """A pipeline for each account, of the same name."""
    return [{"name": name, "account": name} for name in accounts]


# --- what was reached -----------------------------------------------------------------------------


@dataclass
class Reached:
    """Everything that the cycles came by, as their contracts and journals say."""

    slots: set[object] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    dropped: set[DropRule] = field(default_factory=set)
    tools: set[tuple[str, str]] = field(default_factory=set)
    states: set[str] = field(default_factory=set)
    rules: set[tuple[str, str, str]] = field(default_factory=set)
    rules_at_execution: set[tuple[str, str, str]] = field(default_factory=set)
    ends: set[tuple[CycleStatus, bool]] = field(default_factory=set)

    def look_at(self, view: Json, nodes: list[Json], calls: Mapping[str, list[Json]]) -> None:
        """Take in one cycle: its view, its operations, and the journal of each step."""
        self.states |= {node["state"] for node in nodes if node["type"] == "operation"}
        for pipeline in view["pipelines"]:
            self._digest(pipeline["contracts"].get("signal_digest", {}))
            self._rules(pipeline["contracts"])
            ordered = bool(pipeline["contracts"].get("execution_result", {}).get("fills"))
            self.ends.add((CycleStatus(pipeline["status"]), ordered))
        for step, entries in calls.items():
            self.tools |= {
                (step, entry["name"])
                for entry in entries
                if entry["kind"] == CallKind.TOOL and "error" not in entry["reply"]
            }

    def _digest(self, digest: Json) -> None:
        for candidate in digest.get("candidates", ()):
            slot = Slot(candidate["slot"])
            self.slots.add((slot, candidate["sources"][0]) if slot is Slot.KEPT else slot)
            self.sources |= {*candidate["sources"]}
        self.dropped |= {DropRule(each["rule"]) for each in digest.get("dropped", ())}

    def _rules(self, contracts: Json) -> None:
        for check in contracts.get("decision_validation", {}).get("checks", ()):
            side = check["reason"].split()[0]
            self.rules.add((side, check["rule"], check["outcome"]))
        for order in contracts.get("execution_result", {}).get("orders", ()):
            # At execution the rules speak in the reason of the order that they cut.
            for rule, side, outcome in re.findall(
                rf"{order['asset']}: (\w+): (\w+) of \S+ (cut|vetoed)", order["reason"]
            ):
                self.rules_at_execution.add((side, rule, outcome))


def rules_of(side: Side, names: Any, *outcomes: RuleOutcome) -> set[tuple[str, str, str]]:
    return {(side.value, name, outcome.value) for name in names for outcome in outcomes}


CUT, VETOED = RuleOutcome.CUT, RuleOutcome.VETOED
CLASSES = "one_share_class"
"""A ceiling that lets all of a buy pass, or none."""
EXPECTED_RULES = {
    *rules_of(Side.BUY, (rule.name for rule in BUY_GATES), VETOED),
    *rules_of(Side.SELL, (rule.name for rule in SELL_GATES), VETOED),
    *rules_of(Side.BUY, (rule.name for rule in BUY_CEILINGS if rule.name != CLASSES), CUT, VETOED),
    *rules_of(Side.BUY, (CLASSES,), VETOED),
    *rules_of(Side.BUY, (REVIEW,), CUT, VETOED),
    *rules_of(Side.BUY, (LEAST_SIZE.name, WHOLE_SHARES), VETOED),
    ("the", ONE_PICK_PER_TICKER, CUT.value),
}
EXPECTED_SLOTS = {
    *(slot for slot in Slot if slot is not Slot.KEPT),
    *((Slot.KEPT, source) for source in SLOT_SHARES),
}
EXPECTED_TOOLS = {
    *(("analyst", name) for name in ANALYST_TOOLS),
    *(("picks", name) for name in TRADER_TOOLS),
}
EXPECTED_STATES = {
    state.name for state in (*DECISION.shared, *DECISION.states, *filter(None, (DECISION.closing,)))
}
EXPECTED_ENDS = {
    *((status, False) for status in CycleStatus if status is not CycleStatus.RUNNING),
    (CycleStatus.COMPLETED, True),
}


# --- the cycles -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowded(
    make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn
) -> Iterator[Desk]:
    """A desk on the crowded market whose agents do as the script says."""
    folder, prices = make_open_dir(), make_open_dir()
    market.make(prices)
    sources = ",".join((*REGISTRY, f"{rumours.__name__}:{rumours.Rumours.__name__}"))
    settings: dict[str, Any] = {
        "market_replay_dir": prices,
        "candidates_sources": sources,
        "approval_accounts": ("rejected", "expired"),
        "limits": {"exits_veto_buys": True},
        "accounts": {**{name: {"limits": own} for name, own in LIMITS.items()}, **EURO},
    }
    with ExitStack() as stack:
        stack.enter_context(played(PARTS))
        yield stack.enter_context(desk_in(folder, own_environment_in, **settings))


async def asked(user: Caller, cycle_id: str, pipeline: str) -> Json:
    """The proposal of a pipeline, once it waits for a person."""
    await user.events.first(cycle_id=cycle_id, type="approval_requested", pipeline=pipeline)
    page = await user.query("approvals", cycle_id=cycle_id)
    found: Json = next(each for each in page["approvals"] if each["pipeline"] == pipeline)
    return found


async def first_cycle(desk: Desk, user: Caller) -> str:
    """All pipelines at once; a person says no to one of them, and nothing to another."""
    cycle_id = await user.accepted(wish(as_of=f"{DAY}", pipelines=lanes(*FIRST), main="greedy"))
    no = await asked(user, cycle_id, "rejected")
    proposal_hash = no["proposal"]["proposal_hash"]
    answer = {"cycle_id": cycle_id, "pipeline": "rejected", "proposal_hash": proposal_hash}
    said = await user.ask({**answer, "verdict": "reject", "reason": "no"}, "approval")
    assert said["outcome"] == "accepted", said
    silent = await asked(user, cycle_id, "expired")
    async with desk.postgres() as db:
        now = "update operations set deadline_at = clock_timestamp() where op_id = $1"
        await db.execute(now, UUID(silent["op_id"]))
    await user.ended(cycle_id, WHOLE_S)
    return cycle_id


async def selling_cycle(user: Caller) -> str:
    """Wants back what the cycle before it, of the same session, has given away."""
    for session in (DAY, MONDAY):
        await user.run(wish(as_of=f"{session}", pipelines=lanes("again")))
    view = await user.run(wish(as_of=f"{MONDAY}", pipelines=lanes("again")))
    return str(view["cycle_id"])


async def second_cycle(user: Caller) -> str:
    """Days later: one account holds what it wants, one has just sold it, one has lost too much, one
    is halted, and one has no exchange rate any more."""
    await user.run(wish(as_of=f"{DAY}", pipelines=lanes("abroad")))
    halt = {"account": "idle", "reason": "a drill"}
    said = await user.ask(halt, "halt", "execution")
    assert said["changed"], said
    cycle_id = await user.accepted(wish(as_of=f"{NEXT}", pipelines=lanes(*SECOND)))
    await user.ended(cycle_id, WHOLE_S)
    return cycle_id


async def cancelled_cycle(desk: Desk, user: Caller) -> str:
    """A universe of its own with names that nobody has, called off before anything is picked."""
    universe = ["ALFA", rumours.UNPRICED, market.REPORTING[2]]
    body = wish(
        as_of=f"{DAY}", universe=universe, sources=["news", "rumours"], pipelines=lanes("off")
    )
    async with desk.held_back("trader-picks"):
        cycle_id = await user.accepted(body)
        await user.events.first(cycle_id=cycle_id, type="state_entered", state="deciding")
        await user.ask({"cycle_id": cycle_id}, "cancel")
        await user.ended(cycle_id, WHOLE_S)
    return cycle_id


async def test_a_plan_that_stays_wrong_is_asked_for_so_often_and_the_tree_shows_each_try(
    crowded: Desk, tmp_path: Path
) -> None:
    async with calling(crowded.url, crowded.secrets_dir, "user") as user:
        view = await user.run(wish(as_of=f"{DAY}", pipelines=lanes("lost")))
        nodes = (await user.query("operations", cycle_id=view["cycle_id"]))["operations"]
    tries = [node for node in nodes if node["type"] == "operation" and node["name"] == "plan"]

    said = "neither in the digest nor held; choose from "
    assert [(node["attempt"], node["status"]) for node in tries] == [
        (attempt, "failed") for attempt in range(1, PLAN_ATTEMPTS_MAX + 1)
    ]
    assert len({node["op_id"] for node in tries}) == PLAN_ATTEMPTS_MAX
    assert all(said in node["error_message"] for node in tries)
    assert view["status"] == "failed"
    assert view["reason"].startswith(
        "planning/plan failed: planner (rules) returned an invalid answer: "
    )
    assert said in view["reason"]
    assert "model.plan_attempts_max" in view["reason"]
    # Wide enough for the reason beside a time of any length.
    deskbus = CommandLine(crowded.settings.data_dir, tmp_path, (("COLUMNS", "160"),))
    drawn = deskbus(f"operations tree {view['cycle_id']}").out
    assert "planning/plan (attempt 3)" in drawn
    each = [line for line in drawn.splitlines() if "─ planning/plan" in line]
    assert len(each) == PLAN_ATTEMPTS_MAX
    assert all("planner (rules)" in line for line in each)
    assert "model.plan_attempts_max" in " ".join(
        deskbus(f"cycle show {view['cycle_id']}").out.split()
    )


async def calls_of(desk: Desk, cycle_id: str) -> Mapping[str, list[Json]]:
    async with desk.postgres() as db:
        rows = await db.fetch(
            "select o.step, j.entry from journal j join operations o using (op_id) "
            "where o.cycle_id = $1",
            UUID(cycle_id),
        )
    found: dict[str, list[Json]] = {}
    for row in rows:
        found.setdefault(row["step"], []).append(orjson.loads(row["entry"]))
    return found


async def whole(desk: Desk, view: Json) -> Json:
    """The view with the validations that were too large for one answer."""
    async with desk.postgres() as db:
        for pipeline in view["pipelines"]:
            validation = pipeline["contracts"].get("decision_validation", {})
            if validation.get("cut"):
                result = await db.fetchval(
                    "select result from operations where cycle_id = $1 and pipeline = $2"
                    " and step = 'validate' and status = 'completed'",
                    UUID(view["cycle_id"]),
                    pipeline["name"],
                )
                pipeline["contracts"]["decision_validation"] = orjson.loads(result)
    return view


async def test_every_rule_tool_and_end_that_the_code_has_is_reached(crowded: Desk) -> None:
    reached = Reached()
    async with calling(crowded.url, crowded.secrets_dir, "user") as user:
        for cycle_id in (
            await first_cycle(crowded, user),
            await selling_cycle(user),
            await second_cycle(user),
            await cancelled_cycle(crowded, user),
        ):
            view = await whole(crowded, await user.query("cycle", cycle_id=cycle_id))
            nodes = (await user.query("operations", cycle_id=cycle_id, limit=200))["operations"]
            reached.look_at(view, nodes, await calls_of(crowded, cycle_id))

    assert reached.slots == EXPECTED_SLOTS
    assert reached.sources == {*REGISTRY}
    assert reached.dropped == set(DropRule)
    assert reached.tools >= EXPECTED_TOOLS
    assert reached.states == EXPECTED_STATES
    assert EXPECTED_RULES - reached.rules == set()
    assert reached.ends == EXPECTED_ENDS
    # What stood against a pick is a rule that is known here, so none is missing above either.
    against = {name for _, name, outcome in reached.rules if outcome != RuleOutcome.KEPT.value}
    assert against == {name for _, name, _ in EXPECTED_RULES}
