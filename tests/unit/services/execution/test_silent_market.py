"""A live source that does not answer is no decision: the command comes again."""

import pytest

from libs.market.errors import NotInSource, SourceUnavailable
from libs.runtime.errors import Unavailable
from services.execution.handler import _until_read


async def test_no_answer_ends_nothing_so_the_command_is_sent_again() -> None:
    async def silent() -> None:
        raise SourceUnavailable("prices of AAPL", "HTTP 500")

    with pytest.raises(Unavailable, match="prices of AAPL: HTTP 500"):
        await _until_read(silent, "main")


async def test_a_no_of_the_source_is_a_failure_with_a_reason() -> None:
    async def refused() -> None:
        raise NotInSource("exchange rates", "yahoo", "leave it out")

    with pytest.raises(NotInSource):
        await _until_read(refused, "main")
