"""Market files of one's own that cannot be used: a line of `deskbus up`, a check of `doctor`."""

import asyncio
from collections.abc import Sequence

from libs.market.choice import SourceName, source_of
from libs.market.errors import MarketError
from libs.runtime.settings import Settings
from services.cli.operating.checks import Check, problem

LOOK_S_MAX = 2.0
"""A large folder is looked at for so long; whoever asks for its data hears what is wrong later."""


LOOKS_AGAIN = "`deskbus market sources` looks again"


async def market_note(settings: Settings) -> Sequence[str]:
    """The first file that is refused, and the command that looks again; nothing where the
    files can be used, or are not one's own."""
    refused = await _refused(settings)
    return (f"no market data: {refused}; {LOOKS_AGAIN}",) if refused else ()


async def market_files(settings: Settings) -> Sequence[Check]:
    """The same as a check."""
    refused = await _refused(settings)
    return (problem("market files", refused, LOOKS_AGAIN),) if refused else ()


async def _refused(settings: Settings) -> str:
    if settings.replay_dir is None or source_of(settings) is not SourceName.REPLAY:
        return ""
    from libs.market.sources import latest_session_of  # noqa: PLC0415 - few bring files

    try:
        async with asyncio.timeout(LOOK_S_MAX):
            await latest_session_of(settings)()
    except MarketError as error:
        return error.message
    except TimeoutError:
        return ""
    return ""
