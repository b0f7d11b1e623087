"""The console's HTTP side by itself: who is let in, how refusals are told, what may be away.

The orchestrator is played by the test: it says what a real one says, at once and always.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx2
import pytest
from pydantic import SecretStr

from contracts.cycle import CycleRequest, CycleStatus, RequestAnswer
from contracts.message import MESSAGE_BYTES_MAX, Message
from contracts.subjects.approvals import ANSWER_PROPOSAL
from contracts.subjects.cycles import CANCEL_CYCLE, REQUEST_CYCLE
from contracts.subjects.subject import BACKBONE, ORCHESTRATOR, SERVICES
from libs.bus.connection import connect
from libs.bus.discovery import discoverable
from libs.bus.server import Server
from libs.postgres.pool import CONSOLE_ROLE, open_pool
from libs.servers.postgres_server import SUPERUSER
from libs.web import concurrency_limit, guard
from tests.integration.console.over_http import client_of, problem, serving

if TYPE_CHECKING:
    from libs.postgres.pool import PoolConnection
    from libs.runtime.settings import Settings
    from libs.servers.embedded import Servers
    from tests.integration.console.conftest import Made

TOKEN = "a-token-of-some-length"
CYCLE_ID = UUID(int=7)
ACCEPTED = RequestAnswer(outcome="accepted", cycle_id=CYCLE_ID, status=CycleStatus.RUNNING)
HASH = "0" * 64
SLOW_S = 0.5
TOO_LARGE = json.dumps({"constraints": {"note": "x" * MESSAGE_BYTES_MAX}}).encode()
AS_JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def master(servers: Servers) -> AsyncIterator[PoolConnection]:
    """A connection that may change roles."""
    async with (
        open_pool(servers.postgres_dsn(SUPERUSER), size_max=1) as pool,
        pool.acquire() as held,
    ):
        yield held


class Orchestrator:
    """Gives every request the same answer, and keeps what was asked."""

    def __init__(self) -> None:
        self.says: RequestAnswer | None = ACCEPTED
        self.heard: list[tuple[str, Any]] = []
        self.asked = asyncio.Event()

    async def __call__(self, caller: str, message: Message) -> RequestAnswer | None:
        self.heard.append((caller, message))
        self.asked.set()
        return self.says


@pytest.fixture
async def orchestrator(settings: Settings) -> AsyncIterator[Orchestrator]:
    """One that is there while the test runs."""
    nats = await connect(settings.nats_address, ORCHESTRATOR, settings.secrets_path)
    made, server = Orchestrator(), Server(nats, ORCHESTRATOR)
    for row in (REQUEST_CYCLE, CANCEL_CYCLE, ANSWER_PROPOSAL):
        await server.serve(row, made)
    await nats.flush()
    yield made
    await server.stop()
    await nats.close()


# --- who is let in ------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "127.0.0.1:1", "[::1]:8000"])
async def test_on_loopback_this_machine_may_be_called_by_its_names(
    http: httpx2.AsyncClient, host: str
) -> None:
    assert (await http.get("/api/v1/budget", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "[::",
        "",
        "evil.example@127.0.0.1",
        "127.0.0.1:80@evil.example",
        "localhost/evil.example",
    ],
)
async def test_on_loopback_a_foreign_name_for_this_machine_is_refused(
    http: httpx2.AsyncClient, host: str
) -> None:
    answer = await http.get("/api/v1/budget", headers={"Host": host})
    problem(answer, 421, "host_not_allowed")


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://localhost:1", "http://[x", "", "://", "http://["],
)
async def test_a_page_of_another_origin_changes_nothing(
    http: httpx2.AsyncClient, orchestrator: Orchestrator, origin: str
) -> None:
    answer = await http.post("/api/v1/agent/trigger", headers={"Origin": origin})
    problem(answer, 403, "origin_not_allowed")
    own = {"Origin": str(http.base_url).rstrip("/")}
    assert (await http.post("/api/v1/agent/trigger", headers=own)).status_code == 202
    assert len(orchestrator.heard) == 1


async def test_with_a_token_every_request_bears_it(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    async with serving(settings, http_token_file=file) as url, client_of(url) as http:
        for wrong in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": TOKEN},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": "Bearer \xff\xfe"},
        ):
            for path in ("/api/v1/budget", "/api/v1/openapi.json", "/nowhere"):
                raw = [(name.encode(), each.encode("latin-1")) for name, each in wrong.items()]
                answer = await http.get(path, headers=raw)
                problem(answer, 401, "unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"
        right = {"Authorization": f"bearer {TOKEN}"}
        assert (await http.get("/api/v1/budget", headers=right)).status_code == 200


async def test_beyond_loopback_the_token_counts_and_the_host_may_be_any(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    beyond = {"http_host": "0.0.0.0", "http_token_file": file}
    async with serving(settings, **beyond) as url, client_of(url) as http:
        named = {"Host": "desk.example"}
        problem(await http.get("/api/v1/budget", headers=named), 401, "unauthorized")
        both = {**named, "Authorization": f"Bearer {TOKEN}"}
        assert (await http.get("/api/v1/budget", headers=both)).status_code == 200


async def test_a_browser_gives_the_token_once_and_its_cookie_stands_for_it(
    settings: Settings,
) -> None:
    page = {"Accept": "text/html"}
    async with serving(settings, http_token=SecretStr(TOKEN)) as url, client_of(url) as http:
        turned_away = await http.get("/?a=1", headers=page)
        assert (turned_away.status_code, turned_away.headers["location"]) == (
            303,
            "/login?next=%2F%3Fa%3D1",
        )
        assert (await http.get("/login", headers=page)).status_code == 200
        problem(await http.post("/api/v1/session", json={"token": "x" * 16}), 401, "unauthorized")
        problem(await http.get("/api/v1/budget"), 401, "unauthorized")

        given = await http.post("/api/v1/session", json={"token": TOKEN})
        kept = given.headers["set-cookie"]
        assert given.status_code == 204
        assert all(each in kept for each in ("HttpOnly", "SameSite=strict", "Max-Age=43200"))
        assert "Secure" not in kept
        assert TOKEN not in kept
        assert (await http.get("/api/v1/budget")).status_code == 200
        assert (await http.get("/", headers=page)).status_code == 200
        over_tls = {"X-Forwarded-Proto": "https"}
        again = await http.post("/api/v1/session", json={"token": TOKEN}, headers=over_tls)
        assert "Secure" in again.headers["set-cookie"]

        stolen = {"Cookie": kept.partition(";")[0]}
        http.cookies.clear()
        assert (await http.delete("/api/v1/session", headers=stolen)).status_code == 204
        http.cookies.clear()
        problem(await http.get("/api/v1/budget", headers=stolen), 401, "unauthorized")


async def test_a_page_bears_the_headers_that_keep_scripts_out(http: httpx2.AsyncClient) -> None:
    for path in ("/", "/nowhere"):
        answer = await http.get(path, headers={"Accept": "text/html"})
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["content-security-policy"].startswith("default-src 'self';")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
    style = re.search(r'href="(/static/[^"]+\.css)"', (await http.get("/")).text)
    assert style is not None
    assert "immutable" in (await http.get(style[1])).headers["cache-control"]
    old = re.sub("/static/[0-9a-f]+/", "/static/0/", style[1])
    assert (await http.get(old)).headers["cache-control"] == "no-store"


# --- what a request looks like ------------------------------------------------------------------


async def test_a_path_that_is_none_says_where_the_paths_are(http: httpx2.AsyncClient) -> None:
    for path in ("/api/v1", "/api/v1/cycles/", "/docs"):
        assert "openapi.json" in problem(await http.get(path), 404, "not_found")["detail"]


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/api/v1/cycles"), ("POST", "/api/v1/agent/status")]
)
async def test_a_method_that_a_path_does_not_take_is_told_with_those_it_does(
    http: httpx2.AsyncClient, method: str, path: str
) -> None:
    answer = await http.request(method, path)
    problem(answer, 405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
async def test_a_body_that_is_not_called_json_is_refused(
    http: httpx2.AsyncClient, kind: str | None
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    answer = await http.post("/api/v1/cycles", content=b"{}", headers=headers)
    problem(answer, 415, "unsupported_media_type")


async def test_a_form_is_taken_from_the_desks_own_page_and_from_nobody_else(
    http: httpx2.AsyncClient, orchestrator: Orchestrator
) -> None:
    form = {"kind": "decision", "as_of": "2012-06-29", "provider": "rules", "account": ""}
    here = str(http.base_url).rstrip("/")
    for headers in ({}, {"Origin": "https://elsewhere.example"}, {"Origin": "null"}):
        answer = await http.post("/cycles/new", data=form, headers=headers)
        problem(answer, 403, "origin_not_allowed")
    answer = await http.post("/api/v1/cycles", data=form, headers={"Origin": here})
    problem(answer, 415, "unsupported_media_type")
    assert orchestrator.heard == []

    answer = await http.post("/cycles/new", data=form, headers={"Origin": here})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/cycles/{CYCLE_ID}")
    ((_, asked),) = orchestrator.heard
    assert str(asked.as_of) == "2012-06-29"


async def test_a_form_that_nobody_hears_comes_back_with_all_that_was_typed(
    http: httpx2.AsyncClient,
) -> None:
    form = {"universe": "AAPL, MSFT", "money": "5,000"}
    answer = await http.post(
        "/cycles/new", data=form, headers={"Origin": str(http.base_url).rstrip("/")}
    )
    assert answer.status_code == 503
    assert "what you typed is still here" in answer.text
    for text in form.values():
        assert f'value="{text}"' in answer.text


async def test_a_body_over_the_limit_is_refused_whether_it_says_its_size_or_not(
    http: httpx2.AsyncClient, orchestrator: Orchestrator
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(TOO_LARGE), 50_000):
            yield TOO_LARGE[start : start + 50_000]

    for content in (TOO_LARGE, pieces()):
        answer = await http.post("/api/v1/cycles", content=content, headers=AS_JSON)
        problem(answer, 413, "too_large")
    assert orchestrator.heard == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b'{"as_of": ', "body"),
        (b"[1, 2]", "body"),
        (b"null", "body"),
        (b'{"colour": "red"}', "colour"),
        (b'{"a\\ud800": 1}', "body"),
        (b'{"timeout_s": NaN}', "timeout_s"),
        (b'{"timeout_s": 1e999}', "timeout_s"),
        (b'{"as_of": "2012-02-30"}', "as_of"),
        (b'{"universe": ["no ticker"]}', "universe.0"),
        (b'{"universe": []}', "universe"),
        (b'{"pipelines": [{"name": "rules", "acount": "mine"}]}', "pipelines.0.acount"),
        (b'{"constraints": {"note": "a\\u0000b"}}', "constraints.note"),
        (b'{"constraints": {"note": "\\ud800"}}', "body"),
        (b'{"kind": "decision", "strategy": {}}', "strategy"),
        (b'{"idempotency_key": ""}', "idempotency_key"),
    ],
)
async def test_a_body_that_is_not_right_is_refused_with_its_field(
    http: httpx2.AsyncClient, orchestrator: Orchestrator, body: bytes, field: str
) -> None:
    answer = await http.post("/api/v1/cycles", content=body, headers=AS_JSON)
    assert problem(answer, 422, "invalid")["field"] == field
    assert orchestrator.heard == []


@pytest.mark.parametrize("body", [b"[" * 200_000, b"\xff\xfe", b'{"timeout_s": ' + b"9" * 5_000])
async def test_a_body_that_cannot_be_read_at_all_is_refused(
    http: httpx2.AsyncClient, body: bytes
) -> None:
    answer = await http.post("/api/v1/cycles", content=body, headers=AS_JSON)
    assert answer.status_code in {400, 422}
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (f"/api/v1/operations/{'0' * 41}", "path.operation_id"),
        ("/api/v1/operations?status=lost", "query.status"),
        ("/api/v1/operations?limit=0", "query.limit"),
        ("/api/v1/operations?limit=201", "query.limit"),
        ("/api/v1/operations?type=a%00b", "query.type"),
        ("/api/v1/cycles?status=COMPLETED", "query.status"),
        ("/api/v1/cycles?kind=Not%20a%20Name", "query.kind"),
        ("/api/v1/portfolio?account=../etc", "query.account"),
        ("/api/v1/portfolio/equity?points=1", "query.points"),
        (f"/api/v1/cycles/{CYCLE_ID}/events?after=-1", "query.after"),
    ],
)
async def test_a_parameter_that_is_not_right_is_refused_with_its_name(
    http: httpx2.AsyncClient, path: str, field: str
) -> None:
    assert problem(await http.get(path), 422, "invalid")["field"] == field


# --- what is passed on, and what the desk says to it --------------------------------------------


async def test_a_request_is_passed_on_in_the_consoles_own_name(
    http: httpx2.AsyncClient, orchestrator: Orchestrator
) -> None:
    body = {"as_of": "2012-06-29", "universe": ["AAPL"], "timeout_s": 60}
    key = {"Idempotency-Key": "mine"}
    answer = await http.post("/api/v1/cycles", json=body, headers=key)
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/api/v1/cycles/{CYCLE_ID}"
    assert answer.json() == {"cycle_id": str(CYCLE_ID), "status": "running"}
    wanted = CycleRequest.model_validate({**body, "idempotency_key": "mine"})
    assert orchestrator.heard == [("console", wanted)]


async def test_without_a_key_every_request_is_a_new_one(
    http: httpx2.AsyncClient, orchestrator: Orchestrator
) -> None:
    for _ in range(2):
        assert (await http.post("/api/v1/cycles", json={})).status_code == 202
    assert len({message.idempotency_key for _, message in orchestrator.heard}) == 2


async def test_the_key_may_stand_in_the_body_but_not_differ_from_the_header(
    http: httpx2.AsyncClient, orchestrator: Orchestrator
) -> None:
    body = {"idempotency_key": "one"}
    assert (await http.post("/api/v1/cycles", json=body)).status_code == 202
    assert orchestrator.heard[0][1].idempotency_key == "one"
    answer = await http.post("/api/v1/cycles", json=body, headers={"Idempotency-Key": "two"})
    assert problem(answer, 422, "invalid")["field"] == "idempotency_key"


@pytest.mark.parametrize("key", ["with blank", "x" * 201, "-dash"])
async def test_a_key_that_is_none_is_refused(http: httpx2.AsyncClient, key: str) -> None:
    answer = await http.post("/api/v1/agent/trigger", headers={"Idempotency-Key": key})
    assert problem(answer, 422, "invalid")["field"] == "header.Idempotency-Key"


async def test_a_strategy_cycle_needs_no_body_and_takes_one(
    http: httpx2.AsyncClient, orchestrator: Orchestrator
) -> None:
    answer = await http.post("/api/v1/agent/trigger")
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/api/v1/operations/{CYCLE_ID}"
    assert answer.json()["operation_id"] == str(CYCLE_ID)
    assert (await http.post("/api/v1/agent/trigger", json={"attempts": 3})).status_code == 202
    plain, thrice = (message for _, message in orchestrator.heard)
    assert (plain.kind, plain.attempts, thrice.attempts) == ("strategy", 1, 3)
    wrong = {"attempts": 3, "spec": {"name": "no/path"}}
    answer = await http.post("/api/v1/agent/trigger", json=wrong)
    assert problem(answer, 422, "invalid")["field"] == "spec.name"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("active_cycle_exists", 409),
        ("key_reused", 409),
        ("too_late", 409),
        ("decided", 409),
        ("proposal_changed", 409),
        ("not_found", 404),
        ("too_large", 413),
        ("not_storable", 422),
        ("no_key", 422),
        ("busy", 429),
    ],
)
async def test_the_desks_no_has_its_own_code_and_a_status_that_fits(
    http: httpx2.AsyncClient, orchestrator: Orchestrator, code: str, status: int
) -> None:
    orchestrator.says = RequestAnswer(
        outcome="rejected",
        code=code,
        message="because",
        field="kind",
        cycle_id=CYCLE_ID,
        status=CycleStatus.COMPLETED,
    )
    answer = await http.post("/api/v1/cycles", json={})
    said = problem(answer, status, code)
    assert (said["detail"], said["field"]) == ("because", "kind")
    assert (said["cycle_id"], said["cycle_status"]) == (str(CYCLE_ID), "completed")


async def test_a_spent_budget_says_when_to_come_again(
    http: httpx2.AsyncClient, orchestrator: Orchestrator
) -> None:
    at = datetime.now(UTC) + timedelta(hours=3)
    orchestrator.says = RequestAnswer(
        outcome="rejected", code="budget_exhausted", message="spent", retry_at=at
    )
    answer = await http.post("/api/v1/agent/trigger")
    problem(answer, 429, "budget_exhausted")
    assert 10_700 < int(answer.headers["retry-after"]) <= 10_800


async def test_an_answer_to_a_proposal_is_passed_on_with_its_edits(
    http: httpx2.AsyncClient, orchestrator: Orchestrator
) -> None:
    path = f"/api/v1/approvals/{CYCLE_ID}"
    edits = [{"asset": "AAPL", "quantity": "10"}]
    for verb, body in (
        ("approve", {"proposal_hash": HASH, "reason": "go"}),
        ("approve", {"proposal_hash": HASH, "edits": edits}),
        ("reject", {"proposal_hash": HASH, "pipeline": "rules"}),
    ):
        assert (await http.post(f"{path}/{verb}", json=body)).status_code == 200
    verdicts = [(caller, str(said.verdict)) for caller, said in orchestrator.heard]
    assert verdicts == [("console", each) for each in ("approve", "edit", "reject")]
    assert str(orchestrator.heard[1][1].edits[0].quantity) == "10"
    answer = await http.post(f"{path}/approve", json={"reason": "without having seen it"})
    assert problem(answer, 422, "invalid")["field"] == "proposal_hash"


# --- what may be away ---------------------------------------------------------------------------


async def test_without_an_orchestrator_requests_are_told_to_come_again(
    http: httpx2.AsyncClient,
) -> None:
    answer = await http.post("/api/v1/agent/trigger")
    said = problem(answer, 503, "unavailable")
    assert "no orchestrator hears" in said["detail"]
    assert int(answer.headers["retry-after"]) > 0
    assert (await http.get("/api/v1/agent/status")).status_code == 200


async def test_without_postgres_reads_are_told_to_come_again_and_then_go_on(
    http: httpx2.AsyncClient, master: PoolConnection
) -> None:
    assert (await http.get("/api/v1/cycles")).status_code == 200
    await master.execute("alter role deskbus_console nologin")
    try:
        # Each is ended by the time that this returns.
        await master.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity where usename = $1",
            CONSOLE_ROLE,
        )
        for path in ("/api/v1/cycles", "/api/v1/agent/status", "/api/v1/portfolio"):
            answer = await http.get(path)
            problem(answer, 503, "unavailable")
            assert "retry-after" in answer.headers
        page = await http.get("/cycles", headers={"Accept": "text/html"})
        assert (page.status_code, "retry-after" in page.headers) == (503, True)
        assert "The desk does not answer" in page.text
        assert 'data-live-s="5"' in page.text
    finally:
        await master.execute("alter role deskbus_console login")
    assert (await http.get("/api/v1/cycles")).status_code == 200


async def test_an_answer_that_does_not_come_is_a_503_and_a_body_that_does_not_a_408(
    url: str,
    http: httpx2.AsyncClient,
    orchestrator: Orchestrator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "REQUEST_S_MAX", SLOW_S)
    orchestrator.says = None
    assert (
        "within 0.5 s"
        in problem(await http.post("/api/v1/agent/trigger"), 503, "unavailable")["detail"]
    )

    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = (
        "POST /api/v1/cycles HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        "Content-Length: 99",
    )
    monkeypatch.setattr(guard, "BODY_S_MAX", SLOW_S)
    writer.write("\r\n".join([*head, "", "{"]).encode())
    assert b" 408 " in await reader.readline()
    writer.close()


async def test_more_than_it_can_answer_at_once_is_told_to_come_again(
    settings: Settings, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "CHANGES_IN_FLIGHT_MAX", 1)
    monkeypatch.setattr(guard, "REQUEST_S_MAX", SLOW_S)
    monkeypatch.setattr(concurrency_limit, "SEAT_S_MAX", SLOW_S / 10)
    orchestrator.says = None
    async with serving(settings) as url, client_of(url) as http:
        await http.get("/api/v1/budget")  # opens connections, slow on a busy machine
        waiting = asyncio.create_task(http.post("/api/v1/agent/trigger"))
        await orchestrator.asked.wait()
        full = problem(await http.post("/api/v1/agent/trigger"), 503, "unavailable")
        assert "try again" in full["detail"]
        assert (await http.get("/api/v1/budget")).status_code == 200, "reads have their own seats"
        await waiting


async def test_a_stop_waits_for_answers_and_then_nobody_listens(
    settings: Settings, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "REQUEST_S_MAX", SLOW_S)
    orchestrator.says = None
    async with client_of("") as outside:
        async with serving(settings) as url:
            waiting = asyncio.create_task(outside.post(f"{url}/api/v1/agent/trigger"))
            await orchestrator.asked.wait()
        problem(await waiting, 503, "unavailable")
        with pytest.raises(httpx2.ConnectError):
            await outside.get(f"{url}/api/v1/agent/status")


# --- what is read -------------------------------------------------------------------------------


async def test_an_operation_comes_as_data_with_lowercase_words(
    http: httpx2.AsyncClient, made: Made
) -> None:
    op_id = await made.operation("planning", "plan", result={"assets": ["A"], "objective": "o"})
    data = (await http.get(f"/api/v1/operations/{op_id}")).json()["data"]
    assert (data["op_id"], data["type"], data["status"]) == (str(op_id), "operation", "completed")
    assert data["result_summary"] == {"assets": ["A"], "objective": "o"}
    of_cycle = (await http.get(f"/api/v1/operations/{made.cycle_id}")).json()["data"]
    assert (of_cycle["type"], of_cycle["status"]) == ("cycle", "completed")
    record = (await http.get(f"/api/v1/operations/{op_id}/record")).json()
    assert record["result"] == {"assets": ["A"], "objective": "o"}
    listed = (await http.get("/api/v1/operations?type=PLAN&limit=1")).json()["data"]
    assert [each["name"] for each in listed] == ["plan"]
    tree = (await http.get(f"/api/v1/cycles/{made.cycle_id}/operations")).json()["data"]
    assert [each["type"] for each in tree] == ["cycle", "pipeline", "operation"]


async def test_the_overview_counts_all_that_failed_and_not_what_it_lists(
    http: httpx2.AsyncClient, made: Made
) -> None:
    for _ in range(9):
        await made.db.execute(
            "insert into cycles select (jsonb_populate_record(c, jsonb_build_object("
            " 'cycle_id', $2::uuid, 'idempotency_key', $2::uuid, 'status', 'failed',"
            " 'accepted_at', now()))).* from cycles c where cycle_id = $1",
            made.cycle_id,
            uuid4(),
        )
    failed = await made.db.fetchval(
        "select count(*) from cycles where status = 'failed'"
        " and accepted_at >= now() - interval '24 hours'"
    )
    page = (await http.get("/")).text
    tile = page[page.index('href="/cycles?status=failed"') :]
    assert f'<span class="value">{failed}</span>' in tile[: tile.index("</a>")]
    # Those of one reason are one line, which says how many they are.
    assert "9 times" in page


async def test_what_is_not_there_is_not_found(http: httpx2.AsyncClient) -> None:
    nobody = uuid4()
    for path in (
        f"/api/v1/operations/{nobody}",
        f"/api/v1/operations/{nobody}/record",
        f"/api/v1/cycles/{nobody}",
        f"/api/v1/cycles/{nobody}/operations",
        "/api/v1/operations/null",
    ):
        problem(await http.get(path), 404, "not_found")
    for path in ("portfolio", "portfolio/equity", "portfolio/holding", "decisions"):
        problem(await http.get(f"/api/v1/{path}?account=nobody"), 404, "unknown_account")
    problem(await http.delete("/api/v1/agent/cancel"), 404, "no_active_cycle")


async def test_events_and_empty_lists_are_answered(http: httpx2.AsyncClient, made: Made) -> None:
    await made.event(1)
    page = (await http.get(f"/api/v1/cycles/{made.cycle_id}/events")).json()
    assert [each["sequence"] for each in page["events"]] == [1]
    none = (await http.get(f"/api/v1/cycles/{made.cycle_id}/events?after=1")).json()
    assert none["events"] == []
    assert (await http.get(f"/api/v1/decisions?cycle_id={uuid4()}")).json()["decisions"] == []
    assert (await http.get(f"/api/v1/approvals?cycle_id={uuid4()}")).json()["approvals"] == []


async def test_the_bus_tells_who_answers_and_its_page_who_is_down(
    http: httpx2.AsyncClient, settings: Settings
) -> None:
    nats = await connect(settings.nats_address, "risk", settings.secrets_path)
    await discoverable(nats, "risk", ())
    await nats.flush()
    services = (await http.get("/api/v1/bus")).json()["services"]
    page = (await http.get("/bus")).text
    await nats.close()
    there = {each["name"]: each["instances"] for each in services}
    assert set(there) == {*BACKBONE, *SERVICES}
    assert [name for name, count in there.items() if count] == ["risk"]
    assert f"1 of {len(there)}" in page
    assert "down: provisioner, " in page or "down: orchestrator, " in page


async def test_the_description_names_every_operation_and_its_problems(
    http: httpx2.AsyncClient,
) -> None:
    said = (await http.get("/api/v1/openapi.json")).json()
    operations = [each for path in said["paths"].values() for each in path.values()]
    names = [each["operationId"] for each in operations]
    assert len(set(names)) == len(names)
    assert {"trigger_agent", "agent_status", "cancel_agent", "request_cycle", "approve"} <= {*names}
    for each in operations:
        assert each["summary"]
        assert each["responses"]["503"]["content"].keys() == {"application/problem+json"}
    assert "Problem" in said["components"]["schemas"]
