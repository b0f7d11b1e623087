"""The pages of a cycle, an operation and a call, over what a journal may hold."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import orjson
import pytest

from contracts.operation import JournalEntry
from services.console.pages.trace import cycle as cycle_pages
from services.console.pages.trace import operation as operation_pages
from tests.integration.console.conftest import NOW

if TYPE_CHECKING:
    import httpx2

    from tests.integration.console.conftest import Made

HOSTILE = "</pre></script><img src=x onerror=alert(1)>"
MANY = 5_000
TIMES = 20
P95_S = 0.2


async def journalled(
    made: Made, op_id: UUID, index: int, kind: str, name: str, **fields: Any
) -> None:
    entry = JournalEntry.model_validate(
        {
            "index": index,
            "kind": kind,
            "name": name,
            "request_sha256": "0" * 64,
            "request": None,
            "reply": None,
            "duration_ms": 2.0,
        }
        | fields
    )
    await made.db.execute(
        "insert into journal (started_on, op_id, index, epoch, entry) values ($1, $2, $3, 1, $4)",
        NOW.date(),
        op_id,
        index,
        entry.model_dump_json().encode(),
    )


async def page(http: httpx2.AsyncClient, path: str) -> str:
    answer = await http.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return str(answer.text)


async def test_a_call_has_a_page_and_what_there_is_not_has_none(
    http: httpx2.AsyncClient, made: Made
) -> None:
    op_id = await made.operation("analyzing", "analyst")
    arguments = {"arguments": {"ticker": "AAPL"}, "unread": ""}
    price = {"ticker": "AAPL", "price": 584.0}
    await journalled(made, op_id, 0, "tool", "get_stock_price", request=arguments, reply=price)
    for text in (
        await page(http, f"/operations/{op_id}/calls/0"),
        await page(http, f"/operations/{op_id}"),
        await page(http, f"/cycles/{made.cycle_id}?calls=true"),
    ):
        assert "get_stock_price(AAPL) = 584.00" in text
    short = await page(http, f"/operations/{str(op_id)[:8]}/calls/0")
    assert "get_stock_price(AAPL) = 584.00" in short
    for path in (
        f"/operations/{op_id}/calls/1",
        f"/operations/{uuid4()}/calls/0",
        f"/operations/{uuid4()}",
        f"/cycles/{uuid4()}",
    ):
        answer = await http.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 404, path


async def test_whatever_stands_in_a_journal_is_text(http: httpx2.AsyncClient, made: Made) -> None:
    command = {"note": HOSTILE, HOSTILE: [HOSTILE]}
    op_id = await made.operation("analyzing", "analyst", command=command, result={"text": HOSTILE})
    call = {"id": "c", "name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}
    await journalled(
        made,
        op_id,
        0,
        "model",
        HOSTILE,
        request={
            "agent": HOSTILE,
            "system_sha256": HOSTILE,
            "tools": [HOSTILE],
            "output": False,
            "messages": [{"role": "user", "text": f"{HOSTILE}\n{orjson.dumps(command).decode()}"}],
        },
        reply={"text": HOSTILE, "tool_calls": [call], "stop_reason": HOSTILE},
    )
    await journalled(made, op_id, 1, "tool", HOSTILE, request=call, reply={"error": HOSTILE})
    failed = {"fault": {"code": HOSTILE, "message": HOSTILE}}
    await journalled(made, op_id, 2, "model", "claude:x", request={"again": 1}, reply=failed)
    checked = {"passed": False, "errors": [HOSTILE]}
    await journalled(made, op_id, 3, "read", "check", reply=checked, passed=False)
    for path in (
        f"/cycles/{made.cycle_id}?calls=true",
        f"/operations/{op_id}",
        *(f"/operations/{op_id}/calls/{index}" for index in range(4)),
    ):
        text = await page(http, path)
        assert "<img src=x" not in text, path
        assert "&lt;img src=x onerror=alert(1)&gt;" in text, path


@pytest.mark.parametrize("request_", [None, [], "text", {"messages": "none", "tools": 3}])
async def test_a_record_of_another_shape_is_shown_all_the_same(
    http: httpx2.AsyncClient, made: Made, request_: Any
) -> None:
    op_id = await made.operation("analyzing", "analyst")
    reply = {"tool_calls": [3, {"name": None}], "text": None}
    await journalled(made, op_id, 0, "model", "claude:x", request=request_, reply=reply)
    await journalled(made, op_id, 1, "tool", "get_news", request=request_, reply=request_)
    for path in (
        f"/operations/{op_id}/calls/0",
        f"/operations/{op_id}/calls/1",
        f"/operations/{op_id}",
        f"/cycles/{made.cycle_id}?calls=true",
    ):
        await page(http, path)


async def test_thousands_of_calls_are_paged_through_and_every_page_is_quick(
    http: httpx2.AsyncClient, made: Made
) -> None:
    ops = [await made.operation("analyzing", f"step{n}") for n in range(10)]
    rows = [(ops[n % 10], n // 10, _long_call(n // 10)) for n in range(MANY)]
    await made.db.executemany(
        "insert into journal (started_on, op_id, index, epoch, entry) values ($1, $2, $3, 1, $4)",
        [(NOW.date(), *row) for row in rows],
    )
    await made.db.execute("analyze")
    shown = cycle_pages.CALLS_SHOWN
    first = await page(http, f"/cycles/{made.cycle_id}?calls=true")
    assert f"calls 1 to {shown} of 5,000" in first
    assert first.count('class="opens" href="/operations/') == shown + 10
    last = await page(http, f"/cycles/{made.cycle_id}?calls=true&first={MANY - shown}")
    assert "calls 4,801 to 5,000 of 5,000" in last
    assert "More calls" not in last
    # Only the operation whose calls are on the page, and each of its calls once.
    assert len(re.findall(r'class="opens" href="/operations/[0-9a-f-]{36}"', last)) == 1

    listed = await page(http, f"/operations/{ops[0]}")
    assert listed.count("get_stock_price(T") == operation_pages.CALLS_SHOWN
    paths = (
        f"/cycles/{made.cycle_id}",
        f"/cycles/{made.cycle_id}?calls=true",
        f"/cycles/{made.cycle_id}?calls=true&first={MANY - shown}",
        f"/operations/{ops[0]}",
        f"/operations/{ops[0]}/calls/{MANY // 10 - 1}",
    )
    for path in paths:
        took = []
        for _ in range(TIMES):
            began = time.process_time()
            await page(http, path)
            took.append(time.process_time() - began)
        # The processor's time: this test must not fail because other work has the machine. The
        # console runs in this process, and Postgres has as little to do as the console.
        assert sorted(took)[int(TIMES * 0.95) - 1] < P95_S, (path, took)


def _long_call(index: int) -> bytes:
    entry = JournalEntry(
        index=index,
        kind="tool",
        name="get_stock_price",
        request_sha256="0" * 64,
        request={"arguments": {"ticker": f"T{index}"}, "unread": ""},
        reply={"ticker": f"T{index}", "price": 1.5 + index, "note": "x" * 1_000},
        duration_ms=2.0,
    )
    return entry.model_dump_json().encode()
