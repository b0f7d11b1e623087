"""One GET to somebody else's server: its whole answer, in time, or a MarketError that says why not.

It is asked in a loop of its own: only so has all of an answer one time limit, from the look-up of
the name to the last byte, with its headers.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime

import httpx2

from libs.market.asking.their_clock import ahead
from libs.market.errors import BadVendorData, SourceUnavailable
from libs.runtime.outgoing import AnswerTooLarge, BoundedClient, SentElsewhere

CONNECT_TIMEOUT_S = 10.0
SILENCE_S = 15.0
"""How long a server may say nothing within an answer."""
WORDS_MAX = 160
PATIENCE = httpx2.Timeout(SILENCE_S, connect=CONNECT_TIMEOUT_S)


def answer_of(
    what: str,
    client: BoundedClient,
    url: str,
    query: Mapping[str, str] | None = None,
    *,
    whole_s: float,
    now: Callable[[], datetime],
    hidden: Callable[[str], str] = str,
) -> httpx2.Response:
    """The answer, whatever its status; the client is closed then. `hidden` takes secrets out of
    what is told. Raises BadVendorData for one that is too large, SourceUnavailable where there is
    none, or where this machine's clock is ahead of the server's."""

    async def ask() -> httpx2.Response:
        async with asyncio.timeout(whole_s), client:
            return await client.get(url, params=query)

    # No error is raised from one of these: they hold the request, and that may hold a secret.
    try:
        answer = asyncio.run(ask())
    except AnswerTooLarge as error:
        raise BadVendorData(what, str(error), "Deskbus") from None
    except TimeoutError:
        raise SourceUnavailable(what, f"the answer took longer than {whole_s:g} s") from None
    except SentElsewhere as error:
        raise SourceUnavailable(what, hidden(str(error))) from None
    except httpx2.HTTPError as error:
        words = " ".join(f"{type(error).__name__} {error}".split())[:WORDS_MAX]
        raise SourceUnavailable(what, hidden(words)) from None
    if why := ahead(answer.headers.get("Date"), answer.headers.get("Age"), now()):
        raise SourceUnavailable(what, why)
    return answer
