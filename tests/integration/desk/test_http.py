"""The HTTP API of a whole desk: what a person's program does with it, from request to order."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from libs.report.strategies.files import spec_of
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, Json
from tests.integration.desk.conftest import Desk, desk_in
from tests.integration.desk.over_http import got, refused

EXAMPLE = Path(__file__).parents[3] / "services/cli/desk/folder/strategy.yaml"
ENDLESS = {"kind": "mlp", "hidden": [256, 256, 256], "epochs": 1_000}
WHOLE_S = 120.0


@pytest.fixture(scope="module")
def desk(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Desk]:
    """A desk of its own, which answers HTTP and has one strategy cycle at a time."""
    folder = make_open_dir()
    given = {"http_enabled": True, "http_port": 0, "strategies_dir": folder / "strategies"}
    with desk_in(folder, own_environment_in, **given) as running:
        yield running


def wish(**fields: object) -> Json:
    """A decision cycle for an account that nobody has used."""
    account = f"a{uuid4().hex[:12]}"
    return {"as_of": "2012-06-29", "pipelines": [{"name": "rules", "account": account}], **fields}


def account_of(body: Json) -> str:
    return str(body["pipelines"][0]["account"])


async def accepted(http: httpx2.AsyncClient, body: Json, key: str | None = None) -> Json:
    headers = {"Idempotency-Key": key} if key else {}
    answer = await http.post("/cycles", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    said: Json = answer.json()
    assert answer.headers["location"] == f"/api/v1/cycles/{said['cycle_id']}"
    return said


# --- decision cycles ----------------------------------------------------------------------------


async def test_a_cycle_is_asked_for_followed_and_its_decision_and_books_are_read(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    body = wish()
    cycle_id = (await accepted(http, body))["cycle_id"]
    assert await user.ended(cycle_id) == {"status": "completed", "reason": ""}

    view = await got(http, f"/cycles/{cycle_id}")
    assert (view["status"], view["requester"]) == ("completed", "console")
    assert view == await user.query("cycle", cycle_id=cycle_id), "as on the bus"
    (decision,) = (await got(http, "/decisions", cycle_id=cycle_id))["decisions"]
    wanted = {each["asset"] for each in decision["decision"]["decisions"]}
    assert wanted
    assert decision["account"] == account_of(body)
    assert {each["asset"] for each in decision["execution"]["fills"]} == wanted
    mine = await got(http, "/decisions", account=account_of(body))
    assert [each["cycle_id"] for each in mine["decisions"]] == [cycle_id]

    books = await got(http, "/portfolio", account=account_of(body))
    assert {each["ticker"] for each in books["portfolio"]["positions"]} == wanted
    equity = await got(http, "/portfolio/equity", account=account_of(body))
    assert Decimal(equity["points"][-1]["equity"]) == Decimal(books["equity"])
    assert books["not_counted"]["fills"] == len(wanted), "filled after the close"
    nodes = (await got(http, f"/cycles/{cycle_id}/operations"))["data"]
    assert {"cycle", "pipeline", "operation", "tool"} <= {each["type"] for each in nodes}
    events = (await got(http, f"/cycles/{cycle_id}/events", limit=200))["events"]
    assert [each["sequence"] for each in events] == list(range(1, len(events) + 1))
    assert cycle_id in {each["cycle_id"] for each in (await got(http, "/cycles"))["cycles"]}


async def test_an_account_that_began_with_a_sell_check_is_compared_from_its_first_decision(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    body = wish(kind="exit", as_of="2011-01-03")
    account = account_of(body)
    for each in (body, {**body, "kind": "snapshot", "as_of": "2011-01-04"}):
        assert (await user.ended((await accepted(http, each))["cycle_id"]))["status"] == "completed"
    before = await got(http, "/portfolio/holding", account=account)
    assert (before["points"], "decision" in before["message"]) == ([], True)

    for kind, day in (("decision", "2011-01-05"), ("snapshot", "2011-01-10")):
        made = {**body, "kind": kind, "as_of": day}
        assert (await user.ended((await accepted(http, made))["cycle_id"]))["status"] == "completed"
    after = await got(http, "/portfolio/holding", account=account)
    worth = {each["session"]: float(each["worth"]) for each in after["points"]}
    assert after["message"] == ""
    assert worth["2011-01-03"] == worth["2011-01-05"] == 100_000
    assert worth["2011-01-10"] != 100_000


async def test_a_tickers_chart_has_the_ledgers_trades_cost_and_stop_and_no_later_price(
    http: httpx2.AsyncClient, user: Caller, desk: Desk
) -> None:
    body = wish()
    account = account_of(body)
    for made in (body, {**body, "kind": "snapshot", "as_of": "2012-08-15"}):
        assert (await user.ended((await accepted(http, made))["cycle_id"]))["status"] == "completed"
    async with desk.postgres() as db:
        fill = await db.fetchrow(
            "select o.ticker, o.cycle_id, f.session, f.quantity, f.price from orders o"
            " join fills f using (order_id) where o.account = $1 and o.side = 'buy' limit 1",
            account,
        )
        assert fill is not None
        stop = await db.fetchval(
            "select stop_price from orders where account = $1 and ticker = $2 and type = 'stop'",
            account,
            fill["ticker"],
        )
    chart = await got(http, "/market/chart", ticker=fill["ticker"], account=account)
    assert chart["sessions"][-1] == chart["as_of"] == "2012-08-15"
    assert len(chart["sessions"]) > 3_000
    ((day),) = [each for each in chart["days"] if each["session"] == str(fill["session"])]
    (one,) = day["fills"]
    assert (Decimal(one["quantity"]), one["price"]["currency"]) == (fill["quantity"], "USD")
    assert Decimal(one["price"]["amount"]) == fill["price"]
    assert one["cycle_id"] == str(fill["cycle_id"])
    # Nothing was held before it, and the newest prices are on the ledger's own scale.
    bought_at = chart["sessions"].index(str(fill["session"]))
    assert set(chart["average_cost"][:bought_at]) == {None}
    assert chart["average_cost"][-1] == pytest.approx(float(fill["price"]), abs=0.01)
    assert chart["stop"][-1] == pytest.approx(float(stop), abs=0.0001)
    assert chart["averages"]["sma_50"][-1] == pytest.approx(
        sum(chart["close"][-50:]) / 50, abs=0.001
    )
    # Beside a decision it shows what the decision saw, whatever was paid out since.
    sharing = {"ticker": "AAPL", "account": account}
    now = await got(http, "/market/chart", **sharing)
    decided = await got(http, "/market/chart", **sharing, adjusted_to="2012-06-29")
    assert (now["adjusted_to"], decided["adjusted_to"]) == ("2012-08-15", "2012-06-29")
    at = decided["sessions"].index("2012-06-29")
    assert (decided["close"][at], decided["currency"]) == (584.0, "USD")
    assert decided["averages"]["sma_200"][at] == pytest.approx(486.6, abs=0.01)
    assert now["close"][at] < 582, "the dividend of 9 August is taken off"
    assert decided["sessions"] == now["sessions"]
    refused(await http.get("/market/chart", params={"ticker": "NOPE"}), 404, "unknown_account")
    nobody = {"ticker": "NOPE", "account": account}
    refused(await http.get("/market/chart", params=nobody), 404, "not_found")


async def test_accounts_in_a_line_each_agree_with_the_books_and_their_closes(
    http: httpx2.AsyncClient, user: Caller, desk: Desk
) -> None:
    body = wish()
    account = account_of(body)
    for made in (body, {**body, "kind": "snapshot", "as_of": "2012-08-15"}):
        assert (await user.ended((await accepted(http, made))["cycle_id"]))["status"] == "completed"
    listed = (await got(http, "/accounts", limit=200))["accounts"]
    mine = next(each for each in listed if each["account"] == account)
    books = await got(http, "/portfolio", account=account)
    equity = Decimal(books["equity"])
    assert Decimal(mine["equity"]) == equity
    assert Decimal(mine["total_gain"]) == equity - Decimal(books["paid_in"])
    async with desk.postgres() as db:
        before = await db.fetchval(
            "select equity from snapshots where account = $1 and session < $2"
            " order by session desc limit 1",
            account,
            date.fromisoformat(mine["as_of"]),
        )
        stops = await db.fetch(
            "select ticker, quantity, stop_price from orders"
            " where account = $1 and status = 'waiting'",
            account,
        )
    assert Decimal(mine["day_gain"]) == (equity - before).quantize(Decimal("0.01"))
    price = {each["ticker"]: each["price"]["amount"] for each in books["portfolio"]["positions"]}
    risk = sum((Decimal(price[s["ticker"]]) - s["stop_price"]) * s["quantity"] for s in stops)
    assert stops
    assert abs(Decimal(mine["risk"]) - risk) < Decimal("0.02")
    (first,) = (await got(http, "/accounts", limit=1))["accounts"]
    assert first == listed[0]


async def test_the_same_key_and_body_is_accepted_again_and_another_body_is_not(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    body, key = wish(), uuid4().hex
    first = await accepted(http, body, key)
    await user.ended(first["cycle_id"])
    again = await accepted(http, body, key)
    assert again == {"cycle_id": first["cycle_id"], "status": "completed"}
    other = await http.post("/cycles", json=wish(), headers={"Idempotency-Key": key})
    said = refused(other, 409, "key_reused")
    assert (said["field"], said["cycle_id"]) == ("idempotency_key", first["cycle_id"])
    assert key in said["detail"]


async def test_a_cycle_that_has_ended_cannot_be_cancelled(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    cycle_id = (await accepted(http, wish()))["cycle_id"]
    await user.ended(cycle_id)
    said = refused(await http.delete(f"/cycles/{cycle_id}"), 409, "too_late")
    assert (said["cycle_id"], said["cycle_status"]) == (cycle_id, "completed")
    refused(await http.delete(f"/cycles/{uuid4()}"), 404, "not_found")


async def test_a_cycle_that_runs_is_cancelled_with_the_reason(
    desk: Desk, http: httpx2.AsyncClient, user: Caller
) -> None:
    async with desk.held_back("trader-picks"):
        cycle_id = (await accepted(http, wish()))["cycle_id"]
        answer = await http.delete(f"/cycles/{cycle_id}", params={"reason": "enough"})
        assert answer.json() == {"cycle_id": cycle_id, "status": "cancelled"}
        assert await user.ended(cycle_id) == {"status": "cancelled", "reason": "enough"}


async def test_a_position_is_checked_for_exit_signals(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    body = wish(universe=["AAPL"])
    later = {**body, "as_of": "2012-10-31", "universe": ["IBM"]}
    for each in (body, later):
        await user.ended((await accepted(http, each))["cycle_id"])
    asked = {"account": account_of(body), "format": "agent"}
    answer = await http.post("/exit-signals/AAPL/check", params=asked)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "success"
    assert answer.json()["snapshot"]["ticker"] == "AAPL"
    assert (await http.post("/exit-signals/aapl/check", params=asked)).json() == answer.json()
    for shape in ("summary", "full", "agent"):
        missing = await http.post("/exit-signals/GOOG/check", params={**asked, "format": shape})
        assert "GOOG" in refused(missing, 404, "not_held")["detail"]
    nobody = {"account": "nobody"}
    refused(await http.post("/exit-signals/AAPL/check", params=nobody), 404, "unknown_account")
    ahead = {**asked, "as_of": "2013-01-31"}
    told = refused(await http.post("/exit-signals/AAPL/check", params=ahead), 422, "ahead_of_clock")
    assert "2013-01-31" in told["detail"]
    refused(await http.post("/exit-signals/aa%20pl/check"), 422, "invalid")
    refused(await http.post("/exit-signals/AAPL/check", params={"format": "x"}), 422, "invalid")


# --- approvals ------------------------------------------------------------------------------------


async def waiting(http: httpx2.AsyncClient, user: Caller) -> Json:
    """A proposal that waits."""
    cycle_id = (await accepted(http, wish(approval_required=True)))["cycle_id"]
    await user.events.first(cycle_id=cycle_id, type="approval_requested")
    (found,) = (await got(http, "/approvals", cycle_id=cycle_id))["approvals"]
    asked: Json = found
    return asked


async def test_a_proposal_is_approved_smaller_and_only_once(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    asked = await waiting(http, user)
    first, *others = [each["asset"] for each in asked["proposal"]["decisions"]]
    path = f"/approvals/{asked['cycle_id']}"
    seen = {"proposal_hash": asked["proposal"]["proposal_hash"]}
    edits = [{"asset": each, "quantity": "0"} for each in others]
    changed = await http.post(f"{path}/approve", json={"proposal_hash": "0" * 64})
    refused(changed, 409, "proposal_changed")
    answer = await http.post(f"{path}/approve", json={**seen, "edits": edits})
    assert answer.status_code == 200, answer.text
    assert (await user.ended(asked["cycle_id"]))["status"] == "completed"
    (decision,) = (await got(http, "/decisions", cycle_id=asked["cycle_id"]))["decisions"]
    assert {each["asset"] for each in decision["execution"]["orders"]} == {first}
    view = await got(http, f"/cycles/{asked['cycle_id']}")
    assert view["pipelines"][0]["contracts"]["approval"]["approver"] == "console"
    refused(await http.post(f"{path}/reject", json=seen), 409, "decided")


async def test_a_rejected_proposal_orders_nothing(http: httpx2.AsyncClient, user: Caller) -> None:
    asked = await waiting(http, user)
    said = {"proposal_hash": asked["proposal"]["proposal_hash"], "reason": "too hot"}
    answer = await http.post(f"/approvals/{asked['cycle_id']}/reject", json=said)
    assert answer.json()["status"] in {"running", "rejected"}
    ended = await user.ended(asked["cycle_id"])
    assert ended == {"status": "rejected", "reason": "rejected by console: too hot"}
    assert (await got(http, "/portfolio", account=asked["account"]))["fills"] == []


# --- the strategy cycle ---------------------------------------------------------------------------


def spec(name: str, **changes: object) -> Json:
    return {**spec_of(EXAMPLE.read_text()).model_dump(mode="json"), "name": name, **changes}


async def test_while_a_strategy_cycle_runs_it_is_never_idle_and_alone_until_it_is_cancelled(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    body, key = {"spec": spec("endless", model=ENDLESS)}, {"Idempotency-Key": uuid4().hex}
    answer = await http.post("/agent/trigger", json=body, headers=key)
    assert answer.status_code == 202, answer.text
    op_id = answer.json()["operation_id"]
    assert answer.headers["location"] == f"/api/v1/operations/{op_id}"
    seen = []
    while "training" not in seen:
        told = await got(http, "/agent/status")
        assert (told["status"], told["operation_id"]) == ("active", op_id)
        seen.append(told["phase"])
        await asyncio.sleep(0)
    assert set(seen) <= {"designing", "training"}
    refused(await http.post("/agent/trigger"), 409, "active_cycle_exists")
    again = await http.post("/agent/trigger", json=body, headers=key)
    assert again.status_code == 202, again.text
    assert again.json()["operation_id"] == op_id
    other = await http.post("/agent/trigger", json={}, headers=key)
    refused(other, 409, "key_reused")

    running = (await got(http, "/operations", type="AGENT_RESEARCH", status="running"))["data"]
    assert [each["op_id"] for each in running] == [op_id]
    cancelled = await http.delete("/agent/cancel", params={"reason": "enough"})
    assert cancelled.json() == {"operation_id": op_id, "status": "cancelled"}
    await user.ended(op_id)
    told = await got(http, "/agent/status")
    assert (told["status"], told["phase"], told["operation_status"]) == ("idle", None, "cancelled")
    data = (await got(http, f"/operations/{op_id}"))["data"]
    assert (data["status"], data["error_message"]) == ("cancelled", "enough")
    refused(await http.delete("/agent/cancel"), 404, "no_active_cycle")


async def test_what_there_is_not_is_refused_over_http_too(http: httpx2.AsyncClient) -> None:
    cycle = await http.post("/cycles", json={"as_of": "2012-06-30"})
    said = refused(cycle, 422, "not_a_session")
    assert (said["field"], said["suggestion"]) == ("as_of", "2012-06-29")
    assert said["detail"].endswith("did you mean 2012-06-29?")
    triggered = await http.post("/agent/trigger", json={"universe": ["NOPE"]})
    assert refused(triggered, 422, "unknown_ticker")["field"] == "universe"
    listed = await http.get("/operations", params={"type": "trainin"})
    assert "did you mean training?" in refused(listed, 422, "unknown_type")["detail"]
    events = await http.get("/events/stream", params={"type": "ordr_*"})
    assert refused(events, 422, "unknown_type")["detail"].endswith("did you mean order_*?")


async def test_a_whole_strategy_cycle_is_told_as_the_parent_of_its_operations(
    desk: Desk, http: httpx2.AsyncClient, user: Caller
) -> None:
    answer = await http.post("/agent/trigger", json={"spec": spec("told")})
    op_id = answer.json()["operation_id"]
    assert (await user.ended(op_id, WHOLE_S))["status"] == "completed"
    data = (await got(http, f"/operations/{op_id}"))["data"]
    assert (data["type"], data["status"]) == ("agent_research", "completed")
    assert data["result_summary"]["strategy_name"] == "told"
    assert data["result_summary"]["total_tokens"] == 0
    for name, kind in (
        ("design_op_id", "agent_design"),
        ("training_op_id", "training"),
        ("backtest_op_id", "backtesting"),
        ("assessment_op_id", "agent_assessment"),
    ):
        child = (await got(http, f"/operations/{data['metadata'][name]}"))["data"]
        assert (child["type"], child["status"]) == (kind, "completed")
        assert child["parent_id"] == op_id
        listed = (await got(http, "/operations", type=kind, limit=1))["data"]
        assert listed == [child]
    (newest,) = (await got(http, "/operations", type="agent_research", limit=1))["data"]
    assert newest == data
    folder = desk.settings.strategies_dir
    verdict = json.loads((folder / "told/assessment.json").read_text())["verdict"]
    assert data["result_summary"]["verdict"] == verdict
    assert (folder / "told.yaml").is_file()
    await told_whole(http, (folder / "told/report.html").read_text())


async def told_whole(http: httpx2.AsyncClient, exported: str) -> None:
    """The strategy `told` in the list, by itself, and its report, which may run nothing."""
    detail = await got(http, "/strategies/told")
    listed = await got(http, "/strategies", names=["told", "tolt"])
    assert listed["strategies"] == [detail["strategy"]]
    assert listed["unknown"] == [{"name": "tolt", "near": ["told"]}]
    assert len(detail["loss_curve"]) >= 2
    assert len(detail["sessions"]) == len(detail["strategy"]["backtest"]["equity"])
    report = await http.get("/strategies/told/report")
    assert report.headers["content-type"] == "text/html; charset=utf-8"
    assert report.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert report.text == exported
    for path in ("/strategies/no-such", "/strategies/no-such/report", "/strategies/..%2ftold"):
        refused(await http.get(path), 404, "not_found")


async def test_a_request_that_no_provider_can_serve_is_refused_with_its_field(
    http: httpx2.AsyncClient,
) -> None:
    body = wish(pipelines=[{"name": "nobody", "provider": "nobody"}])
    answer = await http.post("/cycles", json=body)
    assert answer.status_code == 422
    assert answer.json()["field"].startswith("pipelines")
