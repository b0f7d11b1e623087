"""Message headers: de-duplication, trace context (W3C) and CloudEvents attributes.

Ids are derived from the cycle and the operation, so a message that is sent again has the same
headers, and one trace holds all of one cycle.
"""

from uuid import UUID

from contracts.types import shortened
from libs.runtime.errors import DeskError


def headers(message_id: str, what: str, cycle_id: UUID, node: UUID, source: str) -> dict[str, str]:
    """The headers of one message about `node` (an operation, or the cycle itself)."""
    return {
        "Nats-Msg-Id": message_id,
        "traceparent": traceparent(cycle_id, node),
        "ce-specversion": "1.0",
        "ce-id": message_id,
        "ce-type": what,
        "ce-source": f"deskbus/{source}",
        "ce-subject": str(cycle_id),
    }


def traceparent(cycle_id: UUID, node: UUID) -> str:
    """The node's place in the trace of its cycle."""
    return f"00-{cycle_id.hex}-{node.hex[:16]}-01"


POSITION_HEADER = "Desk-Position"
"""Of events: where it stands among all (contracts/position.py), in the order of publishing."""
CODE_HEADER, ERROR_HEADER = "Desk-Code", "Desk-Error"
MISTYPED_HEADER, SUGGESTION_HEADER = "Desk-Mistyped", "Desk-Suggestion"
"""Of a question that is not answered: a name that was probably mistyped, and the one meant."""
SENDER_HEADER, CUT_HEADER = "Desk-From", "Desk-Cut"
"""Of dead letters: who sent it, and how many bytes of its body were left out."""
AGAIN_HEADER = "Desk-Again"
"""Beside the reason: it is an outage, and the same question may be answered later."""
REASON_CHARS_MAX = 400


def reason(code: str, message: str) -> dict[str, str]:
    """The headers that say why a message could not be used or a question not be answered."""
    return {CODE_HEADER: code, ERROR_HEADER: _line(message)}


def refusal(error: DeskError) -> dict[str, str]:
    """The headers of a question that is not answered: why, and what would be."""
    why = reason(error.code, error.message)
    if error.mistyped and error.suggestion:
        why |= {MISTYPED_HEADER: _line(error.mistyped), SUGGESTION_HEADER: _line(error.suggestion)}
    return why


def _line(text: str) -> str:
    """A header ends where its line does."""
    return shortened(" ".join(text.split()), REASON_CHARS_MAX)
