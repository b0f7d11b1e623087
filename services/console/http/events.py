"""The live tail's path of the HTTP API."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from contracts.audit import BACK_MAX
from contracts.position import position_of
from contracts.subjects.commands import COMMANDS
from contracts.subjects.subject import ORCHESTRATOR
from libs.bus.event_types import require_known
from libs.web.problem import HttpProblem
from libs.web.stream import EVENT_STREAM, EventStream
from services.console.http.requests import Desk
from services.console.http.short_ids import AskedCycle
from services.console.live.event_log import Start
from services.console.live.frames import ALL, EventFilter

PATTERN_CHARS_MAX = 80
SERVICES = sorted({ORCHESTRATOR, *(row.owner for row in COMMANDS)})

STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Frames. `id` is a position: send it as `Last-Event-ID` or `after` to "
        "continue after it. `events` holds events in order; it is empty at times, "
        "as a heartbeat. `gap` says why events before its position are not "
        "available.",
        "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
    }
}


events = APIRouter(prefix="/events", tags=["events"])


@events.get(
    "/stream",
    status_code=HTTPStatus.OK,
    response_class=EventStream,
    responses=STREAMED,
)
async def stream_events(
    desk: Desk,
    cycle_id: AskedCycle,
    after: Annotated[
        str | None, Query(max_length=60, description="Position of the last frame received.")
    ] = None,
    last_event_id: Annotated[str | None, Header(max_length=60)] = None,
    back: Annotated[
        int,
        Query(
            ge=0,
            le=BACK_MAX,
            description="Without a position: how many past events to send first.",
        ),
    ] = 0,
    type: Annotated[  # noqa: A002 - the query's own word
        str,
        Query(max_length=PATTERN_CHARS_MAX, description="`decision`, `order_*`, `execution.*`"),
    ] = ALL,
    service: Annotated[str | None, Query(description="Only events of this service.")] = None,
    errors: Annotated[bool, Query(description="Only failures.")] = False,
) -> Response:
    """Follow all events in order, as server-sent events, without loss."""
    if service is not None and service not in SERVICES:
        text = f"{service!r} is none of {', '.join(SERVICES)}"
        raise HttpProblem(422, "invalid", text, field="service")
    require_known(type)
    wanted = EventFilter(pattern=type, service=service, cycle_id=cycle_id, errors=errors)
    frames = desk.tail.follow(_start(last_event_id or after, back), wanted)
    return EventStream(frames, desk.tail.seat())


def _start(last_id: str | None, back: int) -> Start:
    """A browser that connects again sends the newest position; the URL has that of its page."""
    if not last_id:
        return back
    position = position_of(last_id)
    if position is None:
        text = "no position of this stream: send the `id` of one of its frames, or leave it out"
        raise HttpProblem(422, "invalid", text, field="after")
    return position
