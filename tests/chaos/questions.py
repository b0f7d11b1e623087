"""Asks a desk over HTTP, of all that it decided, the five questions that a user asks.

    python -m tests.chaos.questions URL    the desk that answers there; it is only read
    python -m tests.chaos.questions        the demo's year, then half a year with models (slow)

What did the model see (each call of a model, each other call and step), why this (each pick, sale,
rule, order and end), why not that (each candidate that was not bought, each position that was not
sold), what did it cost (each cycle, pipeline, step and call), what came of it (each cycle and
order, stops too). An answer that is empty is printed with its address, and so is one that the
record contradicts; then the exit is 1.

A short form runs in the suite: tests/integration/desk/test_demo.py and test_questions.py.
"""

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import orjson
from pydantic import ValidationError

from contracts.not_bought import Cause
from libs.report.calls.chat import NOT_RECORDED
from libs.report.reports import CANNOT_BE_READ, CONTRACTS
from libs.runtime.model_settings import BUILT_IN
from tests.chaos import half_year
from tests.chaos.started_desk import started_desk
from tests.fakes.model_server import model_server
from tests.open_folder import open_folder

PAGE = 100
ASKED_S = 60.0
SHOWN_MAX = 60
PARTS = ({"system", "tools", "user"}, {"system", "schema", "user"})
"""The texts of the first call of a transcript: with tools, or with the schema of its answer."""
WRONG_ENDS = ("failed", "cancelled", "rejected", "expired")
Json = Mapping[str, Any]
Read = Callable[[str], Any]
"""The JSON of a path below /api/v1."""


class Question(StrEnum):
    """The questions."""

    SEEN = "what did the model see"
    WHY = "why this"
    WHY_NOT = "why not that"
    COST = "what did it cost"
    RESULT = "what came of it"


@dataclass
class Answers:
    """How often each question was asked, the kinds of ends and causes that were met, and each
    answer that is `empty` or false: its question, its path and what it is about."""

    asked: Counter[Question] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    empty: list[str] = field(default_factory=list)

    def ask(self, question: Question, answer: object, path: str, about: str) -> None:
        """Count a question; an empty answer is kept."""
        self.asked[question] += 1
        if not answer:
            self.empty.append(f"{question.value}: {about}: no answer at /api/v1{path}")

    def holds(self, true: bool, question: Question, path: str, about: str) -> None:
        """Keep an answer that the record contradicts."""
        if not true:
            self.empty.append(f"{question.value}: {about}: contradicted by /api/v1{path}")


def ask(read: Read) -> Answers:
    """Ask everything. Raises LookupError where there is no decision with a candidate."""
    answers = Answers()
    for listed in cycles(read):
        _Cycle(read, answers, listed).ask()
    if not answers.asked[Question.WHY_NOT]:
        raise LookupError("the desk has no decision with a candidate")
    return answers


def cycles(read: Read) -> Iterator[Json]:
    """All cycles, as the list has them."""
    before = ""
    while True:
        page = read(f"/cycles?limit={PAGE}{before}")
        yield from page["cycles"]
        if page["before"] is None:
            return
        before = f"&before={page['before']}"


class _Cycle:
    """One cycle with its tree."""

    def __init__(self, read: Read, answers: Answers, listed: Json) -> None:
        self._read, self._answers, self._listed = read, answers, listed
        self._path = f"/cycles/{listed['cycle_id']}"
        self._view: Json = read(self._path)
        self._nodes: Sequence[Json] = read(f"{self._path}/operations")["data"]

    def ask(self) -> None:
        view = self._view
        self._answers.met[f"{view['kind']} {view['status']}"] += 1
        about = f"{view['kind']} of {view['as_of']}"
        self._ask(Question.RESULT, self._listed["outcome"], about, "/cycles")
        self._ask(Question.RESULT, view["outcome"], about)
        said = f"{about}: the list says {self._listed['outcome']!r}, the cycle {view['outcome']!r}"
        same = self._listed["outcome"] == view["outcome"] or view["status"] == "running"
        self._answers.holds(same, Question.RESULT, self._path, said)
        if view["status"] in WRONG_ENDS:
            self._ask(Question.WHY, view["reason"] or self._one_lane_says_why(), f"{about} ended")
        self._costs(about)
        for node in self._nodes:
            self._node(node)
        for lane in view["pipelines"]:
            self._answers.met[f"pipeline {lane['status']}"] += 1
            _Lane(self._answers, self._path, view, lane).ask()

    def _one_lane_says_why(self) -> bool:
        return any(lane["reason"] for lane in self._view["pipelines"])

    def _ask(self, question: Question, answer: object, about: str, path: str = "") -> None:
        self._answers.ask(question, answer, path or self._path, about)

    # --- what did it cost ---

    def _costs(self, about: str) -> None:
        view, tree = self._view, f"{self._path}/operations"
        self._ask(Question.COST, "cost_usd" in view and view["usage"], about)
        of_steps = [node for node in self._nodes if node["service"] and _is_step(node)]
        self._answers.holds(
            _tokens(of_steps) == view["tokens"] and _cost(of_steps) == _cost([view]),
            Question.COST,
            tree,
            f"{about}: its steps come to {_tokens(of_steps)} tokens and {_cost(of_steps)} USD, "
            f"the cycle to {view['tokens']} and {view['cost_usd']}",
        )
        for lane in view["pipelines"]:
            own = [node for node in self._nodes if node["type"] == "pipeline"]
            of_lane = [node for node in own if node["pipeline"] == lane["name"]]
            strategy = view["kind"] == "strategy" or not own
            self._ask(Question.COST, strategy or of_lane, f"pipeline {lane['name']}", tree)

    def _node(self, node: Json) -> None:
        tree = f"{self._path}/operations"
        about = f"{node['type']} {node['name']}"
        if node["finished_at"] is not None:
            self._ask(Question.COST, node["started_at"] or node["created_at"], about, tree)
        if node["status"] in {"failed", "cancelled"}:
            self._ask(Question.WHY, node["error_message"], f"{about} {node['status']}", tree)
        if node["type"] == "model":
            self._model_call(node)
        elif node["type"] == "tool":
            known = node["metadata"].get("result") or node["metadata"].get("fault")
            self._ask(Question.SEEN, known, about, tree)
        elif _is_step(node):
            self._step(node)

    # --- what did the model see ---

    def _step(self, node: Json) -> None:
        path = f"/operations/{node['op_id']}/record"
        about = f"step {node['name']}, {node['status']}"
        record = self._read(path)
        self._ask(Question.SEEN, record["command"], f"{about}: what it was asked", path)
        if node["status"] == "completed":
            self._ask(Question.SEEN, record["result"], f"{about}: its answer", path)
        for entry in record["journal"]:
            call = f"{about}: call {entry['index']}, {entry['name']}"
            self._ask(Question.SEEN, entry["reply"] is not None, call, path)

    def _model_call(self, node: Json) -> None:
        meta = node["metadata"]
        path = f"/operations/{node['parent_id']}/calls/{meta['index']}/sent"
        about = f"{node['name']}, call {meta['index']} of {node['state']}"
        pages, first = [self._read(path)], 0
        while pages[-1]["more"]:
            first += len(pages[-1]["texts"])
            pages.append(self._read(f"{path}?first={first}"))
        texts = list(chain.from_iterable(page["texts"] for page in pages))
        roles = {text["role"] for text in texts}
        again = bool(meta.get("again"))
        whole = any(parts <= roles for parts in PARTS) or "tool" in roles or again
        self._ask(Question.SEEN, whole, f"{about}: {sorted(roles)}", path)
        for text in texts:
            said = text["text"] or text["about"] or text["note"]
            self._ask(Question.SEEN, said, f"{about}: {text['role']}", path)
            bound = text["role"] != "assistant"
            self._answers.holds(
                not (bound and text["note"].startswith(NOT_RECORDED)),
                Question.SEEN,
                path,
                f"{about}: {text['role']} is {text['note']}",
            )
        provider = node["name"].partition(":")[0]
        free = provider in BUILT_IN or "fault" in meta or node["usage"].get("cost_usd") is None
        self._ask(Question.COST, free or node["tokens"], about, path)


class _Lane:
    """One pipeline with its contracts."""

    def __init__(self, answers: Answers, path: str, view: Json, lane: Json) -> None:
        self._answers, self._path, self._view, self._lane = answers, path, view, lane
        contracts: Json = lane["contracts"]
        self._digest = contracts.get("signal_digest") or {}
        self._plan = contracts.get("plan") or {}
        self._research = contracts.get("research_report") or {}
        self._picks = contracts.get("daily_picks") or {}
        self._exits = contracts.get("exit_report") or {}
        self._validation = contracts.get("decision_validation") or {}
        self._approval = contracts.get("approval") or {}
        self._execution = contracts.get("execution_result") or {}
        self._assessment = contracts.get("strategy_assessment") or {}
        positions = (contracts.get("portfolio") or {}).get("positions", ())
        self._held = {each["ticker"] for each in positions if Decimal(each["quantity"]) > 0}

    def ask(self) -> None:
        lane = self._lane
        if lane["status"] in WRONG_ENDS:
            why = lane["reason"] or (len(self._view["pipelines"]) == 1 and self._view["reason"])
            self._ask(Question.WHY, why, f"{lane['name']} {lane['status']}")
        for each in lane["substitutes"]:
            self._answers.met[f"substitute {each['why']}"] += 1
            accident = each["why"] == "fallback"
            self._ask(Question.WHY, each["reason"] or not accident, f"{each['stage']} substitute")
        self._why()
        self._why_not()
        self._results()

    def _ask(self, question: Question, answer: object, about: str) -> None:
        where = f"{self._lane['name']} of {self._view['as_of']}: {about}"
        self._answers.ask(question, answer, self._path, where)

    def _holds(self, true: bool, question: Question, about: str) -> None:
        where = f"{self._lane['name']} of {self._view['as_of']}: {about}"
        self._answers.holds(true, question, self._path, where)

    # --- why this ---

    def _why(self) -> None:
        for finding in self._research.get("tickers", ()):
            self._ask(Question.WHY, finding["summary"], f"finding of {finding['ticker']}")
        for pick in (*self._picks.get("picks", ()), *self._picks.get("sell_recommendations", ())):
            self._ask(Question.WHY, pick["reasoning"], f"{pick['action']} {pick['ticker']}")
        for decision in self._validation.get("decisions", ()):
            about = f"{decision['action']} {decision['asset']}"
            self._ask(Question.WHY, decision["reasoning"], about)
            if decision["action"] == "buy":
                self._ask(Question.WHY, decision.get("plan"), f"{about}: its plan")
        for check in self._validation.get("checks", ()):
            if check["outcome"] != "kept":
                self._answers.met[f"rule {check['outcome']}"] += 1
                about = f"{check['rule']} {check['outcome']} {check['ticker']}"
                self._ask(Question.WHY, check["value"] and check["limit"], about)
                self._ask(Question.WHY, check["reason"], about)
        if self._approval:
            self._answers.met[f"approval {self._approval['verdict']}"] += 1
            self._ask(Question.WHY, self._approval["approver"], "approval: who answered")
        decided = {each["asset"] for each in self._validation.get("decisions", ())}
        for order in self._execution.get("orders", ()):
            about = f"order {order['side']} {order['asset']}"
            self._ask(Question.WHY, order["asset"] in decided, about)
        if self._assessment:
            for name in ("verdict", "strengths", "weaknesses", "suggestions"):
                self._ask(Question.WHY, self._assessment[name], f"assessment: {name}")

    # --- why not that ---

    def _why_not(self) -> None:
        causes: dict[str, list[Json]] = {}
        for cause in self._lane["not_bought"]:
            causes.setdefault(cause["ticker"], []).append(cause)
        running = self._lane["status"] == "running"
        fills = self._execution.get("fills", ())
        bought = {fill["asset"] for fill in fills if fill["side"] == "buy"}
        works = {
            order["asset"]
            for order in self._execution.get("orders", ())
            if (order["side"], order["status"]) == ("buy", "working")
        }
        for candidate in self._digest.get("candidates", ()) if self._decides else ():
            ticker = candidate["ticker"]
            own = causes.get(ticker, [])
            if ticker in bought:
                self._holds(not own, Question.WHY_NOT, f"{ticker} was bought")
            elif ticker not in works and not (running and not own):
                # What waits for a person is neither bought nor refused yet.
                said = own and all(cause["why"] or cause["value"] for cause in own)
                self._ask(Question.WHY_NOT, said, ticker)
        for cause in chain.from_iterable(causes.values()):
            self._answers.met[f"cause {cause['cause']}"] += 1
            about = f"{cause['ticker']}: {cause['cause']} {cause['name']} {cause['why']}"
            self._holds(self._is_true(cause), Question.WHY_NOT, about)
        for check in self._exits.get("checks", ()):
            self._answers.met["exit sells" if check["quantity"] else "exit keeps"] += 1
            question = Question.WHY if check["quantity"] else Question.WHY_NOT
            judged = check["failure"] or (check["assessment"] and check["signals"])
            by_hand = check["assessment"].startswith("EXIT BY HAND")
            self._ask(question, judged or by_hand, f"exit of {check['ticker']}")
            for signal in check["signals"]:
                about = f"exit of {check['ticker']} by {signal['rule']}"
                self._ask(question, signal["detail"], about)

    @property
    def _decides(self) -> bool:
        return self._view["kind"] == "decision"

    def _is_true(self, cause: Json) -> bool:
        """Whether the record has what the cause says, and nothing that it denies."""
        ticker, picks = cause["ticker"], self._picks
        wanted = {pick["ticker"] for pick in picks.get("picks", ())}
        found = {each["ticker"] for each in self._research.get("tickers", ())}
        match Cause(cause["cause"]):
            case Cause.HELD:
                return ticker in self._held
            case Cause.RULE | Cause.THRESHOLD:
                return bool(cause["name"] and cause["limit"])
            case Cause.NO_REASON | Cause.OWN_WORDS:
                return bool(picks) and ticker not in wanted
            case Cause.NOT_LOOKED_INTO:
                return ticker not in self._plan["assets"] and ticker not in found
            case Cause.NO_FINDING:
                return bool(self._research) and ticker not in found
            case Cause.NOT_DECIDED:
                return not self._execution and self._lane["status"] != "completed"
            case Cause.PERSON:
                return bool(self._approval)
            case Cause.ORDER:
                orders = self._execution.get("orders", ())
                own = [each for each in orders if (each["asset"], each["side"]) == (ticker, "buy")]
                return all(each["status"] not in {"filled", "working"} for each in own)
            case Cause.UNSTABLE:
                return any(each["ticker"] == ticker for each in picks["unstable"])
            case Cause.UNREADABLE:
                lost = cause["why"].removesuffix(f" {CANNOT_BE_READ}").split(" and ")
                return not any(self._reads(name.replace(" ", "_")) for name in lost)

    def _reads(self, name: str) -> bool:
        """Whether this contract is absent or can be read."""
        body = self._lane["contracts"].get(name)
        try:
            return body is None or bool(dict(CONTRACTS.values())[name].model_validate(body))
        except ValidationError:
            return False

    # --- what came of it, and what an order cost ---

    def _results(self) -> None:
        results = list(self._lane["results"])
        fills = {fill["order_id"]: fill for fill in self._execution.get("fills", ())}
        for order in self._execution.get("orders", ()):
            about = f"{order['type']} {order['side']} {order['asset']}"
            self._answers.met[f"order {order['type']} {order['side']} {order['status']}"] += 1
            own = next((each for each in results if each["order_id"] == order["order_id"]), None)
            self._ask(Question.RESULT, own, about)
            if own is not None:
                self._result(own, about)
            fill = fills.get(order["order_id"])
            if fill is not None:
                self._ask(Question.COST, fill["fee"]["currency"], about)

    def _result(self, own: Json, about: str) -> None:
        self._answers.met[f"result {own['type']} {own['side']} {own['status']}"] += 1
        if own["status"] == "filled":
            valued = own["gain"] is not None or not own["as_of"] or own["as_of"] < own["filled_on"]
            self._ask(Question.RESULT, valued, f"{about}: filled {own['filled_on']}")
        elif own["status"] != "working":
            self._ask(Question.RESULT, own["reason"], f"{about}: {own['status']}")


def _is_step(node: Json) -> bool:
    return node["type"] not in {"cycle", "pipeline", "model", "tool", "read", "agent_research"}


def _tokens(nodes: Sequence[Json]) -> int:
    return sum(node["tokens"] for node in nodes)


def _cost(nodes: Sequence[Json]) -> Decimal | None:
    """None where the price of any is unknown."""
    costs = [node["cost_usd"] for node in nodes]
    return None if None in costs else sum(map(Decimal, costs), Decimal(0)).normalize()


def reader(url: str) -> Read:
    """Reads from a desk's console."""

    def read(path: str) -> Any:
        with urlopen(f"{url}/api/v1{path}", timeout=ASKED_S) as answer:
            return orjson.loads(answer.read())

    return read


def printed(answers: Answers, must: Set[str] = frozenset()) -> int:
    """Print the counts, what was met and each empty answer; how many are empty, or of `must` were
    not met."""
    missing = [f"never met: {kind}" for kind in sorted(must - answers.met.keys())]
    lines = [f"{question.value}: {answers.asked[question]:,} asked" for question in Question]
    lines += [f"  {kind}: {count:,}" for kind, count in sorted(answers.met.items())]
    lines += [*missing, *answers.empty[:SHOWN_MAX], f"{len(answers.empty):,} without an answer"]
    sys.stdout.write("\n".join(lines) + "\n")
    return len(answers.empty) + len(missing)


@contextmanager
def _demo(folder: Path) -> Iterator[str]:
    """The demo with its whole year, while the block runs; its address."""
    words = ["demo", "--dir", str(folder / "demo"), "--no-browser", "--port", "0"]
    command = [sys.executable, "-m", "services.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1].decode()
        draining = threading.Thread(target=process.stderr.read, daemon=True)
        draining.start()
        while b"/leaderboard" not in process.stdout.readline():
            if process.poll() is not None:
                raise RuntimeError(f"deskbus demo exits {process.returncode}")
        try:
            yield url
        finally:
            process.terminate()


async def _half_year(folder: Path) -> Answers:
    async with model_server(half_year.replied, None) as model:
        environment = half_year.environment(folder, model.openai_url)
        async with started_desk(folder / "data", "--port", "0", environment=environment) as desk:
            url = str(desk.http_url)
            days = half_year.sessions(half_year.WEEK)
            await asyncio.to_thread(half_year.live, url, days)
            return await asyncio.to_thread(ask, reader(url))


def main() -> int:
    """Ask the desk that is named, or live both spans and ask about them."""
    if len(sys.argv) > 1:
        return printed(ask(reader(sys.argv[1].rstrip("/"))))
    with open_folder() as folder:
        with _demo(folder) as url:
            without = printed(ask(reader(url)))
        return without + printed(asyncio.run(_half_year(folder)), half_year.MET)


if __name__ == "__main__":
    sys.exit(bool(main()))
