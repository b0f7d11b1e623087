"""Half a year of a desk with models, over HTTP: made-up prices, headlines and filings are replayed,
and cycles end in every way that there is.

The models are one server that answers as the desk's rules do. What a model is named says how it
differs; each is a provider of its own.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import orjson

from libs.market.calendar import exchange_calendar
from tests.data.fixture_market.make_fixture import HERE
from tests.fakes.model_server import Answer, Asked, Error
from tests.fakes.rules_model import agent_of, as_the_rules
from tests.fakes.wire_formats import Says

FIRST, LAST = date(2023, 9, 11), date(2024, 3, 15)
QUARTER = 42
"""Sessions between the decisions of the short form."""
BUYS_ON = date(2024, 3, 15)
"""A session at which the rules propose to buy."""
WEEK = 5
CYCLE_S = 120.0
LOOK_S = 0.05
PLAIN, TERSE, SHAKY, BABBLES, AWAY = "plain", "terse", "shaky", "babbles", "away"
PRICE = {"input": 1, "output": 3}
APPROVAL_S = 10
OWN_WORDS = "its margins shrink"
BUYS_TOO_MUCH = "95"
Json = dict[str, Any]

MET = {
    "decision completed",
    "decision failed",
    "decision cancelled",
    "decision rejected",
    "decision expired",
    "exit completed",
    "snapshot completed",
    "report completed",
    "approval approve",
    "approval reject",
    "approval edit",
    "substitute fallback",
    "cause held",
    "cause rule",
    "cause threshold",
    "cause own_words",
    "cause no_reason",
    "cause not_looked_into",
    "cause no_finding",
    "cause not_decided",
    "cause person",
    "cause unstable",
    "rule cut",
    "rule vetoed",
    "exit sells",
    "exit keeps",
    "result market buy filled",
    "result market sell filled",
    "result stop sell working",
    "result stop sell filled",
    "result stop sell cancelled",
}
"""What a half year must have met, so that it was asked about."""


def environment(folder: Path, url: str) -> Mapping[str, str]:
    """The settings of the desk, whose models answer at `url`."""
    rules = folder / "exits.toml"
    rules.write_text("[default]\nstop_pct = 6\n\n[default.take_profit]\npct = 12\n")
    providers = {
        name: {
            "base_url": url,
            "models": dict.fromkeys(("small", "medium", "large"), name),
            "rate": {},
            "key_variable": "HALF_YEAR_KEY",
            **({"fallback": {"research": "rules"}} if name == AWAY else {}),
        }
        for name in (PLAIN, TERSE, SHAKY, BABBLES, AWAY)
    }
    return {
        "HALF_YEAR_KEY": "nobody-asks-for-it",
        "DESKBUS_MARKET_REPLAY_DIR": str(HERE),
        "DESKBUS_EXIT_RULES_FILE": str(rules),
        "DESKBUS_APPROVAL_TIMEOUT_S": str(APPROVAL_S),
        "DESKBUS_PROVIDERS": json.dumps(providers),
        "DESKBUS_PRICES": json.dumps(dict.fromkeys(providers, PRICE)),
    }


def sessions(step: int) -> Sequence[date]:
    """The sessions of the decisions."""
    return exchange_calendar().sessions(FIRST, LAST)[::step]


# --- the models -----------------------------------------------------------------------------------


def replied(asked: Asked) -> Answer:
    """The reply to a request, by the model's name."""
    agent, model = agent_of(asked), asked.body["model"]
    if model == AWAY and agent == "analyst":
        return Error(400, "invalid_request_error", "this model is away")
    if model == BABBLES and agent == "planner" and not asked.tools:
        return Says("I would rather talk about the weather.")
    plain = as_the_rules(asked)
    if asked.tools or not isinstance(plain, Says):
        return plain
    answer = orjson.loads(plain.text.partition("\n")[2])
    change = CHANGES.get((model, agent))
    return Says(orjson.dumps(change(answer, asked) if change else answer).decode())


def _fewer_assets(answer: Json, _: Asked) -> Json:
    return {**answer, "assets": answer["assets"][:-1] or answer["assets"]}


def _fewer_findings(answer: Json, _: Asked) -> Json:
    return {**answer, "tickers": answer["tickers"][:-1] or answer["tickers"]}


def _greedy(answer: Json, _: Asked) -> Json:
    """Much of its first pick, words on one ticker, and nothing on the others."""
    picks = [{**pick, "allocation_pct": BUYS_TOO_MUCH} for pick in answer["picks"][:1]]
    passed = [{"ticker": "ECHO", "why": OWN_WORDS}]
    return {**answer, "picks": picks, "passed": passed}


def _now_and_then(answer: Json, asked: Asked) -> Json:
    return answer if asked.number % 2 else {**answer, "picks": []}


CHANGES: Mapping[tuple[str, str], Callable[[Json, Asked], Json]] = {
    (TERSE, "planner"): _fewer_assets,
    (TERSE, "analyst"): _fewer_findings,
    (TERSE, "trader"): _greedy,
    (SHAKY, "trader"): _now_and_then,
}


# --- the half year --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Desk:
    """The desk at an address."""

    url: str

    def get(self, path: str) -> Any:
        """What a path below /api/v1 says."""
        return self._asked(Request(f"{self.url}/api/v1{path}"))

    def post(self, path: str, body: Json, method: str = "POST") -> Any:
        """What a request is answered. Raises HTTPError where it is refused."""
        head = {"Content-Type": "application/json"}
        data = orjson.dumps(body)
        return self._asked(Request(f"{self.url}/api/v1{path}", data, head, method=method))

    def _asked(self, request: Request) -> Any:
        with urlopen(request, timeout=CYCLE_S) as answer:
            return orjson.loads(answer.read())

    def begin(self, day: date, *lanes: str, **fields: Any) -> str:
        """Ask for a cycle; a lane is a provider, or `provider@account`."""
        pipelines = [
            {"name": account or provider, "provider": provider, "account": account or provider}
            for provider, _, account in (lane.partition("@") for lane in lanes)
        ]
        asked = self.post("/cycles", {"as_of": str(day), "pipelines": pipelines, **fields})
        return str(asked["cycle_id"])

    def run(self, day: date, *lanes: str, **fields: Any) -> str:
        """A cycle to its end."""
        cycle_id = self.begin(day, *lanes, **fields)
        self.until(cycle_id, lambda view: view["status"] != "running")
        return cycle_id

    def until(self, cycle_id: str, done: Callable[[Json], bool]) -> Json:
        """The cycle once it is so. Raises TimeoutError."""
        deadline = time.monotonic() + CYCLE_S
        while not done(view := self.get(f"/cycles/{cycle_id}")):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{cycle_id}: {view['status']}, {view['outcome']}")
            time.sleep(LOOK_S)
        return view  # type: ignore[no-any-return]

    def proposed(self, day: date, account: str) -> tuple[str, Json]:
        """A cycle that waits for a person, with its proposal: of this day, or of one that has one.
        Raises LookupError where there is nothing to ask."""
        for at in (day, BUYS_ON):
            cycle_id = self.begin(at, f"rules@{account}", approval_required=True)
            self.until(cycle_id, lambda it: it["status"] != "running" or _waits(it))
            waiting = self.get(f"/approvals?cycle_id={cycle_id}")["approvals"]
            if waiting:
                return cycle_id, waiting[0]
        raise LookupError(f"the rules propose nothing for {account}")


def _waits(view: Json) -> bool:
    return any(lane["state"] == "awaiting_approval" for lane in view["pipelines"])


def live(url: str, days: Sequence[date]) -> None:
    """Live these sessions: each with a sell check, a decision of the rules and a model, and some of
    what a desk meets. All of that is met on few days too."""
    desk = Desk(url)
    a_day = -(-len(MEETS) // len(days))
    late, _ = desk.proposed(days[0], "late")
    for number, day in enumerate(days):
        if number:
            desk.run(day, "rules@main", f"{PLAIN}@{PLAIN}", f"{TERSE}@{TERSE}", kind="exit")
        desk.run(day, "rules@main", PLAIN)
        desk.run(day, TERSE)
        for place in range(a_day):
            MEETS[(number * a_day + place) % len(MEETS)](desk, day)
    last = exchange_calendar().sessions(days[-1], LAST)[-1]
    _sold_by_hand(desk, days[-1])
    desk.run(last, "rules@main", PLAIN, TERSE, kind="snapshot")
    desk.run(last, "rules@main", kind="report")
    desk.until(late, lambda view: view["status"] != "running")


def _rejected(desk: Desk, day: date) -> None:
    cycle_id, waiting = desk.proposed(day, f"no-{day:%m%d}")
    _answer(desk, cycle_id, waiting, "reject", reason="not before the report")


def _edited(desk: Desk, day: date) -> None:
    cycle_id, waiting = desk.proposed(day, f"less-{day:%m%d}")
    first, *others = waiting["proposal"]["decisions"]
    # Who would drop all of it rejects it.
    left = Decimal(0) if others else Decimal(first["quantity"]) // 2
    edits = [{"asset": first["asset"], "quantity": str(left)}]
    _answer(desk, cycle_id, waiting, "approve", edits=edits)


def _approved(desk: Desk, day: date) -> None:
    cycle_id, waiting = desk.proposed(day, f"yes-{day:%m%d}")
    _answer(desk, cycle_id, waiting, "approve")


def _answer(desk: Desk, cycle_id: str, waiting: Json, word: str, **fields: Any) -> None:
    body = {"proposal_hash": waiting["proposal"]["proposal_hash"], **fields}
    desk.post(f"/approvals/{cycle_id}/{word}", body)
    desk.until(cycle_id, lambda view: view["status"] != "running")


def _cancelled(desk: Desk, day: date) -> None:
    cycle_id, _ = desk.proposed(day, f"off-{day:%m%d}")
    desk.post(f"/cycles/{cycle_id}?reason=changed+my+mind", {}, "DELETE")


def _fallen_back(desk: Desk, day: date) -> None:
    desk.run(day, AWAY)


def _babbled(desk: Desk, day: date) -> None:
    desk.run(day, BABBLES)


def _unsteady(desk: Desk, day: date) -> None:
    desk.run(day, SHAKY, samples=2)


def _too_dear(desk: Desk, day: date) -> None:
    desk.run(day, f"{PLAIN}@poor", budgets={"tokens": 3_000})


def _too_slow(desk: Desk, day: date) -> None:
    desk.run(day, f"{PLAIN}@slow", timeout_s=0.3)


def _halted(desk: Desk, day: date) -> None:
    account = f"still-{day:%m%d}"
    desk.run(day, f"rules@{account}", kind="snapshot")
    desk.post("/halts", {"account": account, "reason": "a drill"})
    desk.run(day, f"rules@{account}")


def _restricted(desk: Desk, day: date) -> None:
    limits = {"max_sector_pct": "10", "max_risk_score": "1", "max_positions": "1"}
    desk.run(day, f"rules@bound-{day:%m%d}", constraints=limits)


def _sold_by_hand(desk: Desk, day: date) -> None:
    """Half of each position of an account with stops."""
    for account in ("main", PLAIN, TERSE):
        positions = desk.get(f"/portfolio?account={account}")["portfolio"]["positions"]
        for held in positions[:1]:
            body = {"account": account, "share_pct": "50", "as_of": str(day)}
            try:
                asked = desk.post(f"/exit-signals/{held['ticker']}/sell", body)
            except HTTPError as error:
                if error.code != HTTPStatus.CONFLICT:
                    raise
                continue
            desk.until(str(asked["cycle_id"]), lambda view: view["status"] != "running")


MEETS: Sequence[Callable[[Desk, date], None]] = (
    _rejected,
    _edited,
    _approved,
    _cancelled,
    _fallen_back,
    _babbled,
    _unsteady,
    _too_dear,
    _too_slow,
    _halted,
    _restricted,
    _sold_by_hand,
)
