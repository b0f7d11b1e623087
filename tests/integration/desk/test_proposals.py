"""Proposals before a whole desk: what a token opens, what is proposed, what is ordered."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from libs.report.orders import BOOKED_LATER
from libs.runtime.http_address import http_address
from libs.runtime.proposers import Proposers
from tests.fakes.proposers import added
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, Json
from tests.integration.desk.command_line import CommandLine, ended
from tests.integration.desk.conftest import Desk, desk_in
from tests.integration.desk.holding import holding
from tests.integration.desk.over_http import got, refused

SESSION = "2013-03-01"
"""The newest of the prices that come with Deskbus."""
WAIT_S = 60.0
OFTEN = {"per_hour_max": 1_000}
PROPOSERS = {
    "alpha": OFTEN,
    "beta": OFTEN,
    "free": {**OFTEN, "approval_required": False},
    "seller": {**OFTEN, "approval_required": False, "sales_max": 1, "sold_pct_max": 5},
    "slow": {"per_hour_max": 2},
    "gone": OFTEN,
}


@dataclass(frozen=True)
class Gate:
    """A desk with proposers, and their tokens."""

    desk: Desk
    tokens: dict[str, str]
    owner: str
    cwd: Path

    @asynccontextmanager
    async def as_(self, name: str) -> AsyncIterator[httpx2.AsyncClient]:
        """A proposer over HTTP; `owner` is the desk's own person."""
        async with self._calling(self.owner if name == "owner" else self.tokens[name]) as client:
            yield client

    @asynccontextmanager
    async def stranger(self) -> AsyncIterator[httpx2.AsyncClient]:
        async with self._calling(None) as client:
            yield client

    def _calling(self, token: str | None) -> httpx2.AsyncClient:
        address = http_address(self.desk.settings)
        assert address is not None
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(
            base_url=f"{address.url}/api/v1", headers=headers, verify=False, timeout=WAIT_S
        )

    @property
    def cli(self) -> CommandLine:
        return CommandLine(self.desk.settings.data_dir, self.cwd)


@pytest.fixture(scope="module")
def gate(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Gate]:
    folder = make_open_dir()
    tokens = added(folder / "data" / "secrets", PROPOSERS)
    with desk_in(folder, own_environment_in, http_enabled=True, http_port=0) as running:
        address = http_address(running.settings)
        assert address is not None
        assert address.token is not None
        yield Gate(running, tokens, address.token, make_open_dir())


@pytest.fixture
async def user(gate: Gate) -> AsyncIterator[Caller]:
    async with gate.desk.calling("user") as caller:
        yield caller


def buy(ticker: str = "GOOG", pct: object = "20", **fields: object) -> Json:
    return {"ticker": ticker, "action": "buy", "allocation_pct": pct, "confidence": 0.2, **fields}


def sell(ticker: str, pct: object = "100") -> Json:
    return {"ticker": ticker, "action": "sell", "allocation_pct": pct}


def wish(*picks: Json, **fields: object) -> Json:
    return {"proposal_id": f"p-{uuid4().hex[:12]}", "picks": [*picks], **fields}


async def proposed(http: httpx2.AsyncClient, body: Json) -> str:
    answer = await http.post("/proposals", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["cycle_id"])


async def seen(http: httpx2.AsyncClient, body: Json, *states: str) -> Json:
    """The proposal, once it has ended or is in one of these states."""
    params = {"preview": "true"} if body.get("preview") else {}
    async with asyncio.timeout(WAIT_S):
        while True:
            view = await got(http, f"/proposals/{body['proposal_id']}", **params)
            if view["status"] != "running" or view["state"] in states:
                return view
            await asyncio.sleep(0.1)


async def orders(gate: Gate, cycle_id: str) -> list[Json]:
    async with gate.desk.postgres() as db:
        rows = await db.fetch("select * from orders where cycle_id = $1::uuid", cycle_id)
    return [dict(row) for row in rows]


# --- a proposal's way ---------------------------------------------------------------------------


async def test_a_proposal_is_cut_by_rules_waits_for_a_person_and_is_ordered(
    gate: Gate, user: Caller
) -> None:
    body = wish(buy(pct="60", reason="a friend\nsays https://evil.example/x up\u202e"))
    async with gate.as_("alpha") as alpha:
        cycle_id = await proposed(alpha, body)
        waiting = await seen(alpha, body, "awaiting_approval")
        assert (waiting["session"], waiting["account"]) == (SESSION, "alpha")
        assert "risk_per_trade" in {cut["rule"] for cut in waiting["cuts"]}
        assert await orders(gate, cycle_id) == []

        page = await user.query("approvals", cycle_id=cycle_id)
        (asked,) = page["approvals"]
        assert asked["requester"] == "proposer-alpha"
        assert waiting["answer_by"] == asked["expires_at"]
        (words,) = asked["unchecked"]
        assert words["words"] == "a friend says (link left out) up"
        answer = {
            "cycle_id": cycle_id,
            "proposal_hash": asked["proposal"]["proposal_hash"],
            "verdict": "approve",
        }
        assert (await user.ask(answer, "approval"))["outcome"] == "accepted"
        done = await seen(alpha, body)

    (order,) = await orders(gate, cycle_id)
    assert (done["status"], done["answer_by"]) == ("completed", None)
    assert (order["account"], order["ticker"]) == ("alpha", "GOOG")
    assert float(order["quantity"]) == float(waiting["decisions"][0]["quantity"])
    assert float(order["quantity"]) * 806.19 < 0.1 * 100_000


async def test_a_proposer_sees_what_an_edit_left_and_what_books_the_fill(
    gate: Gate, user: Caller
) -> None:
    body = wish(buy("MSFT", "60"))
    async with gate.as_("alpha") as alpha:
        cycle_id = await proposed(alpha, body)
        (whole,) = (await seen(alpha, body, "awaiting_approval"))["decisions"]
        (asked,) = (await user.query("approvals", cycle_id=cycle_id))["approvals"]
        shares = int(float(whole["quantity"])) // 4
        answer = {
            "cycle_id": cycle_id,
            "proposal_hash": asked["proposal"]["proposal_hash"],
            "verdict": "edit",
            "edits": [{"asset": "MSFT", "quantity": shares}],
        }
        assert (await user.ask(answer, "approval"))["outcome"] == "accepted"
        done = await seen(alpha, body)
    (left,) = done["decisions"]
    assert float(left["quantity"]) == shares
    of_whole = float(left["allocation_pct"]) / float(whole["allocation_pct"])
    assert of_whole == pytest.approx(shares / float(whole["quantity"]), abs=0.01)
    assert done["outcome"] == "1 order working"
    assert [order["reason"] for order in done["orders"]] == [BOOKED_LATER]


async def test_its_words_are_in_no_contract_and_no_call_of_a_stage(gate: Gate) -> None:
    marker = f"zebra{uuid4().hex[:8]}"
    body = wish(buy("IBM", reason=f"because of the {marker}"))
    async with gate.as_("beta") as beta:
        cycle_id = await proposed(beta, body)
        await seen(beta, body, "awaiting_approval")
    async with gate.desk.postgres() as db:
        for table, column in (("journal", "entry"), ("prompt_texts", "text")):
            found = await db.fetchval(
                f"select count(*) from {table} where position($1::bytea in {column}) > 0"
                if column == "entry"
                else f"select count(*) from {table} where {table}::text like '%' || $1 || '%'",
                marker.encode() if column == "entry" else marker,
            )
            assert found == 0, table
        results = await db.fetch(
            "select step, result from operations where cycle_id = $1::uuid", cycle_id
        )
    assert {row["step"] for row in results} >= {"picks", "validate"}
    assert not [row["step"] for row in results if marker.encode() in (row["result"] or b"")]


async def test_the_same_again_is_the_same_and_another_body_is_refused(gate: Gate) -> None:
    body = wish(buy())
    async with gate.as_("free") as free:
        first = await proposed(free, body)
        assert await proposed(free, body) == first
        other = {**body, "picks": [buy(pct="21")]}
        refused(await free.post("/proposals", json=other), 409, "key_reused")
        assert (await seen(free, body))["status"] == "completed"
        assert await proposed(free, body) == first
    assert len(await orders(gate, first)) <= 1


async def test_a_preview_says_what_would_be_left_and_is_neither_ordered_nor_a_decision(
    gate: Gate, user: Caller
) -> None:
    body = wish(buy("MSFT"), preview=True)
    async with gate.as_("beta") as beta:
        cycle_id = await proposed(beta, body)
        view = await seen(beta, body)
        assert (view["status"], view["preview"]) == ("completed", True)
        assert "nothing is ordered" in view["outcome"]
        unknown = await beta.get(f"/proposals/{body['proposal_id']}")
        assert "ask with preview true" in refused(unknown, 404, "not_found")["detail"]
    assert await orders(gate, cycle_id) == []
    assert (await user.query("decisions", cycle_id=cycle_id))["decisions"] == []
    async with gate.desk.postgres() as db:
        steps = await db.fetch("select step from operations where cycle_id = $1::uuid", cycle_id)
    assert {row["step"] for row in steps}.isdisjoint({"execute", "memorize", "approval"})


async def test_its_confidence_counts_as_the_lowest(gate: Gate, user: Caller) -> None:
    body = wish(buy(pct="60", confidence=0.2), preview=True)
    async with gate.as_("beta") as beta:
        await proposed(beta, body)
        view = await seen(beta, body)
    (cut,) = [cut for cut in view["cuts"] if cut["rule"] == "risk_per_trade"]
    assert "counts as 0.00" in cut["reason"]


async def test_sales_have_limits_and_only_what_is_held_is_sold(gate: Gate) -> None:
    async with gate.desk.calling("cli") as owner:
        await holding(owner, "seller", {"IBM": 60, "GOOG": 20, "MSFT": 300}, "10000")
    async with gate.as_("seller") as seller:
        limits = await got(seller, "/proposer")
        held = [one["ticker"] for one in limits["held"]]
        assert len(held) == 3
        body = wish(*map(sell, held), sell("FB"))
        cycle_id = await proposed(seller, body)
        view = await seen(seller, body)
        assert [one["ticker"] for one in view["left_out"]] == ["FB"]
        made = await orders(gate, cycle_id)
        again = wish(sell(held[0], "10"))
        await proposed(seller, again)
        after = await seen(seller, again)
    values = {one["ticker"]: float(one["price"]) for one in limits["held"]}
    sold = [(one["ticker"], float(one["quantity"])) for one in made if one["side"] == "sell"]
    assert len(sold) <= 1
    equity = float(limits["equity"]["amount"])
    assert sum(values[name] * shares for name, shares in sold) <= 0.05 * equity
    assert "max_sold_pct" in {cut["rule"] for cut in view["cuts"]}
    if sold:
        assert after["decisions"] == []
        assert "max_sales" in {cut["rule"] for cut in after["cuts"]}


async def test_a_replay_needs_no_proposer(gate: Gate) -> None:
    body = wish(buy("IBM", "15"))
    async with gate.as_("free") as free:
        cycle_id = await proposed(free, body)
        await seen(free, body)
    said = await asyncio.to_thread(gate.cli, f"cycle replay {cycle_id}")
    assert said.code == 0, said.err
    assert "same" in said.out + said.err


# --- what is refused ----------------------------------------------------------------------------

REFUSED = {
    "nothing": ([], {}),
    "a negative share": ([buy(pct="-1")], {}),
    "no share": ([buy(pct="0")], {}),
    "more than all": ([buy(pct="100.01")], {}),
    "not a number": ([buy(pct="NaN")], {}),
    "endless": ([buy(pct="Infinity")], {}),
    "huge": ([buy(pct="1e30")], {}),
    "too much in all": ([buy("IBM", "60"), buy("GOOG", "60")], {}),
    "unknown": ([buy("ZZZZ")], {}),
    "both sides": ([buy("IBM"), sell("IBM")], {}),
    "twice": ([buy("IBM"), buy("IBM")], {}),
    "too many": ([buy(f"A{number}", "1") for number in range(11)], {}),
    "too sure": ([buy(confidence=1.5)], {}),
    "too many words": ([buy(reason="x" * 501)], {}),
    "a NUL": ([buy(reason="x\x00y")], {}),
    "an unknown field": ([buy(approval_required=False)], {}),
    "approval by the call": ([buy()], {"approval_required": False}),
    "another account": ([buy()], {"account": "main"}),
    "a past session": ([buy()], {"session": "2012-06-29"}),
    "a later session": ([buy()], {"session": "2030-01-02"}),
    "a date of its own": ([buy()], {"as_of": "2012-06-29"}),
    "a hold": ([{**buy(), "action": "hold"}], {}),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_proposal_that_cannot_be_is_refused(gate: Gate, what: str) -> None:
    picks, fields = REFUSED[what]
    async with gate.as_("alpha") as alpha:
        answer = await alpha.post("/proposals", json=wish(*picks, **fields))
    assert answer.status_code == 422, answer.text


async def test_whoever_proposes_too_often_waits_and_previews_count(gate: Gate) -> None:
    async with gate.as_("slow") as slow:
        for preview in (True, True):
            body = wish(buy("IBM"), preview=preview)
            await proposed(slow, body)
            await seen(slow, body)
        answer = await slow.post("/proposals", json=wish(buy("IBM")))
        assert refused(answer, 429, "too_often")
        assert (await got(slow, "/proposer"))["left_this_hour"] == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"pipelines": [{"name": "x", "provider": "proposal"}]},
        {"pipelines": [{"name": "x", "stages": {"trader": "proposal"}}]},
        {"kind": "preview"},
        {"proposal": {"proposer": "alpha", "picks": [buy()]}},
    ],
)
async def test_nobody_else_asks_in_the_name_of_a_proposer(user: Caller, fields: Json) -> None:
    answer = await user.ask({"idempotency_key": uuid4().hex, "as_of": SESSION, **fields})
    assert answer["outcome"] == "rejected", answer


# --- what a token opens -------------------------------------------------------------------------

OWN = {("POST", "/proposals"), ("GET", "/proposals/{proposal_id}"), ("GET", "/proposer")}


async def test_a_proposers_token_opens_its_own_paths_of_http_and_no_other(gate: Gate) -> None:
    async with gate.as_("owner") as owner:
        document = await got(owner, "/openapi.json")
        routes = {
            (method.upper(), path.removeprefix("/api/v1"))
            for path, methods in document["paths"].items()
            for method in methods
        }
        for method, path in OWN:
            made = path.replace("{proposal_id}", "x")
            answer = await owner.request(
                method, made, json=wish(buy()) if method == "POST" else None
            )
            refused(answer, 403, "not_a_proposer")
    assert routes > OWN
    assert len(routes) > 40
    async with gate.as_("alpha") as alpha, gate.stranger() as stranger:
        for method, path in sorted(routes - OWN):
            made = path.replace("{", "").replace("}", "")
            body = {} if method in {"POST", "PUT"} else None
            answer = await alpha.request(method, made, json=body)
            refused(answer, 403, "not_for_proposers")
            answer = await stranger.request(method, made, json=body)
            assert answer.status_code in {401, 422} or path == "/session", (method, path)
        for sly in ("/proposals/../cycles", "/proposals/%2e%2e/cycles", "/proposals//../cycles"):
            answer = await alpha.get(sly)
            assert answer.status_code in {403, 404, 422}, (sly, answer.text)
        for page in ("/", "/approvals", "/portfolio", "/proposalsx", "/api/v1/openapi.json"):
            root = str(alpha.base_url).removesuffix("/api/v1/")
            answer = await alpha.get(f"{root}{page}")
            assert answer.status_code == 403, (page, answer.status_code)


async def test_a_token_of_nobody_is_nobody(gate: Gate) -> None:
    async with gate.stranger() as http:
        for token in ("dbp_x", "dbp_", f"{gate.tokens['alpha']}x", gate.tokens["alpha"][:-1]):
            answer = await http.get("/proposer", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 401


async def test_a_proposer_sees_no_proposal_of_another(gate: Gate) -> None:
    body = wish(buy())
    async with gate.as_("alpha") as alpha, gate.as_("beta") as beta:
        mine = await proposed(alpha, {**body, "preview": True})
        refused(await beta.get(f"/proposals/{body['proposal_id']}?preview=true"), 404, "not_found")
        refused(await beta.get(f"/proposals/{mine}"), 404, "not_found")
        theirs = await proposed(beta, {**body, "preview": True})
        assert (await got(beta, "/proposer"))["account"] == "beta"
    assert theirs != mine


async def test_a_revoked_proposer_is_refused_at_once_everywhere(gate: Gate) -> None:
    async with gate.as_("gone") as gone, gate.desk.calling("proposer-gone") as thief:
        assert (await gone.get("/proposer")).status_code == 200
        Proposers(gate.desk.secrets_dir).revoke("gone", datetime.now(UTC))
        assert (await gone.get("/proposer")).status_code == 401
        assert (await gone.post("/proposals", json=wish(buy()))).status_code == 401
        await asyncio.wait_for(thief.closed.wait(), WAIT_S)


async def test_the_tokens_are_in_no_file_of_the_desk(gate: Gate) -> None:
    files = [path for path in gate.desk.settings.data_dir.rglob("*") if path.is_file()]
    assert files
    for path in files:
        try:
            body = path.read_bytes() if path.stat().st_size < 50_000_000 else b""
        except FileNotFoundError:  # a server has thrown it away
            continue
        assert not [name for name, token in gate.tokens.items() if token.encode() in body], path


async def test_over_mcp_a_proposer_has_four_tools_and_the_other_server_refuses_it(
    gate: Gate,
) -> None:
    with gate.cli.started("mcp --propose --http --port 0") as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[2]
        async with (
            httpx2.AsyncClient(
                headers={"Authorization": f"Bearer {gate.tokens['beta']}"}, timeout=WAIT_S
            ) as web,
            Client(streamable_http_client(url, http_client=web)) as client,
        ):
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"get_limits", "preview_proposal", "propose_trades", "get_proposal"}
            limits = await client.call_tool("get_limits", {})
            assert limits.structured_content is not None
            assert limits.structured_content["account"] == "beta"
            body = {"proposal_id": f"m-{uuid4().hex[:8]}", "picks": json.dumps([buy("IBM")])}
            shown = await client.call_tool("preview_proposal", body)
            assert shown.structured_content is not None
            assert shown.structured_content["status"] == "completed"
            for tool in ("request_cycle", "get_portfolio", "list_cycles", "approve"):
                assert (await client.call_tool(tool, {})).is_error
            # Another one at the same server, while this one is connected.
            other = {"Authorization": f"Bearer {gate.tokens['alpha']}"}
            async with (
                httpx2.AsyncClient(headers=other, timeout=WAIT_S) as its,
                Client(streamable_http_client(url, http_client=its)) as second,
            ):
                theirs, mine = [await of.call_tool("get_limits", {}) for of in (second, client)]
            accounts = [(each.structured_content or {})["account"] for each in (theirs, mine)]
            assert accounts == ["alpha", "beta"]
        for token in (gate.owner, "x"):
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as web:
                assert (await web.post(url, json={})).status_code == 401
        assert ended(process, 15).code == 0
    with gate.cli.started("mcp --http --port 0") as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[2]
        headers = {"Authorization": f"Bearer {gate.tokens['beta']}"}
        async with httpx2.AsyncClient(headers=headers) as web:
            assert (await web.post(url, json={})).status_code == 401
        assert ended(process, 15).code == 0
