"""A FastStream program that hears every decision of a desk, as typed contracts.

In a checkout, whose contracts it reads:

    pip install "faststream[nats]>=0.7.8,<0.8" "nats-py[nkeys]"
    export PYTHONPATH=.
    python docs/examples/faststream_subscriber.py nats://127.0.0.1:4222 .deskbus/secrets/user.nk

`deskbus doctor` prints the address; the seed is that of any identity that may hear events.
"""

import asyncio
import sys
from pathlib import Path

from faststream import FastStream
from faststream.nats import NatsBroker
from faststream.nats.security import NatsNKey

from contracts.audit import Event, EventType
from contracts.risk import DecisionValidation


def say(*words: object) -> None:
    """Print a line at once."""
    print(*words, flush=True)  # noqa: T201 - its output is its purpose


def application(url: str, seed: Path) -> FastStream:
    """The program: one subscriber, which FastStream gives the event as the contract that it is."""
    security = NatsNKey.from_file(str(seed))
    broker = NatsBroker(url, security=security, inbox_prefix=f"_INBOX_{seed.stem}")

    # An event asks for no answer, and who hears it may send none: NATS would say so each time.
    @broker.subscriber(f"desk.v1.evt.*.{EventType.DECISION}.*", no_reply=True)
    async def on_decision(event: Event) -> None:
        decision = DecisionValidation.model_validate(event.data)
        orders = [f"{d.action} {d.asset}" for d in decision.decisions]
        say(event.cycle_id, ", ".join(orders) or "nothing to do")

    program = FastStream(broker)

    @program.after_startup
    async def on_started() -> None:
        say("listening")

    return program


if __name__ == "__main__":
    asyncio.run(application(sys.argv[1], Path(sys.argv[2])).run())
