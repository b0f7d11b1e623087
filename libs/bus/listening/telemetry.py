"""How a program that hears events is watched: by the desk's own metrics and spans.

FastStream's middlewares for Prometheus and OpenTelemetry do not fit. Their labels and names are
subjects as they are published, one a cycle; their metrics stand in no table of ours; and their
spans record an error with its words, which may quote an address or a third party. Whoever wants
them for a program of his own passes them to `Listener`.
"""

import time
from typing import Any

from faststream import BaseMiddleware
from faststream.message import StreamMessage

from contracts.subjects.events import EVENTS
from contracts.subjects.subject import PREFIX
from libs.runtime.errors import DeskError
from libs.telemetry import metrics, tracing

_TEMPLATES = {(row.owner, str(row.what)): row.by("*") for row in EVENTS}
_OTHERS = f"{PREFIX}.evt.*"
DEFECT = "defect"


def template(subject: str) -> str:
    """The template in the table of subjects that an event's subject has."""
    _, _, _, owner, what, *_ = *subject.split("."), "", "", "", "", ""
    return _TEMPLATES.get((owner, what), _OTHERS)


class Watched(BaseMiddleware):
    """Counts events by how that ended, times their handlers, and traces them with their cycle."""

    async def consume_scope(self, call_next: Any, msg: StreamMessage[Any]) -> Any:
        """One message, through its handler."""
        subject = template(msg.raw_message.subject)
        node = tracing.Node.of_header(msg.headers.get("traceparent"))
        began, outcome = time.monotonic(), "failed"
        with tracing.below(node), tracing.span(f"hear {subject}", {}) as span:
            try:
                result = await call_next(msg)
                outcome = "taken"
            except Exception as error:
                cause = error.__cause__ or error
                span.failed(cause.code if isinstance(cause, DeskError) else DEFECT)
                raise
            finally:
                metrics.HEARD.add(subject, outcome)
                metrics.HEARD_SECONDS.observe(time.monotonic() - began, subject)
        return result
