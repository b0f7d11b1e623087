"""How a program that hears events is watched: our metrics, and FastStream's own spans.

FastStream's Prometheus middleware is not used: its metrics stand in no table of ours, and its
labels are subjects as they are published, one a cycle. Its spans take the subject's template here.
"""

import time
from collections.abc import Sequence
from typing import Any

from faststream import BaseMiddleware
from faststream.message import StreamMessage

from contracts.subjects import EVENTS, PREFIX
from libs.telemetry import metrics, tracing

_TEMPLATES = {(row.owner, str(row.what)): row.by("*") for row in EVENTS}
_OTHERS = f"{PREFIX}.evt.*"


def template(subject: str) -> str:
    """The template in the table of subjects that an event's subject has."""
    _, _, _, owner, what, *_ = *subject.split("."), "", "", "", "", ""
    return _TEMPLATES.get((owner, what), _OTHERS)


class Measured(BaseMiddleware):
    """Counts events by how that ended, and how long their handlers took."""

    async def consume_scope(self, call_next: Any, msg: StreamMessage[Any]) -> Any:
        """One message, through its handler."""
        subject = template(msg.raw_message.subject)
        began, outcome = time.monotonic(), "failed"
        try:
            result = await call_next(msg)
            outcome = "taken"
        finally:
            metrics.HEARD.add(subject, outcome)
            metrics.HEARD_SECONDS.observe(time.monotonic() - began, subject)
        return result


def watching() -> Sequence[Any]:
    """The middlewares of this process; spans only where traces are exported."""
    provider = tracing.tracer_provider()
    return (Measured,) if provider is None else (Measured, _spans(provider))


def _spans(provider: Any) -> Any:
    from faststream.nats.opentelemetry.provider import (  # noqa: PLC0415 - only where it is on
        NatsTelemetrySettingsProvider,
    )
    from faststream.opentelemetry import TelemetryMiddleware  # noqa: PLC0415

    class Templates(NatsTelemetrySettingsProvider):
        """Spans named after the subject's template."""

        def get_consume_destination_name(self, msg: StreamMessage[Any]) -> str:
            return template(msg.raw_message.subject)

    # Its meter is OpenTelemetry's own, which nobody has set up here: it measures nothing.
    return TelemetryMiddleware(
        settings_provider_factory=lambda _: Templates(), tracer_provider=provider
    )
