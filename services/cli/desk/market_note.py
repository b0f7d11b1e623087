"""The line of `deskbus up` about market files of one's own that cannot be used."""

import asyncio
from collections.abc import Sequence

from libs.market.choice import SourceName, source_of
from libs.market.errors import MarketError
from libs.runtime.settings import Settings

LOOK_S_MAX = 2.0
"""A large folder is looked at for so long; whoever asks for its data hears what is wrong later."""


async def market_note(settings: Settings) -> Sequence[str]:
    """The first file that is refused, and the command that looks again; nothing where the
    files can be used, or are not one's own."""
    if settings.replay_dir is None or source_of(settings) is not SourceName.REPLAY:
        return ()
    from libs.market.sources import latest_session_of  # noqa: PLC0415 - few bring files

    try:
        async with asyncio.timeout(LOOK_S_MAX):
            await latest_session_of(settings)()
    except MarketError as error:
        return (f"no market data: {error.message}; `deskbus market sources` looks again",)
    except TimeoutError:
        return ()
    return ()
