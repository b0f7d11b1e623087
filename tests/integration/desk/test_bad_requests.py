"""What a person's program gets for a request that is not right."""

import asyncio
import hashlib
import json
from typing import Any

import nats.errors
import pytest

from contracts.cycle import CycleRequest
from libs.bus.server import UNREADABLE_BYTES_KEPT
from libs.runtime import ids
from tests.integration.desk.caller import Caller, Json, picked, wish
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")

CONTRACT_BYTES_MAX = 512_000
SERVER_BYTES_MAX = 1024 * 1024


def with_text(text: str) -> Json:
    return wish(constraints={"note": text})


def spelled(text: str) -> bytes:
    """A request whose note holds `text` exactly as it stands."""
    return json.dumps(with_text("HERE")).encode().replace(b"HERE", text.encode())


def padded(size: int) -> bytes:
    """A good request, filled up with blanks to a size."""
    return json.dumps(wish()).encode().ljust(size)


UNREADABLE: dict[str, tuple[Any, str, str]] = {
    "no JSON": (b'{"idempotency_key": ', "invalid", "body"),
    "nothing": (b"", "invalid", "body"),
    "no object": (b"[1, 2]", "invalid", "body"),
    "bytes of no text": (b"\xff\xfe\x00", "invalid", "body"),
    "deeply nested": (b"[" * 200_000, "invalid", "body"),
    "unknown version": (wish(version=2), "invalid", "version"),
    "unknown field": (wish(colour="red"), "invalid", "colour"),
    "unknown field inside": (
        wish(pipelines=[{"name": "rules", "acount": "mine"}]),
        "invalid",
        "pipelines.0.acount",
    ),
    "unknown field of two lines": (wish(**{"a\r\nDesk-Code: ok": 1}), "invalid", "aDesk-Code: ok"),
    "unknown field of a megabyte": (wish(**{"n" * 400_000: 1}), "invalid", "n" * 200),
    "wrong type": (wish(timeout_s="soon"), "invalid", "timeout_s"),
    "no key": ({"as_of": "2012-06-29"}, "invalid", "idempotency_key"),
    "a key of blanks": (wish(idempotency_key=" "), "invalid", "idempotency_key"),
    "no such day": (wish(as_of="2012-02-30"), "invalid", "as_of"),
    "escaped NUL": (with_text("a\0b"), "invalid", "constraints.note"),
    "escaped NUL in a name": (wish(constraints={"a\0b": "x"}), "invalid", "constraints.ab.[key]"),
    "raw NUL": (spelled("a\0b"), "invalid", "body"),
    "half a character": (spelled("\\ud800"), "invalid", "body"),
    "NaN": (wish(timeout_s=float("nan")), "invalid", "timeout_s"),
    "Infinity": (wish(timeout_s=float("inf")), "invalid", "timeout_s"),
    "NaN as a text": (wish(timeout_s="NaN"), "invalid", "timeout_s"),
    "NaN as money": (
        wish(budgets={"money": {"amount": "NaN"}}),
        "invalid",
        "budgets.money.amount",
    ),
    "over the contract limit": (padded(CONTRACT_BYTES_MAX + 1), "too_large", "body"),
    "exactly the server's limit": (padded(SERVER_BYTES_MAX), "too_large", "body"),
    "empty universe": (wish(universe=[]), "invalid", "universe"),
    "no ticker": (wish(universe=["not a ticker"]), "invalid", "universe.0"),
    "negative budget": (
        wish(budgets={"money": {"amount": "-5"}}),
        "invalid",
        "budgets.money",
    ),
    "a turn and a main pipeline": (
        wish(rotation={"account": "main", "order": ["rules"]}, main="rules"),
        "invalid",
        "rotation",
    ),
    "the rotation's account outside its turn": (
        wish(
            rotation={"account": "main", "order": ["claude"]},
            pipelines=[{"name": "rules", "account": "main"}],
        ),
        "invalid",
        "rotation",
    ),
    "a rotation of nobody": (
        wish(rotation={"account": "main", "order": []}),
        "invalid",
        "rotation.order",
    ),
    "negative tokens": (wish(budgets={"tokens": -1}), "invalid", "budgets.tokens"),
    "no time": (wish(timeout_s=0), "invalid", "timeout_s"),
    "two pipelines of one name": (
        wish(pipelines=[{"name": "a", "account": "x"}, {"name": "a", "account": "y"}]),
        "invalid",
        "pipelines",
    ),
    "two pipelines on one account": (
        wish(pipelines=[{"name": "a", "account": "x"}, {"name": "b", "account": "x"}]),
        "invalid",
        "pipelines",
    ),
    "a main pipeline that is none": (wish(main="other"), "invalid", "main"),
}


def stands_for(body: bytes) -> str:
    """The id that a refused request has in place of a cycle's."""
    kept = hashlib.sha256(body[:UNREADABLE_BYTES_KEPT]).hexdigest()
    return str(ids.cycle_id("user", f"refused/{len(body)}/{kept}"))


@pytest.mark.parametrize("name", UNREADABLE)
async def test_an_unreadable_request_is_answered_announced_and_kept(
    name: str, user: Caller
) -> None:
    given, code, field = UNREADABLE[name]
    body = given if isinstance(given, bytes) else json.dumps(given).encode()

    answer = await user.ask(body)

    assert (answer["outcome"], answer["code"], answer["field"]) == ("rejected", code, field)
    assert answer["cycle_id"] is None
    event = await user.events.first(cycle_id=stands_for(body), type="request_rejected")
    told = {"code": code, "field": field, "message": answer["message"], "requester": "user"}
    assert event["data"] == told
    newest = (await user.query("dead_letters", limit=1))["letters"][0]
    assert newest["subject"] == "desk.v1.dlq.orchestrator.request.user"
    assert newest["size_bytes"] == len(body)
    assert newest["failure"]["code"] == code
    assert newest["failure"]["message"].startswith("from user: ")


async def test_a_request_over_the_servers_limit_is_refused_at_the_sender(user: Caller) -> None:
    with pytest.raises(nats.errors.MaxPayloadError):
        await user.ask(padded(SERVER_BYTES_MAX + 1))


async def test_a_sender_that_ignores_the_servers_limit_loses_its_own_connection_only(
    desk: Desk, user: Caller
) -> None:
    async with desk.calling("user") as rude:
        rude.nats._max_payload = 2 * SERVER_BYTES_MAX
        await rude.nats.publish("desk.v1.req.orchestrator.cycle.user", padded(SERVER_BYTES_MAX + 1))
        await asyncio.wait_for(rude.closed.wait(), 10)

    assert (await user.ask(wish()))["outcome"] == "accepted"


async def test_the_same_key_with_the_same_body_is_accepted_again_with_the_present_status(
    user: Caller,
) -> None:
    body = wish(universe=["AAPL"])
    first = await user.ask(body)
    await user.ended(first["cycle_id"])

    again = await user.ask(body)

    assert (first["outcome"], first["status"]) == ("accepted", "running")
    assert (again["outcome"], again["status"]) == ("accepted", "completed")
    assert again["cycle_id"] == first["cycle_id"]
    accepted = [e for e in user.events.of(first["cycle_id"]) if e["type"] == "cycle_accepted"]
    assert len(accepted) == 1


async def test_the_same_key_with_another_body_is_rejected_and_the_key_is_named(
    user: Caller,
) -> None:
    body = wish(universe=["AAPL"])
    first = await user.run(body)

    answer = await user.ask({**body, "universe": ["MSFT"]})

    assert (answer["outcome"], answer["code"]) == ("rejected", "key_reused")
    assert answer["field"] == "idempotency_key"
    assert body["idempotency_key"] in answer["message"]
    assert (answer["cycle_id"], answer["status"]) == (first["cycle_id"], "completed")
    assert (await user.query("cycle", cycle_id=first["cycle_id"])) == first


async def test_the_same_key_of_another_person_is_another_cycle(desk: Desk, user: Caller) -> None:
    body = wish()
    async with desk.calling("cli") as other:
        assert await other.accepted(body) != await user.accepted(body)


@pytest.mark.parametrize(
    ("pipeline", "code", "told"),
    [
        ({"provider": "oracle"}, "provider_unknown", "this desk has coin, rules"),
        ({"provider": "claude"}, "provider_not_usable", "set ANTHROPIC_API_KEY"),
        ({"provider": "vllm"}, "provider_not_usable", "[providers.vllm]"),
        ({"models": {"trade": "m"}}, "stage_unknown", "sentiment, planner, quant"),
    ],
)
async def test_a_pipeline_that_could_not_begin_is_rejected_at_once_with_what_to_do(
    user: Caller, pipeline: Json, code: str, told: str
) -> None:
    good = wish()["pipelines"][0]
    second = {"name": "second", "account": "nobody-thinks", **pipeline}

    answer = await user.ask(wish(pipelines=[good, second]))

    assert (answer["outcome"], answer["code"], answer["field"]) == ("rejected", code, "pipelines")
    assert "pipeline second: " in answer["message"]
    assert told in answer["message"]


async def test_the_desk_tells_which_providers_it_can_use_and_why_not_others(user: Caller) -> None:
    view = await user.query("providers", owner="sentiment")
    standing = {each["name"]: each for each in view["providers"]}
    assert standing["rules"]["usable"]
    assert not standing["claude"]["usable"]
    assert "ANTHROPIC_API_KEY" in standing["claude"]["why"]


async def test_an_unknown_kind_is_rejected_with_the_known_ones(user: Caller) -> None:
    body = CycleRequest.model_validate(wish(kind="gamble")).model_dump_json().encode()
    answer = await user.ask(body)

    assert (answer["outcome"], answer["code"], answer["field"]) == ("rejected", "invalid", "kind")
    assert "decision" in answer["message"]
    assert answer["suggestion"] == "decision"
    event = await user.events.first(cycle_id=stands_for(body), type="request_rejected")
    assert event["data"]["field"] == "kind"


REFUSED: dict[str, tuple[Json, str, str, str, str | None]] = {
    "weekend": (
        wish(as_of="2012-06-30"),
        "not_a_session",
        "as_of",
        "use 2012-06-29 or 2012-07-02",
        "2012-06-29",
    ),
    "holiday": (
        wish(as_of="2012-07-04"),
        "not_a_session",
        "as_of",
        "use 2012-07-03 or 2012-07-05",
        "2012-07-03",
    ),
    "before the data": (
        wish(as_of="1990-06-29"),
        "no_history",
        "as_of",
        "before the sessions of source bokeh-sampledata, which has prices from 2000-03-01",
        "2000-03-01",
    ),
    "after the data": (
        wish(as_of="2020-06-29"),
        "no_history",
        "as_of",
        "from 2000-03-01 to 2013-03-01; did you mean 2013-03-01?",
        "2013-03-01",
    ),
    "a weekend after the data": (
        wish(as_of="2013-03-02"),
        "no_history",
        "as_of",
        "after the sessions",
        "2013-03-01",
    ),
    "outside the calendar": (
        wish(as_of="2050-03-01"),
        "no_history",
        "as_of",
        "after the sessions",
        "2013-03-01",
    ),
    "a weekend, to sell": (
        wish(kind="exit", as_of="2012-06-30"),
        "not_a_session",
        "as_of",
        "did you mean 2012-06-29?",
        "2012-06-29",
    ),
    "a weekend, for a strategy": (
        wish(kind="strategy", as_of="2012-06-30"),
        "not_a_session",
        "as_of",
        "did you mean 2012-06-29?",
        "2012-06-29",
    ),
    "kind": (wish(kind="exits"), "invalid", "kind", "did you mean exit?", "exit"),
    "source": (
        wish(sources=["screenr"]),
        "unknown_source",
        "sources",
        "there are screener, news, earnings; did you mean screener?",
        "screener",
    ),
    "ticker": (
        wish(universe=["ZZZZ"]),
        "unknown_ticker",
        "universe",
        "it has AAPL, FB, GOOG, IBM, MSFT",
        None,
    ),
    "one ticker of several": (
        wish(universe=["GOOG", "APPL"]),
        "unknown_ticker",
        "universe",
        "did you mean AAPL?",
        "AAPL",
    ),
    "ticker of a strategy": (
        wish(kind="strategy", universe=["NOPE"]),
        "unknown_ticker",
        "universe",
        "NOPE is not in source",
        None,
    ),
    "crypto": (
        wish(universe=["BTC/USD"]),
        "crypto_not_supported",
        "universe",
        "the desk trades equities only",
        None,
    ),
    "before a ticker's data": (
        wish(universe=["FB"], as_of="2011-06-29"),
        "no_history",
        "universe",
        "FB has no prices at or before 2011-06-29",
        None,
    ),
    "constraint": (
        wish(constraints={"max_position": 3, "style": "no tobacco"}),
        "invalid",
        "constraints.max_position",
        "exclude_sectors, no_buys, max_sales, max_sold_pct; did you mean max_positions?",
        "max_positions",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_there_is_not_is_refused_before_a_cycle_exists(name: str, user: Caller) -> None:
    body, code, field, told, suggestion = REFUSED[name]

    answer = await user.ask(body)

    assert (answer["outcome"], answer["code"], answer["field"]) == ("rejected", code, field)
    assert told in answer["message"]
    assert answer.get("suggestion") == suggestion
    cycle_id = ids.cycle_id("user", body["idempotency_key"])
    assert not (await user.query("cycle", cycle_id=str(cycle_id)))["found"]


ENDS: dict[str, tuple[Json, str, str, str]] = {
    "another currency": (
        wish(budgets={"money": {"amount": "100", "currency": "EUR"}}),
        "books",
        "currency_mismatch",
        "USD",
    ),
}


@pytest.mark.parametrize("name", ENDS)
async def test_what_only_the_work_can_find_out_ends_the_cycle_with_a_reason_to_act_on(
    name: str, user: Caller
) -> None:
    body, step, code, told = ENDS[name]

    view = await user.run(body)

    failed = [
        e["data"] for e in user.events.of(view["cycle_id"]) if e["type"] == "operation_failed"
    ]
    assert (failed[0]["step"], failed[0]["code"]) == (step, code)
    assert told in failed[0]["message"]
    assert view["status"] == "failed"
    assert f"scanning/{step} failed" in view["reason"]
    assert told in view["reason"]


async def test_a_known_ticker_without_a_price_that_day_is_dropped_with_its_reason(
    user: Caller,
) -> None:
    view = await user.run(wish(universe=["AAPL", "FB"], as_of="2011-06-29"))

    digest = picked(view, "signal_digest")
    assert view["status"] == "completed"
    assert [each["ticker"] for each in digest["candidates"]] == ["AAPL"]
    assert {each["ticker"] for each in digest["dropped"]} == {"FB"}


async def test_without_a_token_to_spend_the_rules_decide_all_the_same(user: Caller) -> None:
    view = await user.run(wish(budgets={"tokens": 0, "cost_usd": 0}))

    assert view["status"] == "completed"
    assert view["tokens"] == 0
    assert picked(view, "execution_result")["orders"]


async def test_without_money_to_spend_nothing_is_bought(user: Caller) -> None:
    view = await user.run(wish(budgets={"money": {"amount": "0"}}))

    assert view["status"] == "completed"
    assert "execution_result" not in view["pipelines"][0]["contracts"]


async def test_a_cycle_that_does_not_exist_is_not_found(user: Caller) -> None:
    nowhere = "12345678-1234-4234-8234-123456789abc"

    answer = await user.ask({"cycle_id": nowhere}, "cancel")
    view = await user.query("cycle", cycle_id=nowhere)

    assert (answer["outcome"], answer["code"]) == ("rejected", "not_found")
    assert answer["field"] == "cycle_id"
    assert (view["found"], view["status"]) == (False, None)


async def test_a_question_that_cannot_be_read_is_told_why_and_harms_nobody(user: Caller) -> None:
    for body, code, said in (
        (b"{", "invalid", "JSON"),
        (b'{"limit": 100000}', "invalid", "limit: "),
        (padded(SERVER_BYTES_MAX), "too_large", "the limit is"),
    ):
        reply = await user.nats.request("desk.v1.qry.console.cycles.user", body, timeout=5)
        assert reply.data == b""
        assert reply.headers is not None
        assert reply.headers["Desk-Code"] == code
        assert said in reply.headers["Desk-Error"]

    assert (await user.query("cycles", limit=1))["cycles"]
