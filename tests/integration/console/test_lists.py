"""Lists of cycles and operations over HTTP: outcomes, filters, order, pages; and the search."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import orjson
import pytest

from contracts.account import AccountLimits
from contracts.message import Pipeline
from contracts.risk import Check, DecisionValidation, RuleOutcome
from services.console import handler
from services.console.listings import cycles as listed
from tests.integration.console.conftest import NOW, Made
from tests.integration.console.over_http import problem

if TYPE_CHECKING:
    import httpx2

    from libs.postgres.pool import PoolConnection

USD = {"currency": "USD"}
SESSION = date(2031, 1, 6)
"""Behind those of all other tests: lists are of one table."""


@dataclass
class Several:
    """Cycles with an account of their own, and sessions that no other test has."""

    db: PoolConnection
    account: str
    at: datetime = NOW
    cycles: list[Made] = field(default_factory=list)

    async def cycle(
        self,
        *,
        kind: str = "decision",
        status: str = "completed",
        reason: str = "",
        as_of: date = SESSION,
        providers: tuple[str, ...] = ("rules",),
        took_s: float = 1.0,
        moment: datetime | None = None,
        cycle_id: UUID | None = None,
        state: str = "planning",
    ) -> Made:
        """One more, younger than those before unless it has a `moment`."""
        self.at += timedelta(seconds=1)
        accepted_at = moment or self.at
        lanes = tuple(
            Pipeline(name=name, account=self.account if not n else f"{self.account}-{n}")
            for n, name in enumerate(providers)
        )
        made = Made(self.db, cycle_id or uuid4(), lanes)
        asked = [{**lane.model_dump(mode="json"), "provider": lane.name} for lane in lanes]
        ended = {
            "main": lanes[0].name,
            "lanes": {
                lane.name: {
                    "name": lane.name,
                    "state": state,
                    "outputs": {},
                    "ending": None if status == "running" else {"reason": reason},
                    "substitutes": [],
                    "status": status,
                }
                for lane in lanes
            },
        }
        await self.db.execute(
            "insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key,"
            " body_sha256, request, as_of, started_on, status, reason, state, accepted_at,"
            " deadline_at, ended_at, tokens_max, cost_usd_max)"
            " values ($1, $2, 1, 'cli', $3, '', $4, $5, $6, $7, $8, $9, $10, $10, $11, 1, 1)",
            made.cycle_id,
            kind,
            str(made.cycle_id),
            orjson.dumps({"pipelines": asked}),
            as_of,
            NOW.date(),
            status,
            reason,
            orjson.dumps(ended),
            accepted_at,
            None if status == "running" else accepted_at + timedelta(seconds=took_s),
        )
        self.cycles.append(made)
        return made


@pytest.fixture
async def several(db: PoolConnection) -> Several:
    account = f"list-{uuid4().hex[:8]}"
    await db.execute(
        "insert into accounts (account, currency, starting_cash, opened_on, clock, limits)"
        " values ($1, 'USD', 1, $2, $2, '{}')",
        account,
        SESSION,
    )
    return Several(db, account)


async def got(http: httpx2.AsyncClient, path: str, **filters: Any) -> Any:
    answer = await http.get(f"/api/v1/{path}", params=filters)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ids(http: httpx2.AsyncClient, **filters: Any) -> list[str]:
    return [cycle["cycle_id"] for cycle in (await got(http, "cycles", **filters))["cycles"]]


def bought(made: Made, ticker: str, quantity: int) -> dict[str, Any]:
    """An execution of one buy."""
    order_id = str(uuid4())
    return {
        "cycle_id": str(made.cycle_id),
        "op_id": str(uuid4()),
        "as_of": "2031-01-06",
        "account": "main",
        "orders": [
            {
                "order_id": order_id,
                "asset": ticker,
                "side": "buy",
                "quantity": quantity,
                "status": "filled",
            }
        ],
        "fills": [
            {
                "order_id": order_id,
                "asset": ticker,
                "side": "buy",
                "price": {"amount": "10", **USD},
                "quantity": quantity,
                "fee": {"amount": "1", **USD},
                "session": "2031-01-07",
            }
        ],
        "cash_before": {"amount": "1000", **USD},
        "cash_after": {"amount": "0", **USD},
    }


PICKED = {"picks": [{}, {}], "sell_recommendations": []}


def vetoed(made: Made) -> dict[str, Any]:
    """A validation in which the rules leave nothing: whole, as the overview shows it to all."""
    outcomes = [("exposure_limit", "vetoed"), ("exposure_limit", "vetoed"), ("cash", "kept")]
    checks = tuple(
        Check(
            rule=rule,
            outcome=RuleOutcome(outcome),
            passed=outcome == "kept",
            value="1",
            limit="1",
            reason=outcome,
        )
        for rule, outcome in outcomes
    )
    return DecisionValidation(
        cycle_id=made.cycle_id,
        op_id=uuid4(),
        as_of=SESSION,
        passed=False,
        checks=checks,
        proposal_hash="0" * 64,
        limits=AccountLimits(),
    ).model_dump(mode="json")


# --- outcomes -----------------------------------------------------------------------------------


async def test_each_cycle_says_in_a_sentence_what_came_of_it(
    http: httpx2.AsyncClient, several: Several
) -> None:
    traded = await several.cycle()
    await traded.operation("executing", "execute", result=bought(traded, "AAPL", 39))
    stopped = await several.cycle()
    await stopped.operation("deciding", "picks", result=PICKED)
    await stopped.operation("validating_decision", "validate", result=vetoed(stopped))
    kept = await several.cycle(kind="exit")
    checks = {"checks": [{"quantity": None}, {"ticker": "IBM"}]}
    await kept.operation("checking_exits", "check_exits", result=checks)
    await several.cycle(status="running", state="awaiting_approval")
    await several.cycle(status="failed", reason="analyzing/quant failed: no price (no_history)")
    await several.cycle(kind="report")
    strategy = await several.cycle(kind="strategy")
    designed = {"spec": {"name": "trend"}, "path": "a"}
    await strategy.operation("designing", "design", result=designed)
    await strategy.operation("assessing", "assess", result={"verdict": "mediocre", "path": "b"})

    page = await got(http, "cycles", account=several.account)
    assert [cycle["outcome"] for cycle in reversed(page["cycles"])] == [
        "bought 39 AAPL for 390.00 USD",
        "nothing ordered: the rules vetoed 2 picks (exposure limit)",
        "nothing to sell: 2 positions checked",
        "waits for approval",
        "failed in analyzing/quant: no price (no_history)",
        "report written",
        "trend is mediocre",
    ]


async def test_pipelines_that_ended_otherwise_are_told_apart_and_alike_ones_once(
    http: httpx2.AsyncClient, several: Several
) -> None:
    two = await several.cycle(providers=("rules", "claude"))
    await two.operation("executing", "execute", result=bought(two, "IBM", 3))
    await two.operation("deciding", "picks", pipeline="claude", result={**PICKED, "picks": []})
    await several.cycle(providers=("rules", "claude"), reason="nothing to do")

    alike, told = (await got(http, "cycles", account=several.account))["cycles"]
    wanted = "rules: bought 3 IBM for 30.00 USD; claude: nothing ordered: the trader picked nothing"
    assert told["outcome"] == wanted
    assert alike["outcome"] == "nothing to do"


async def test_a_running_cycles_outcome_is_where_it_is_now_and_not_where_it_was(
    http: httpx2.AsyncClient, db: PoolConnection, several: Several
) -> None:
    made = await several.cycle(status="running")
    (cycle,) = (await got(http, "cycles", account=several.account))["cycles"]
    assert cycle["outcome"] == "now planning"
    await db.execute(
        "update cycles set status = 'completed', ended_at = accepted_at, state = $2"
        " where cycle_id = $1",
        made.cycle_id,
        orjson.dumps(
            {
                "lanes": {
                    "rules": {
                        "state": "",
                        "status": "completed",
                        "ending": {"reason": "all done"},
                        "substitutes": [],
                        "outputs": {},
                    }
                }
            }
        ),
    )
    (cycle,) = (await got(http, "cycles", account=several.account))["cycles"]
    assert cycle["outcome"] == "all done"


# --- filters ------------------------------------------------------------------------------------


async def test_cycles_are_filtered_by_account_provider_kind_status_and_session(
    http: httpx2.AsyncClient, several: Several
) -> None:
    mine = several.account
    rules = str((await several.cycle()).cycle_id)
    both = str((await several.cycle(providers=("rules", "claude"))).cycle_id)
    later = SESSION + timedelta(days=3)
    late = str((await several.cycle(kind="exit", status="failed", as_of=later)).cycle_id)

    assert await ids(http, account=mine) == [late, both, rules]
    assert await ids(http, account=mine, provider="claude") == []
    assert await ids(http, account=f"{mine}-1", provider="claude") == [both]
    assert await ids(http, account=mine, kind="exit") == [late]
    assert await ids(http, account=mine, status="completed", kind="decision") == [both, rules]
    assert await ids(http, account=mine, since=later) == [late]
    assert await ids(http, account=mine, until=SESSION) == [both, rules]
    assert await ids(http, account=mine, since=SESSION, until=later, status="failed") == [late]


async def test_a_text_is_found_in_the_outcome_or_begins_an_id_in_either_case(
    http: httpx2.AsyncClient, several: Several
) -> None:
    traded = await several.cycle()
    await traded.operation("executing", "execute", result=bought(traded, "MSFT", 5))
    await several.cycle()
    whole = str(traded.cycle_id)

    for text in ("msft", "bought MSFT", whole[:8], whole, "decision msft"):
        assert await ids(http, account=several.account, text=text) == [whole], text
    assert await ids(http, account=several.account, text="sold MSFT") == []


async def test_an_id_is_found_however_old_its_cycle_is(
    http: httpx2.AsyncClient, several: Several, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed, "WALKED_MAX", 2)
    old = await several.cycle()
    for _ in range(3):
        await several.cycle()
    assert await ids(http, text=str(old.cycle_id)[:10]) == [str(old.cycle_id)]


async def test_a_word_that_an_id_may_begin_with_is_a_word_too(
    http: httpx2.AsyncClient, several: Several
) -> None:
    traded = await several.cycle()
    await traded.operation("executing", "execute", result=bought(traded, "ADBE", 5))
    op_id = await traded.operation("planning", "plan", result={"assets": ["ADBE"], "objective": ""})
    named = await several.cycle(cycle_id=UUID(f"adbe{uuid4().hex[4:]}"))
    made = await named.operation("planning", "plan", result={"assets": [], "objective": ""})

    both = [str(named.cycle_id), str(traded.cycle_id)]
    assert await ids(http, account=several.account, text="ADBE") == both
    page = await got(http, "operations", type="operation", text="ADBE")
    assert {str(op_id), str(made)} <= {node["op_id"] for node in page["data"]}


async def test_a_provider_that_has_decided_nothing_yet_is_known_all_the_same(
    http: httpx2.AsyncClient, several: Several
) -> None:
    for provider in ("coin", "minimax", "ollama"):
        assert await ids(http, account=several.account, provider=provider) == []


async def test_a_search_ends_after_so_many_cycles_says_so_and_goes_on_behind_them(
    http: httpx2.AsyncClient, several: Several, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed, "WALKED_MAX", 2)
    old = await several.cycle(reason="something rare")
    for _ in range(3):
        await several.cycle()
    # Of this session alone: other tests' cycles are among the newest.
    asked = {"since": SESSION, "until": SESSION, "text": "rare", "account": several.account}
    page = await got(http, "cycles", **asked)
    seen = []
    while not page["cycles"]:
        assert (page["searched"], page["cut"]) == (2, True)
        seen.append(page["before"])
        page = await got(http, "cycles", **asked, before=page["before"])
    assert [cycle["cycle_id"] for cycle in page["cycles"]] == [str(old.cycle_id)]
    assert len(seen) == len(set(seen)) > 0


# --- pages and order ----------------------------------------------------------------------------


async def test_no_cycle_is_lost_or_seen_twice_between_pages_though_several_began_at_once(
    http: httpx2.AsyncClient, several: Several
) -> None:
    at = NOW + timedelta(days=1)
    made = {str((await several.cycle(moment=at)).cycle_id) for _ in range(7)}
    for filters in ({}, {"since": SESSION, "until": SESSION}, {"sort": "took"}):
        seen: list[str] = []
        before: dict[str, str] = {}
        while True:
            asked = {"account": several.account, "limit": 3, **filters, **before}
            page = await got(http, "cycles", **asked)
            seen += [cycle["cycle_id"] for cycle in page["cycles"]]
            if page["before"] is None:
                break
            before = {"before": page["before"]}
        assert len(seen) == len(made), filters
        assert set(seen) == made, filters


async def test_cycles_are_sorted_both_ways_and_what_runs_has_taken_longest(
    http: httpx2.AsyncClient, several: Several
) -> None:
    slow = str((await several.cycle(took_s=9)).cycle_id)
    fast = str((await several.cycle(took_s=1, kind="exit")).cycle_id)
    runs = str((await several.cycle(status="running")).cycle_id)
    mine = {"account": several.account}
    assert await ids(http, **mine, sort="took") == [runs, slow, fast]
    assert await ids(http, **mine, sort="took", ascending=True) == [fast, slow, runs]
    assert await ids(http, **mine, ascending=True) == [slow, fast, runs]
    assert (await ids(http, **mine, sort="kind"))[0] == fast
    assert (await ids(http, **mine, sort="status"))[0] == runs


# --- what cannot be -----------------------------------------------------------------------------


async def test_a_filter_that_nothing_can_fit_is_refused_with_the_nearest_name(
    http: httpx2.AsyncClient, several: Several
) -> None:
    made = await several.cycle()
    mistyped = several.account.replace("list-", "lits-")
    for path in ("cycles", "operations"):
        answer = await http.get(f"/api/v1/{path}", params={"account": mistyped})
        told = problem(answer, 404, "unknown_account")
        assert told["detail"].endswith(f"did you mean {several.account}?")
        days = {"since": "2031-02-01", "until": "2031-01-01"}
        told = problem(await http.get(f"/api/v1/{path}", params=days), 422, "invalid")
        assert told["field"] == "since"
        for wrong in (
            {"since": "2031-02-30"},
            {"text": "x" * 10_000},
            {"text": "a\x00b"},
            {"before": "zzzz"},
            {"before": "0000000"},
        ):
            problem(await http.get(f"/api/v1/{path}", params=wrong), 422, "invalid")
    problem(await http.get("/api/v1/cycles", params={"provider": "clade"}), 422, "unknown_type")
    # A cycle of another list is no place in this one, where the order is not that of time.
    other = {"before": str(made.cycle_id), "sort": "took", "kind": "snapshot"}
    problem(await http.get("/api/v1/cycles", params=other), 422, "invalid")


async def test_a_page_with_such_a_filter_says_so_and_keeps_what_was_chosen(
    http: httpx2.AsyncClient, several: Several
) -> None:
    await several.cycle()
    for query, words in (
        ("since=2031-02-30&kind=exit", "Since: takes a day"),
        ("since=2031-02-01&until=2031-01-01", "Since: 2031-02-01 is after until"),
        (f"account={several.account}x", f"did you mean {several.account}?"),
        ("text=" + "x" * 7_000, "Text: takes at most 100 characters"),
        ("before=zzzz", "Before: "),
    ):
        for path in ("cycles", "operations"):
            answer = await http.get(f"/{path}?{query}", headers={"Accept": "text/html"})
            assert answer.status_code == 422, query
            assert words in answer.text, query
            assert "Clear filters" in answer.text or "before" in query
    answer = await http.get("/cycles?since=2031-02-30&kind=exit", headers={"Accept": "text/html"})
    assert '<option value="exit" selected>' in " ".join(answer.text.split())


# --- operations ---------------------------------------------------------------------------------


async def test_operations_are_filtered_and_searched_and_go_on_behind_a_page(
    http: httpx2.AsyncClient, several: Several
) -> None:
    made = await several.cycle()
    first = str(
        await made.operation("planning", "plan", result={"assets": ["ZZZT"], "objective": ""})
    )
    await made.operation("deciding", "picks", result=PICKED)
    failure = {"code": "no_price", "message": "no price of QQQX"}
    lost = str(await made.operation("analyzing", "quant", status="failed", failure=failure))

    async def found(**filters: Any) -> list[str]:
        page = await got(http, "operations", type="operation", **filters)
        return [node["op_id"] for node in page["data"]]

    assert await found(text="zzzt") == [first]
    assert await found(text="QQQX", status="failed") == [lost]
    assert await found(text=first[:8]) == [first]
    assert len(await found(text=str(made.cycle_id)[:8])) == 3
    assert await found(text=str(made.cycle_id)[:8], status="failed") == [lost]
    whole = await found(account="main", text=str(made.cycle_id)[:8])
    page = await got(http, "operations", type="operation", limit=1)
    seen = {page["data"][0]["op_id"]}
    page = await got(http, "operations", type="operation", limit=1, before=page["before"])
    assert page["data"][0]["op_id"] not in seen
    assert len(whole) == 3


async def test_operations_of_a_study_are_on_no_list_of_the_desks(
    http: httpx2.AsyncClient, several: Several, db: PoolConnection
) -> None:
    failure = {"code": "no_price", "message": "no price of QQQX"}
    cell, own = await several.cycle(), await several.cycle()
    await db.execute("update cycles set requester = 'study' where cycle_id = $1", cell.cycle_id)
    for step, status in (("quant", "failed"), ("picks", "pending")):
        await cell.operation("analyzing", step, status=status, failure=failure)
        mine = await own.operation("analyzing", step, status=status, failure=failure)
        page = await got(http, "operations", type="operation", status=status)
        cycles = {node["cycle_id"] for node in page["data"]}
        assert str(mine) in {node["op_id"] for node in page["data"]}
        assert str(cell.cycle_id) not in cycles


async def test_cycles_among_operations_are_not_filtered_to_nothing(
    http: httpx2.AsyncClient, several: Several
) -> None:
    await several.cycle()
    for kind in ("cycle", "agent_research"):
        answer = await http.get(
            "/api/v1/operations", params={"type": kind, "account": several.account}
        )
        assert problem(answer, 422, "invalid")["field"] == "type"


async def test_what_does_not_fit_one_answer_is_on_the_next_page_though_it_would_be_the_last(
    http: httpx2.AsyncClient, several: Several, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await several.cycle()
    every = {str(await made.operation("planning", step)) for step in ("plan", "quant", "picks")}
    monkeypatch.setattr(handler, "fitting", lambda nodes: nodes[:1])
    seen: list[str] = []
    before: dict[str, str] = {}
    while True:
        asked = {"type": "operation", "text": str(made.cycle_id)[:13], **before}
        page = await got(http, "operations", **asked)
        seen += [node["op_id"] for node in page["data"]]
        if page["before"] is None:
            break
        before = {"before": page["before"]}
    assert len(seen) == len(every)
    assert set(seen) == every


# --- the search ---------------------------------------------------------------------------------


async def test_the_search_leads_to_accounts_cycles_and_operations(
    http: httpx2.AsyncClient, several: Several
) -> None:
    made = await several.cycle()
    op_id = str(await made.operation("planning", "plan"))
    whole = str(made.cycle_id)

    async def pages(text: str) -> dict[str, str]:
        results = (await got(http, "search", q=text))["results"]
        return {result["page"]: result["kind"] for result in results}

    assert (await pages(whole[:8]))[f"/cycles/{whole}"] == "cycle"
    assert (await pages(op_id[:8]))[f"/operations/{op_id}"] == "operation"
    assert (await pages(several.account[2:]))[f"/portfolio?account={several.account}"] == "account"
    assert (await pages("slippage b"))["/settings#broker.slippage_bps"] == "setting"
    assert await pages("DESKBUS_HTTP_TOKEN_FI") == {"/settings#http.token_file": "setting"}
    assert await pages("  ") == {}
    assert await pages("nothing-is-named-so") == {}
    problem(await http.get("/api/v1/search", params={"q": "x" * 101}), 422, "invalid")
    problem(await http.get("/api/v1/search"), 422, "invalid")
    assert len((await got(http, "search", q="a"))["results"]) <= 6 * 8
