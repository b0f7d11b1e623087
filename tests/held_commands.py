"""Hold commands back in a desk whose services share one process."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from contracts.subjects.commands import COMMANDS
from libs.bus.local import LocalBus
from libs.bus.pull import LocalDelivery


@contextmanager
def not_handed_over(durable: str) -> Iterator[None]:
    """The command goes over NATS while the block runs, where its consumer may be paused."""
    hand_over, free_workers = LocalBus.hand_over, LocalBus.free_workers
    held = {(row.owner, row.what) for row in COMMANDS if row.durable == durable}
    assert held, f"no command has the consumer {durable}"

    def unless_held(bus: LocalBus, service: str, step: str, command: LocalDelivery) -> bool:
        return (service, step) not in held and hand_over(bus, service, step, command)

    def none_free_for_held(bus: LocalBus, service: str, step: str) -> int:
        return 0 if (service, step) in held else free_workers(bus, service, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalBus, "free_workers", none_free_for_held)
        patch.setattr(LocalBus, "hand_over", unless_held)
        yield
