"""What `benchmarks.tail` runs beside the desk, each as a process: a writer of events, and clients.

    python -m benchmarks.tail_load write DSN RATE SECONDS
    python -m benchmarks.tail_load follow PORT CLIENTS

The writer inserts rows into `state_events` as the orchestrator's role would, every 10 ms, in one
transaction a tick: the relay and the console find them as they find the desk's own. A client reads
its stream as a browser does, without looking into it; the line that it prints counts the bytes.
"""

import asyncio
import sys
import time
from typing import Final
from uuid import UUID, uuid4

import asyncpg

TICK_S: Final = 0.01
CYCLES: Final = 50
DATA: Final = (
    '{"step": "analyst", "name": "get_stock_price", "index": 3, "duration_ms": 1.25}'  # 150 bytes
)
INSERT: Final = """
insert into state_events
    (started_on, op_id, seq, cycle_id, type, owner, pipeline, state, session_id, data)
select current_date, c.id, $2 + n / cardinality($1::uuid[]), c.id, 'tool_called', 'orchestrator',
       'rules', 'analyzing', 'main/2012-06-29', $4
from generate_series(0, $3 - 1) n
cross join lateral (select ($1::uuid[])[1 + n % cardinality($1::uuid[])] as id) c
"""


async def write(dsn: str, rate: int, seconds: float) -> None:
    """Insert `rate` events a second, and print how many that were and how late the last came."""
    db = await asyncpg.connect(dsn)
    cycles: list[UUID] = [uuid4() for _ in range(CYCLES)]
    statement = await db.prepare(INSERT)
    began = time.monotonic()
    written = 0
    while (passed := time.monotonic() - began) < seconds:
        due = int(rate * passed) - written
        if due > 0:
            # Sequence numbers only rise; a tick's events are spread over the cycles.
            await statement.fetch(cycles, written + 1, due, DATA)
            written += due
        await asyncio.sleep(max(TICK_S - (time.monotonic() - began - passed), 0))
    await db.close()
    print(written, flush=True)


async def follow(port: int, clients: int) -> None:
    """Read streams until this is ended; a line once all are connected."""
    streams = [await _connected(port) for _ in range(clients)]
    print("connected", flush=True)
    await asyncio.gather(*map(_drained, streams))


async def _connected(port: int) -> asyncio.StreamReader:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"event: events")
    _KEPT.append(writer)
    return reader


_KEPT: Final[list[asyncio.StreamWriter]] = []


async def _drained(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 20):
        pass


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "write":
        asyncio.run(write(given[0], int(given[1]), float(given[2])))
    else:
        asyncio.run(follow(int(given[0]), int(given[1])))
