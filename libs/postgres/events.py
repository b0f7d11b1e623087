"""Rows of state_events as the events that people get, when they happen and when asked later."""

from collections.abc import Mapping
from typing import Any

import orjson

from contracts.audit import Event
from libs.runtime import ids

Row = Mapping[str, Any]


def event_json(row: Row, sequence: int) -> bytes:
    """The event as JSON, as number `sequence` of its cycle."""
    # Its parts were checked when they were written: not once more for every event.
    return orjson.dumps(
        {
            "version": 1,
            "event_id": str(ids.event_id(row["op_id"], row["seq"])),
            "sequence": sequence,
            "type": row["type"],
            "owner": row["owner"],
            "cycle_id": str(row["cycle_id"]),
            "op_id": str(row["op_id"]),
            "pipeline": row["pipeline"],
            "state": row["state"],
            "session_id": row["session_id"],
            "at": row["at"],
            "data": orjson.Fragment(row["data"]),
        },
        option=orjson.OPT_UTC_Z,
    )


def event_of(row: Row, sequence: int) -> Event:
    """The event, as number `sequence` of its cycle."""
    return Event.model_validate_json(event_json(row, sequence))
