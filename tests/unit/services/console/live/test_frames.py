"""Positions, filters and frames of the live tail."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest

from contracts.audit import Event
from contracts.position import BEGINNING, Position, position_of
from services.console.live import frames
from services.console.live.frames import Batch, EventFilter, EventLine, behind, line_of
from tests.fakes.event_stream import Frame, Reader

CYCLE, OTHER = UUID(int=1), UUID(int=2)


def line(number: int, kind: str = "state_entered", cycle: UUID = CYCLE, **data: Any) -> EventLine:
    row = {
        "xid": number // 10,
        "id": number,
        "op_id": UUID(int=number),
        "seq": 1,
        "cycle_id": cycle,
        "type": kind,
        "owner": "execution" if kind.startswith("order") else "orchestrator",
        "pipeline": None,
        "state": None,
        "session_id": None,
        "at": datetime(2026, 11, 22, tzinfo=UTC),
        "data": orjson.dumps(data).decode(),
    }
    return line_of(row, number)


def batch(*lines: EventLine) -> Batch:
    return Batch(lines, behind(lines[-1].row))


def read(sent: bytes) -> list[Frame]:
    return list(Reader().feed(sent))


def test_a_position_is_read_as_it_was_written() -> None:
    for position in (BEGINNING, behind(line(25).row), Position((2**64 - 1, 5), "0a1b2c3d")):
        assert position_of(str(position)) == position


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "1-2",
        "1-2-xyz",
        "1-2-0a1b2c3",
        "-1-2-0a1b2c3d",
        "1-2-0a1b2c3d ",
        "x" * 50,
        f"{2**64}-2-0a1b2c3d",
        "1-1234567890123456789-0a1b2c3d",
        "\u0661-2-0a1b2c3d",
    ],
)
def test_what_is_no_position_is_not_taken_for_one(text: str) -> None:
    assert position_of(text) is None


def test_events_of_another_history_at_the_same_place_have_another_position() -> None:
    one, other = line(25).row, {**line(25).row, "op_id": UUID(int=99)}
    assert behind(one).order == behind(other).order
    assert behind(one) != behind(other)


def test_a_batch_is_one_frame_whose_id_is_behind_its_last_event() -> None:
    sent = batch(line(1), line(2), line(3))
    (frame,) = read(sent.wanted(EventFilter()))
    assert (frame.id, frame.kind) == (str(sent.end), "events")
    assert [each["sequence"] for each in frame.data] == [1, 2, 3]
    assert [Event.model_validate(each) for each in frame.data]
    assert sent.wanted(EventFilter()) is sent.whole, "encoded once"


def test_a_large_batch_is_cut_into_frames_that_each_can_be_resumed_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [line(number) for number in range(1, 6)]
    monkeypatch.setattr(frames, "FRAME_BYTES_MAX", len(lines[0].body) + len(lines[1].body))
    found = read(batch(*lines).wanted(EventFilter()))
    assert [[each["sequence"] for each in frame.data] for frame in found] == [[1, 2], [3, 4], [5]]
    assert [frame.id for frame in found] == [str(behind(lines[number].row)) for number in (1, 3, 4)]


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        (EventFilter(), [1, 2, 3, 4, 5]),
        (EventFilter(pattern="order_*"), [3]),
        (EventFilter(pattern="execution.*"), [3]),
        (EventFilter(pattern="decision"), []),
        (EventFilter(errors=True), [2, 5]),
        (EventFilter(cycle_id=OTHER), [4]),
        (EventFilter(service="research"), [2]),
        (EventFilter(service="execution"), [3]),
        (EventFilter(service="orchestrator"), [1, 4, 5]),
        (EventFilter(service="orchestrator", errors=True), [5]),
    ],
)
def test_a_client_is_sent_what_it_wants_and_nothing_else(
    wanted: EventFilter, taken: list[int]
) -> None:
    sent = batch(
        line(1),
        line(2, "operation_failed", step="plan", code="x", message="y"),
        line(3, "order_filled", status="filled"),
        line(4, "cycle_ended", OTHER, status="completed"),
        line(5, "pipeline_ended", status="rejected"),
    )
    found = [each["sequence"] for frame in read(sent.wanted(wanted)) for each in frame.data]
    assert found == taken
    if taken:
        (frame,) = read(sent.wanted(wanted))
        assert frame.id == str(sent.end), "what was left out is behind it too"
    else:
        assert sent.wanted(wanted) == b""


def test_what_a_client_has_already_is_cut_off() -> None:
    sent = batch(line(8), line(9), line(10), line(11))
    assert sent.behind(BEGINNING) is sent
    assert [each.order for each in sent.behind(behind(line(9).row)).lines] == [
        (1, 10),
        (1, 11),
    ]
    assert not sent.behind(sent.end).lines
    assert sent.behind(sent.end).wanted(EventFilter()) == b""


def test_a_gap_says_why_and_from_where_it_goes_on() -> None:
    for reason in ("retention", "unknown", "behind"):
        (frame,) = read(frames.gap_frame(reason, BEGINNING))
        assert (frame.kind, frame.id) == ("gap", str(BEGINNING))
        assert frame.data["reason"] == reason
        assert frame.data["message"]
