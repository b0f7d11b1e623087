"""A command in the traces: an operation from its publishing to its answer, the handler below."""

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from contracts.message import Command
from contracts.subjects.subject import AnySubject
from libs.bus.pull import Delivery
from libs.runtime.errors import DeskError
from libs.telemetry import tracing


async def traced_command(
    row: AnySubject, command: Command, delivery: Delivery, deal: Coroutine[Any, Any, str]
) -> str:
    """Run `deal` in the operation's span and return its result. The operation's span is that which
    the delivery names, and is told once the operation is answered: until then another
    instance may have to do it.
    """
    if not tracing.is_on():
        return await deal
    node = tracing.Node.of_header(delivery.traceparent)
    with tracing.below(node):
        outcome = await deal
    if outcome in {"answered", "failed"}:
        failure = "operation_failed" if outcome == "failed" else ""
        began, what = delivery.sent_at, _described(row, command)
        tracing.ended(f"operation {row.what}", node, began, what, failure)
    return outcome


@contextmanager
def traced_handler(row: AnySubject) -> Iterator[None]:
    """The handler's span, while the block runs; of what it raises the code is told."""
    with tracing.span(f"handle {row.what}", {"deskbus.service": row.owner}) as span:
        try:
            yield
        except DeskError as error:
            span.failed(error.code)
            raise
        except BaseException as error:
            span.failed(type(error).__name__)
            raise


def _described(row: AnySubject, command: Command) -> tracing.Attributes:
    return {
        "messaging.system": "nats",
        "messaging.destination.template": row.address,
        "messaging.operation.type": "process",
        "deskbus.cycle_id": str(command.cycle_id),
        "deskbus.op_id": str(command.op_id),
        "deskbus.pipeline": command.pipeline.name,
        "deskbus.attempt": command.attempt,
    }
