"""What models were sent: on record with each call, for people and for no other program."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import httpx2
import polars as pl
import pytest

from contracts.subjects.subject import AGENTS
from contracts.subjects.table import QUERIES
from libs.runtime.http_address import http_address
from tests.integration.desk.caller import Caller, Json, operation_of, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk

SECRET_WORDS = ("# Role", "<task>", "</facts>", "close, RSI(14)", "AAPL.close = ")
"""Of the quant's prompt, its message, its facts."""


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


@pytest.fixture
async def pages(desk: Desk) -> AsyncIterator[httpx2.AsyncClient]:
    """The console's pages, and its API below /api/v1."""
    address = http_address(desk.settings)
    assert address is not None
    async with httpx2.AsyncClient(base_url=address.url, verify=False, timeout=60) as client:
        client.headers["Accept"] = "text/html, application/json"
        yield client


async def decided(user: Caller, **fields: object) -> tuple[str, Sequence[Json]]:
    """A cycle that has ended, and the nodes of its tree."""
    cycle_id = (await user.run(wish(**fields)))["cycle_id"]
    return cycle_id, (await user.query("operations", cycle_id=cycle_id))["operations"]


async def models_of(user: Caller, op_id: UUID) -> list[int]:
    detail = await user.query("operation", op_id=str(op_id))
    return [entry["index"] for entry in detail["journal"] if entry["kind"] == "model"]


async def test_every_call_of_every_stage_shows_prompt_schema_facts_and_reply(
    user: Caller, desk: Desk, deskbus: CommandLine, pages: httpx2.AsyncClient
) -> None:
    _, nodes = await decided(user)
    quant = operation_of(nodes, "quant")
    asked = {
        node["op_id"]: await models_of(user, UUID(node["op_id"]))
        for node in nodes
        if node["type"] == "operation"
    }
    assert sum(map(len, asked.values())) >= 6
    for op_id, indexes in asked.items():
        for index in indexes:
            sent = await user.query("sent", op_id=op_id, index=index)
            roles = [text["role"] for text in sent["texts"]]
            assert roles[0] == "system"
            assert roles[1] in {"tools", "schema"}
            assert roles[-1] == "assistant"
            texts = [text for text in sent["texts"] if text["role"] != "assistant"]
            assert all(text["text"] for text in texts), (op_id, index)
            assert not any("not recorded" in text["note"] for text in sent["texts"])
    (index,) = asked[str(quant)]
    words = json.dumps(await user.query("sent", op_id=str(quant), index=index))
    assert all(word in words for word in SECRET_WORDS)
    over_http = (await pages.get(f"/api/v1/operations/{quant}/calls/{index}/sent")).json()
    assert over_http == await user.query("sent", op_id=str(quant), index=index)
    page = (await pages.get(f"/operations/{quant}/calls/{index}")).text
    full = deskbus(f"operations show {quant} --full").out
    (whole,) = deskbus(f"operations show {quant} --json").rows
    assert whole["sent"][str(index)] == over_http
    for word in (
        "You are the quant",
        "AAPL.close = ",
        "QuantDraft",
        "the last decisions of the account have none",
    ):
        assert word in page, word
        assert word in full, word
    missing = await pages.get(f"/api/v1/operations/{quant}/calls/0/sent")
    assert (missing.status_code, "asked no model" in missing.text) == (404, True)


async def test_the_difference_to_the_call_before_is_that_of_the_last_decision(
    user: Caller, deskbus: CommandLine
) -> None:
    body = wish()
    account = body["pipelines"]
    first = (await user.run(body))["cycle_id"]
    second = (await user.run(wish(as_of="2012-07-02", pipelines=account)))["cycle_id"]
    quants = [
        operation_of((await user.query("operations", cycle_id=cycle_id))["operations"], "quant")
        for cycle_id in (first, second)
    ]
    (index,) = await models_of(user, quants[1])
    told = (await user.query("sent", op_id=str(quants[1]), index=index))["difference"]
    assert told["op_id"] == str(quants[0])
    assert {"system prompt"} <= {*told["same"]}
    lines = [(line["sign"], line["part"], line["text"]) for line in told["lines"]]
    assert ("-", "facts", "AAPL.close = 584 USD") in lines
    assert ("+", "facts", "AAPL.close = 592.52 USD") in lines
    assert "- " in deskbus(f"operations show {quants[1]} --full").out


async def test_a_text_is_stored_once_and_goes_with_the_calls_of_its_month(
    user: Caller, desk: Desk
) -> None:
    await decided(user)
    async with desk.postgres() as db:
        before = await db.fetchval("select count(*) from prompt_texts where text like '# Role%'")
        await decided(user)
        after = await db.fetchval("select count(*) from prompt_texts where text like '# Role%'")
        named = await db.fetch(
            "select distinct named[1] from journal,"
            " regexp_matches(convert_from(entry, 'UTF8'), '\"([0-9a-f]{64})\"', 'g') named"
        )
        kept = await db.fetch("select encode(sha256, 'hex') from prompt_texts")
    assert before == after > 3
    assert {digest for (digest,) in kept} <= {digest for (digest,) in named}


async def test_the_read_only_key_is_refused_and_no_subject_of_its_own_tells_a_prompt(
    user: Caller, desk: Desk
) -> None:
    cycle_id, nodes = await decided(user)
    quant = operation_of(nodes, "quant")
    (index,) = await models_of(user, quant)
    asked = {"cycle_id": cycle_id, "op_id": str(quant), "index": index, "limit": 50}
    for identity in AGENTS:
        async with desk.calling(identity) as agent:
            for row in (row for row in QUERIES if identity in row.senders):
                fields = {name: asked[name] for name in row.message.model_fields if name in asked}
                subject, body = row.by(identity), json.dumps(fields).encode()
                answer = (await agent.nats.request(subject, body, timeout=30)).data.decode()
                assert not any(word in answer for word in SECRET_WORDS), row.what
            subject = f"desk.v1.qry.console.sent.{identity}"
            await agent.nats.publish(subject, b"{}")
            await agent.nats.flush()
            await agent.was_refused.wait()
            assert subject in agent.refused[0]


async def test_calls_of_before_say_that_nothing_was_recorded(
    user: Caller, desk: Desk, deskbus: CommandLine, pages: httpx2.AsyncClient
) -> None:
    _, nodes = await decided(user)
    quant = operation_of(nodes, "quant")
    (index,) = await models_of(user, quant)
    async with desk.postgres() as db:
        where = "where op_id = $1 and index = $2"
        entry = json.loads(await db.fetchval(f"select entry from journal {where}", quant, index))
        request = entry["request"]
        del request["schema_sha256"]
        request["system_sha256"] = "0" * 64
        request["messages"] = [{"role": "user", "text": "<task>\n{}\n</task>"}]
        body = json.dumps(entry).encode()
        await db.execute(f"update journal set entry = $3 {where}", quant, index, body)
    sent = await user.query("sent", op_id=str(quant), index=index)
    notes = [text["note"] for text in sent["texts"] if text["role"] != "assistant"]
    assert notes == ["not recorded"] * 3
    page = (await pages.get(f"/operations/{quant}/calls/{index}")).text
    full = deskbus(f"operations show {quant} --full").out
    assert len(re.findall("not recorded", page)) >= 3
    assert len(re.findall("not recorded", full)) == 3


async def test_a_cycles_export_has_the_texts_that_its_calls_name_and_no_others(
    user: Caller, desk: Desk, deskbus: CommandLine, tmp_path: Path
) -> None:
    await decided(user, as_of="2012-05-31")
    cycle_id, _ = await decided(user)
    assert deskbus(f"export {tmp_path / 'one'} --cycle {cycle_id}").code == 0
    texts = pl.read_parquet(tmp_path / "one" / "prompt_texts.parquet")
    entries = pl.read_parquet(tmp_path / "one" / "journal.parquet")["entry"].to_list()
    named = {digest for entry in entries for digest in re.findall('"([0-9a-f]{64})"', entry)}
    kept = {digest.hex() for digest in texts["sha256"]}
    assert kept <= named
    requests = [entry["request"] for entry in map(json.loads, entries) if entry["kind"] == "model"]
    assert {request["system_sha256"] for request in requests} <= kept
    assert not any('"as_of":"2012-05-31"' in text for text in texts["text"])
