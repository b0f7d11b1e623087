"""Events of the table as they are published."""

from contracts.position import Position
from libs.bus.publisher import OutgoingEvent
from libs.postgres.events import event_json
from libs.postgres.pool import Record
from libs.runtime import ids


def outgoing(row: Record, sequence: int) -> OutgoingEvent:
    """The event, as number `sequence` of its cycle."""
    node = row["op_id"]
    event_id = ids.event_id(node, row["seq"])
    body = event_json(row, sequence)
    position = Position.behind(row["xid"], row["id"], event_id)
    kind, owner, cycle_id = row["type"], row["owner"], row["cycle_id"]
    return OutgoingEvent(event_id, kind, owner, cycle_id, node, body, position)
