"""The certificates of NATS and Postgres, looked at once at the start and then once a day."""

import asyncio
from datetime import timedelta

from libs.runtime.settings import Settings

EVERY_S = timedelta(days=1).total_seconds()


async def run(settings: Settings) -> None:
    """Log those that clients refuse, or soon will, until cancelled."""
    while "tls://" in settings.nats_address or "sslmode=" in settings.postgres_address:
        from libs.keys import validity  # noqa: PLC0415 - it loads the package for certificates

        places = validity.servers_in(settings.nats_address, settings.postgres_address)
        await validity.log_problems(places)
        await asyncio.sleep(EVERY_S)
    await asyncio.Event().wait()
