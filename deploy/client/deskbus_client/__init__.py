"""A client of a Deskbus desk: request cycles, wait for them, follow events and decisions.

`AsyncDesk` is for programs on asyncio, `Desk` for all others. Every shape that comes back is one of
the desk's contracts: `deskbus_client.contracts`.
"""

from deskbus_client.desk import (
    AsyncDesk,
    CycleRefused,
    DecisionAt,
    EventsLost,
    NoDesk,
    StillRunning,
)
from deskbus_client.frames import frame
from deskbus_client.sync import Desk
from libs.bus.client import DeskNotReachable, QuestionRefused
from libs.runtime.errors import DeskError

__all__ = [
    "AsyncDesk",
    "CycleRefused",
    "DecisionAt",
    "Desk",
    "DeskError",
    "DeskNotReachable",
    "EventsLost",
    "NoDesk",
    "QuestionRefused",
    "StillRunning",
    "frame",
]
