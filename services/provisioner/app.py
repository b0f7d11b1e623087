"""Wiring of the provisioner."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from contracts.subjects.commands import COMMANDS
from contracts.subjects.subject import AnySubject
from libs.bus.connection import connect, watched
from libs.bus.discovery import discoverable
from libs.bus.permissions import PROVISIONER
from libs.bus.streams import Provisioner
from libs.runtime.background import Background
from libs.runtime.settings import Settings
from libs.telemetry.readiness import checked


@asynccontextmanager
async def running(
    settings: Settings, commands: Sequence[AnySubject] = COMMANDS
) -> AsyncIterator[Background]:
    """Everything is provisioned when the block is entered, and kept so while it runs."""
    client = await connect(settings.nats_address, PROVISIONER, settings.secrets_path)
    try:
        provisioner = Provisioner(
            client, commands, settings.nats.replicas, settings.notify.channels
        )
        await provisioner.provision()
        await discoverable(client, PROVISIONER, ())
        async with Background(provisioner.run(), provisioner.watch_storing()) as background:
            with watched(client, PROVISIONER), checked("storing", provisioner.not_stored):
                yield background
    finally:
        await client.close()
