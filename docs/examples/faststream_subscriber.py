"""Hears every decision of a desk as a typed contract: first what it missed, then what comes.

docs/extending.md shows it whole, says what to install and what is promised.
"""

import asyncio
import sys
from pathlib import Path

from contracts.audit import EventType
from contracts.event_data import EventOf
from contracts.risk import DecisionValidation
from libs.bus.listening.listener import Listener
from libs.runtime.errors import DeskError


def hears_decisions(url: str, key: Path) -> Listener:
    """The program: one handler, which is given each decision once, in the desk's order."""
    desk = Listener(url, key.stem, key.parent, positions=Path("positions"))

    @desk.hears(EventType.DECISION)
    async def on_decision(event: EventOf[DecisionValidation]) -> None:
        orders = [f"{each.action} {each.quantity} {each.asset}" for each in event.data.decisions]
        print(event.cycle_id, ", ".join(orders) or "nothing to do", flush=True)

    return desk


if __name__ == "__main__":
    program = hears_decisions(sys.argv[1], Path(sys.argv[2]))
    try:
        asyncio.run(program.run(on_caught_up=lambda: print("listening", flush=True)))
    except DeskError as error:  # NATS is not there, or refuses the key
        sys.exit(error.message)
